"""Kind: the name of a resource type, and how to find it in a URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kopylite.errors import RegistrationError


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

    Attributes:
        group_kind: group and kind, made once, since each read asks for it.

    Raises:
        RegistrationError: `api_version` cannot be one; groups and versions have no capital letters.
    """

    api_version: str
    kind: str
    plural: str | None = None
    namespaced: bool | None = None
    group_kind: GroupKind = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.api_version != self.api_version.lower() or self.api_version.count("/") > 1:
            hint = (
                f"Kind({self.kind!r}, {self.api_version!r})" if self.api_version.isidentifier() else "'apps/v1' or 'v1'"
            )
            raise RegistrationError(
                f"Kind({self.api_version!r}, {self.kind!r}): the first is no apiVersion, which has no capitals and at "
                f"most one slash. Did you mean {hint}?"
            )
        object.__setattr__(self, "group_kind", GroupKind(self.group, self.kind))

    def __hash__(self) -> int:
        return hash(self.group_kind)  # of two texts that know theirs, and not of all fields: each read asks for it

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def __repr__(self) -> str:
        more = [repr(value) for value in (self.plural, self.namespaced) if value is not None]
        return f"Kind({', '.join([repr(self.api_version), repr(self.kind), *more])})"

    def __str__(self) -> str:
        return f"{self.kind}.{self.api_version}"
