"""Kubeconfig files: read, typed and merged as client-go does it, and looked up by context.

An empty text, `null` and an absent field are one thing, as in Go. A value of another type than client-go expects
is an error that names file, entry and field, and never shows the value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from kopylite.boundary import read
from kopylite.errors import KubeconfigError

# A thousand clusters with their certificates are about 5 MB.
MAX_BYTES = 8 * 1024 * 1024


class _Fields(msgspec.Struct, frozen=True, rename="kebab"):
    """Fields of an entry. Its repr shows nothing: most of them may be secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class NamedExtension(_Fields, frozen=True):
    name: str | None = None
    extension: Any = None


class KubeconfigCluster(_Fields, frozen=True):
    """Where an API server is, and how it proves itself."""

    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[NamedExtension] | None = None


class EnvironmentVariable(_Fields, frozen=True):
    name: str | None = None
    value: str | None = None


class ExecSpec(_Fields, frozen=True, rename="camel"):
    """A credential plugin: a program that prints an ExecCredential."""

    command: str | None = None
    args: list[str] | None = None
    env: list[EnvironmentVariable] | None = None
    api_version: str | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class AuthProvider(_Fields, frozen=True):
    name: str | None = None
    config: dict[str, str] | None = None


class KubeconfigUser(_Fields, frozen=True):
    """How a client proves who it is."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    impersonate: str | None = msgspec.field(default=None, name="as")
    impersonate_uid: str | None = msgspec.field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")
    username: str | None = None
    password: str | None = None
    auth_provider: AuthProvider | None = None
    exec: ExecSpec | None = None


class KubeconfigContext(_Fields, frozen=True):
    """A cluster, a user and a namespace under one name."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


T = TypeVar("T", KubeconfigCluster, KubeconfigUser, KubeconfigContext)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One cluster, user or context, and the file that it stands in."""

    values: T
    file: Path


@dataclass(slots=True)
class Kubeconfig:
    """One or more merged files: entries by name. Of two files that hold an entry, the first one's counts, whole."""

    files: tuple[Path, ...]
    current_context: str = ""
    clusters: dict[str, Entry[KubeconfigCluster]] = field(default_factory=dict, repr=False)
    users: dict[str, Entry[KubeconfigUser]] = field(default_factory=dict, repr=False)
    contexts: dict[str, Entry[KubeconfigContext]] = field(default_factory=dict, repr=False)

    def context(self, name: str | None = None) -> tuple[str, Entry[KubeconfigContext]]:
        """Name and entry of a context, by default the current one.

        Raises:
            KubeconfigError: it is missing; says which there are.
        """
        chosen = name or self.current_context
        there = ", ".join(sorted(self.contexts)) or "none"
        if not chosen:
            raise KubeconfigError(
                f"{self.where}: no current-context is set; choose one with --context or "
                f"`kubectl config use-context` (there: {there})"
            )
        entry = self.contexts.get(chosen)
        if entry is None:
            raise KubeconfigError(f"{self.where}: there is no context {chosen!r}; choose one of: {there}")
        return chosen, entry

    def cluster_of(self, context: str, entry: Entry[KubeconfigContext]) -> Entry[KubeconfigCluster]:
        """The cluster that a context names. Raises KubeconfigError: it names none, or one that is in no file."""
        return self._named(self.clusters, "cluster", entry.values.cluster, context, entry)

    def user_of(self, context: str, entry: Entry[KubeconfigContext]) -> Entry[KubeconfigUser]:
        """The user that a context names. Raises KubeconfigError: it names none, or one that is in no file."""
        return self._named(self.users, "user", entry.values.user, context, entry)

    def _named(
        self,
        section: Mapping[str, Entry[T]],
        kind: str,
        name: str | None,
        context: str,
        entry: Entry[KubeconfigContext],
    ) -> Entry[T]:
        there = ", ".join(sorted(section)) or "none"
        if not name:
            raise KubeconfigError(
                f"kubeconfig {entry.file}: context {context!r} names no {kind}; add `{kind}:` to it (there: {there})"
            )
        found = section.get(name)
        if found is None:
            raise KubeconfigError(
                f"kubeconfig {entry.file}: context {context!r} names the {kind} {name!r}, which is in no file; add it "
                f"to `{kind}s` or correct the context (there: {there})"
            )
        return found

    @property
    def where(self) -> str:
        return "kubeconfig " + ":".join(map(str, self.files))


