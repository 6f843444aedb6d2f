"""Kind: the name of a resource type, and how to find it in a URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class GroupKind(NamedTuple):
    """Group and kind without a version: what an ownerReference is matched by."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource type. Objects read as a Kind are `Unstructured`.

    Args:
        api_version: "group/version", or "v1" for the core group.
        kind: e.g. "Deployment".
        plural: the resource name in URLs; None: the server is asked (discovery).
        namespaced: the scope; None: the server is asked.
    """

    api_version: str
    kind: str
    plural: str | None = None
    namespaced: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.kind}.{self.api_version}"
