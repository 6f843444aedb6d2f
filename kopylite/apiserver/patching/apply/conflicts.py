"""Conflicts of server-side apply, and the answer that names them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kopylite.apiserver.patching.apply.fieldsets import path_text
from kopylite.apiserver.patching.apply.managers import ManagerId
from kopylite.errors import Cause, Conflict


class Conflicts(Exception):
    """Other managers own fields that an apply would change.

    Attributes:
        found: pairs of manager and path (of elements), grouped by manager.
    """

    def __init__(self, found: Sequence[tuple[ManagerId, tuple[str, ...]]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = list(found)


def conflict_error(conflicts: Conflicts) -> Conflict:
    """The 409 of the server: one cause per field, and the managers with their fields in the message."""
    found = [(manager.text(), path_text(path)) for manager, path in conflicts.found]
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in found]
    if len(found) == 1:
        manager, path = found[0]
        return Conflict(f"Apply failed with 1 conflict: conflict with {manager}: {path}", causes=causes)
    lines: list[str] = []
    for manager in dict.fromkeys(m for m, _ in found):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for other, path in found if other == manager]
    return Conflict(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), causes=causes)
