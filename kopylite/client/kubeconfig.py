"""Kubeconfig files: read, merged as kubectl merges them, and looked up by context. Knows nothing of connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kopylite.errors import KubeconfigError
from kopylite.objects.yamlread import YamlError, read_document

# Fields that name a file, relative to the folder of the kubeconfig that holds them.
_FILES = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster, user or context, and the file that it stands in."""

    values: Mapping[str, Any] = field(repr=False)
    file: Path


@dataclass(slots=True)
class Kubeconfig:
    """One or more merged files: by section, entries by name."""

    files: tuple[Path, ...]
    current_context: str = ""
    sections: dict[str, dict[str, Entry]] = field(default_factory=lambda: {name: {} for name in _SECTIONS}, repr=False)

    def context(self, name: str | None = None) -> tuple[str, Entry]:
        """Name and entry of a context, by default the current one.

        Raises:
            KubeconfigError: it is missing; says which there are.
        """
        chosen = name or self.current_context
        there = ", ".join(sorted(self.sections["contexts"])) or "none"
        if not chosen:
            raise KubeconfigError(
                f"{self.where}: no current-context is set; choose one with --context or "
                f"`kubectl config use-context` (there: {there})"
            )
        entry = self.sections["contexts"].get(chosen)
        if entry is None:
            raise KubeconfigError(f"{self.where}: there is no context {chosen!r}; choose one of: {there}")
        return chosen, entry

    def find(self, section: str, name: str, wanted_by: str) -> Entry:
        """The cluster or user that a context names.

        Raises:
            KubeconfigError: it is missing.
        """
        entry = self.sections[section].get(name)
        if entry is None:
            kind = _SECTIONS[section]
            raise KubeconfigError(
                f"{self.where}: context {wanted_by!r} names the {kind} {name!r}, which is in no file; add it to "
                f"`{section}` or correct the context"
            )
        return entry

    @property
    def where(self) -> str:
        return "kubeconfig " + ":".join(map(str, self.files))


def read_kubeconfig(paths: Sequence[Path], *, skip_missing: bool = False) -> Kubeconfig:
    """Read and merge files: of two entries with one name the first file's counts, whole.

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
        _merge(merged, path, _load(path))
    return merged


def _load(path: Path) -> Mapping[str, Any]:
    try:
        document = read_document(path.read_bytes())
    except OSError as error:
        raise KubeconfigError(f"kubeconfig {path} cannot be read: {error.strerror or error}") from error
    except YamlError as error:
        # Not the error's own text: the file may hold secrets.
        at = f" (line {error.line})" if error.line else ""
        raise KubeconfigError(f"kubeconfig {path} is no YAML{at}: correct it, or fetch a new one") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"kubeconfig {path}: the file should hold a mapping with clusters, users and contexts")
    return document


def _merge(merged: Kubeconfig, path: Path, document: Mapping[str, Any]) -> None:
    merged.current_context = merged.current_context or str(document.get("current-context") or "")
    for section, singular in _SECTIONS.items():
        for item in document.get(section) or ():
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise KubeconfigError(f"kubeconfig {path}: each entry of `{section}` needs a name")
            values = item.get(singular) or {}
            if not isinstance(values, dict):
                raise KubeconfigError(f"kubeconfig {path}: `{section}` {item['name']!r}: {singular} is no mapping")
            values = {key: value for key, value in values.items() if value not in (None, "")}
            for name in _FILES[section]:
                if name in values:
                    values[name] = str(path.absolute().parent / Path(str(values[name])))
            merged.sections[section].setdefault(item["name"], Entry(values, path))
