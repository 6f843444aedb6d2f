"""Who owns whom, by uid: the owner references of everything that is stored. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from kopylite.apiserver.storage.history import StoredObject
from kopylite.apiserver.writes.metadata import FOREGROUND, ORPHAN


class Item(NamedTuple):
    """Where an object is stored."""

    storage: str
    key: str


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An owner reference, as far as it matters here."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


class Ownership(msgspec.Struct, frozen=True, rename="camel"):
    """What the garbage collector reads in an object's metadata."""

    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str | None = None

    @property
    def deletes_dependents(self) -> bool:
        """It is being deleted, and waits until its dependents are."""
        return self.deletion_timestamp is not None and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """It is being deleted, and waits until its dependents no longer name it."""
        return self.deletion_timestamp is not None and ORPHAN in self.finalizers


class _Object(msgspec.Struct):
    metadata: Ownership


_NOTHING = Ownership()
_decoder = msgspec.json.Decoder(_Object)


def ownership_of(record: StoredObject | None) -> Ownership:
    """Costs next to nothing for an object that has no owner and is not being deleted."""
    if record is None or (b'"ownerReferences"' not in record.body and b'"deletionTimestamp"' not in record.body):
        return _NOTHING
    return _decoder.decode(record.body).metadata


class OwnerGraph:
    """Which objects name which uid as their owner, and where each uid is stored."""

    def __init__(self) -> None:
        self._places: dict[str, Item] = {}
        # By owner: its dependents, and whether each blocks the owner's foreground deletion.
        self._dependents: dict[str, dict[Item, bool]] = {}

    def place(self, uid: str) -> Item | None:
        """Where the object with this uid is; None: there is none."""
        return self._places.get(uid)

    def dependents(self, uid: str) -> Mapping[Item, bool]:
        """Who names this uid as an owner, and whether it blocks its deletion."""
        return self._dependents.get(uid, {})

    def put(self, item: Item, uid: str, before: Ownership, after: Ownership) -> None:
        """An object was created or changed."""
        self._places[uid] = item
        for owner in before.owner_references:
            self._drop(owner.uid, item)
        for owner in after.owner_references:
            self._dependents.setdefault(owner.uid, {})[item] = bool(owner.block_owner_deletion)

    def remove(self, item: Item, uid: str, last: Ownership) -> None:
        """An object was deleted; who named it as an owner still does."""
        self._places.pop(uid, None)
        for owner in last.owner_references:
            self._drop(owner.uid, item)

    def _drop(self, owner: str, item: Item) -> None:
        known = self._dependents.get(owner, {})
        known.pop(item, None)
        if not known:
            self._dependents.pop(owner, None)
