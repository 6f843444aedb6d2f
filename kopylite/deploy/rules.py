"""RoleRule: one rule of a Role, made of permissions. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kopylite.client import Permission

# As people write them; what is none of these comes after them.
_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True, slots=True)
class RoleRule:
    """What a Role allows about some resources of a group.

    Attributes:
        names: of the only objects that it is about; none: all.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """As it stands in a Role."""
        wire: dict[str, Any] = {"apiGroups": [self.group], "resources": list(self.resources)}
        if self.names:
            wire["resourceNames"] = list(self.names)
        return {**wire, "verbs": list(self.verbs)}


def rules_of(permissions: Iterable[Permission]) -> list[RoleRule]:
    """The rules for the permissions of one role, whatever their namespaces, in a fixed order."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for each in permissions:
        verbs.setdefault((each.group, each.resource, each.name), set()).add(each.verb)
    alike: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (group, resource, name), found in sorted(verbs.items()):
        alike.setdefault((group, _sorted(found), name), []).append(resource)
    return [
        RoleRule(group, tuple(resources), found, (name,) if name else ())
        for (group, found, name), resources in sorted(alike.items(), key=lambda item: (item[0][0], item[1], item[0][2]))
    ]


def _sorted(verbs: Iterable[str]) -> tuple[str, ...]:
    known = {verb: index for index, verb in enumerate(_ORDER)}
    return tuple(sorted(verbs, key=lambda verb: (known.get(verb, len(known)), verb)))
