"""Owner references, from the room of objects: a reconcile that makes objects wants them at hand."""

from __future__ import annotations

from kopylite.objects.owners import (
    controller_of,
    has_controller_reference,
    has_owner_reference,
    owner_reference,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)

__all__ = [
    "controller_of",
    "has_controller_reference",
    "has_owner_reference",
    "owner_reference",
    "remove_owner_reference",
    "set_controller_reference",
    "set_owner_reference",
]
