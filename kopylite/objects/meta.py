"""The parts of an object that the runtime itself reads: key, metadata, owner references, versions."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec


class ObjectKey(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-scoped object is ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class HasKey(Protocol):
    """Anything that names an object: an ObjectKey, a Request, an object."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


class OwnerReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """One entry of metadata.ownerReferences. Missing fields are "" rather than an error: a reader must be
    able to skip a broken reference and keep the others."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = msgspec.to_builtins(self)
        return result


def compare_versions(a: str, b: str) -> int:
    """Compare two resourceVersions of the same resource: negative, 0 or positive.

    They compare as unsigned decimals, by length and then by text (KEP-5504). An empty or malformed version
    counts as older than every well-formed one.
    """
    if a == b:
        return 0
    if a.isascii() and b.isascii() and a.isdigit() and b.isdigit() and a[0] != "0" != b[0]:
        return len(a) - len(b) or (-1 if a < b else 1)
    left, right = _comparable(a), _comparable(b)
    return (left > right) - (left < right)


def _comparable(version: str) -> tuple[int, str]:
    if version.isascii() and version.isdigit() and version[0] != "0":
        return len(version), version
    return 0, ""
