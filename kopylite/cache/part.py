"""ShardPart: which objects of a kind are of one shard."""

from __future__ import annotations

import msgspec

from kopylite.cache.record import Record
from kopylite.objects import GroupKind, OwnerReference, Shard


class ShardPart(msgspec.Struct, frozen=True):
    """The objects of a kind that one shard needs: its own, or what these own.

    Attributes:
        shard: of the objects, or of their owners.
        owner: the kind whose uid decides; None: the object's own uid does.
        any_owner: each reference to that kind counts, and not only the one that is marked as the controller.
    """

    shard: Shard
    owner: GroupKind | None = None
    any_owner: bool = False

    @property
    def selector(self) -> str:
        """What the API server is asked for; "": it cannot divide by owners."""
        return self.shard.selector if self.owner is None else ""

    def holds(self, record: Record) -> bool:
        """Whether an object is in it."""
        if self.owner is None:
            return self.shard.holds(record.uid)
        return any(map(self._owns, record.owner_references))

    def _owns(self, reference: OwnerReference) -> bool:
        if (reference.group, reference.kind) != tuple(self.owner or ()):
            return False
        return (self.any_owner or reference.controller is True) and self.shard.holds(reference.uid)

    def __str__(self) -> str:
        return f"shard {self.shard}" if self.owner is None else f"owned by {self.owner.kind} of shard {self.shard}"