def read_kubeconfig(paths: Sequence[Path], *, skip_missing: bool = False) -> Kubeconfig:
    """Read and merge files.

    Args:
        paths: in order of precedence.
        skip_missing: files that do not exist are no error as long as one does, as in KUBECONFIG lists.

    Raises:
        KubeconfigError: a file is missing, unreadable or no kubeconfig.
    """
    merged = Kubeconfig(tuple(paths))
    present = [path for path in paths if path.exists()] if skip_missing else list(paths)
    if not present:
        raise KubeconfigError(f"{merged.where}: no such file; set KUBECONFIG or --kubeconfig to one that exists")
    for path in present:
        _merge(merged, path, load_document(path))
    return merged


def load_document(path: Path) -> Mapping[str, Any]:
    """The content of one file, as it stands there; {} for an empty one. Raises KubeconfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise KubeconfigError(f"kubeconfig {path} cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise KubeconfigError(f"kubeconfig {path} is larger than {MAX_BYTES >> 20} MiB: is it the right file?")

    def refuse(_: bytes, error: Exception) -> KubeconfigError:
        # Not the error's own text: the file may hold secrets.
        line = getattr(error, "line", 0)  # of a YamlError
        at = f" (line {line})" if line else ""
        return KubeconfigError(f"kubeconfig {path} is no YAML{at}: correct it, or fetch a new one")

    document = read(_document, content, refuse)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"kubeconfig {path}: the file should hold a mapping with clusters, users and contexts")
    return document


def _document(content: bytes) -> Any:
    if content.startswith(b"{"):
        with suppress(msgspec.DecodeError):  # YAML may begin so, too
            return msgspec.json.decode(content)
    from kopylite.objects.yamlread import read_document  # 1.2 MiB, which a process with JSON can do without

    return read_document(content)


def _merge(merged: Kubeconfig, path: Path, document: Mapping[str, Any]) -> None:
    if (document.get("apiVersion") or "v1") != "v1" or (document.get("kind") or "Config") != "Config":
        raise KubeconfigError(
            f"kubeconfig {path}: it should be of apiVersion v1 and kind Config: is it the right file?"
        )
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise KubeconfigError(f"kubeconfig {path}: current-context should be a text; put it in quotes")
    merged.current_context = merged.current_context or current
    folder = path.absolute().parent
    clusters, users = (
        _entries(document, "clusters", KubeconfigCluster, path),
        _entries(document, "users", KubeconfigUser, path),
    )
    for name, cluster in clusters.items():
        merged.clusters.setdefault(name, Entry(_resolve(cluster, folder, "certificate_authority"), path))
    for name, user in users.items():
        user = _resolve(user, folder, "client_certificate", "client_key", "token_file")
        # As kubectl does: a command with a separator is relative to its kubeconfig, a bare one comes from the PATH.
        if user.exec is not None and user.exec.command and os.sep in user.exec.command:
            user = msgspec.structs.replace(user, exec=_resolve(user.exec, folder, "command"))
        merged.users.setdefault(name, Entry(user, path))
    for name, context in _entries(document, "contexts", KubeconfigContext, path).items():
        merged.contexts.setdefault(name, Entry(context, path))


def _entries(document: Mapping[str, Any], section: str, kind: type[T], path: Path) -> dict[str, T]:
    singular = section.removesuffix("s")
    items = document.get(section)
    if items is None:
        return {}
    if not isinstance(items, list):
        raise KubeconfigError(f"kubeconfig {path}: `{section}` should be a list of entries with a name")
    entries: dict[str, T] = {}
    for item in items:
        item = {} if item is None else item
        name = (item.get("name") or "") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise KubeconfigError(f"kubeconfig {path}: each entry of `{section}` needs a name, and a {singular}")
        if name in entries:
            raise KubeconfigError(f"kubeconfig {path}: `{section}` has two entries {name!r}; remove or rename one")
        values = item.get(singular)
        try:
            entries[name] = msgspec.convert({} if values is None else values, kind)
        except msgspec.ValidationError as error:
            # The error names types and the field, never a value.
            raise KubeconfigError(f"kubeconfig {path}: {singular} {name!r}: {error}; correct the type") from None
    return entries


S = TypeVar("S", bound=_Fields)


def _resolve(values: S, folder: Path, *names: str) -> S:
    """The same with absolute paths: what is relative is so to the folder of its kubeconfig, `..` by the text alone."""
    texts = {name: text for name in names if (text := getattr(values, name))}
    changes = {name: os.path.normpath(folder / text) for name, text in texts.items() if not os.path.isabs(text)}
    return msgspec.structs.replace(values, **changes) if changes else values
