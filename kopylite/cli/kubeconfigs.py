"""The kubeconfig of a cluster that a command serves: put where the user says, beside what others have there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kopylite.errors import UsageError
from kopylite.wholefiles import write_private

_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}


def publish_kubeconfig(path: Path, text: str) -> str:
    """Write a kubeconfig, or merge it into the one that is there; returns the context that it adds, "" if it is all.

    What others wrote stays, the current context too; an older cluster of ours of the same name is replaced. Comments
    of the file do not survive a merge, as with kubectl.

    Args:
        text: of a kubeconfig with one cluster, one user and one context of one name.

    Raises:
        UsageError: there is a file that is no kubeconfig, one that another program writes at the moment, or one whose
            entries of our name are for a cluster elsewhere; or it cannot be written.
    """
    from kopylite.client.kubeconfig import load_document
    from kopylite.objects.yamlread import read_document
    from kopylite.objects.yamlwrite import to_yaml

    with _locked(path):
        ours: dict[str, Any] = read_document(text)
        there = dict(load_document(path)) if path.exists() else {}
        name = str(ours["current-context"])
        if there and there.get("kind", "Config") != "Config":
            raise UsageError(f"{path} is no kubeconfig, and would be overwritten: name another file")
        if _is_ours(there, name):
            write_private(path, text)
            return ""
        for section, kind in _SECTIONS.items():
            entries = there.get(section) or []
            if not isinstance(entries, list):
                raise UsageError(f"{path}: `{section}` is no list, and would be overwritten: name another file")
            old = next((entry for entry in entries if isinstance(entry, dict) and entry.get("name") == name), None)
            if section == "clusters" and old is not None and not _is_local(old.get(kind)):
                raise UsageError(f"{path} has a cluster {name!r} that is not of this machine: name another file")
            there[section] = [entry for entry in entries if entry is not old] + ours[section]
        there["current-context"] = there.get("current-context") or name
        write_private(path, to_yaml([{"apiVersion": "v1", "kind": "Config", **there}], start=False))
        return name if there["current-context"] != name else ""


def is_replaceable(path: Path, name: str) -> bool:
    """Whether a file is not there, or holds nothing but a cluster of ours. Raises KubeconfigError: it is unreadable."""
    from kopylite.client.kubeconfig import load_document

    return not path.exists() or _is_ours(dict(load_document(path)), name)


def _is_ours(document: dict[str, Any], name: str) -> bool:
    """Whether nothing in a kubeconfig would be missed."""
    for section in _SECTIONS:
        entries = document.get(section) or []
        if not isinstance(entries, list) or any(not isinstance(e, dict) or e.get("name") != name for e in entries):
            return False
    clusters = document.get("clusters") or []
    known = {"apiVersion", "kind", "current-context", "preferences", *_SECTIONS}
    return set(document) <= known and all(_is_local(entry.get("cluster")) for entry in clusters)


def _is_local(cluster: Any) -> bool:
    from kopylite.client.addresses import is_loopback

    server = cluster.get("server") if isinstance(cluster, dict) else None
    try:
        return isinstance(server, str) and is_loopback(server)
    except ValueError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that kubectl takes when it changes a kubeconfig."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise UsageError(
            f"cannot write {path}: another program does, says {lock}; if there is none, remove that file"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
