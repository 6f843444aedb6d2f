"""ObjectStore: every object as immutable encoded bytes, under one resourceVersion counter.

All methods are synchronous and run between two awaits, so a write is atomic and seen by all readers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from kopylite.apiserver.storage.history import ADDED, DELETED, MODIFIED, Collection, StoredChange, StoredObject
from kopylite.clock import SYSTEM_CLOCK, Clock

# A real server's counter is past the bootstrap objects when the first client comes.
FIRST_VERSION = 1000
# etcd's --max-request-bytes.
MAX_OBJECT_BYTES = 1536 * 1024
# etcd is compacted each 5 minutes; kube-apiserver's watch cache keeps at least 75 s and up to 102,400 events.
HISTORY_SECONDS = 300.0
HISTORY_EVENTS = 20_000
# Of the history of each collection. Watchers from before what is kept list anew.
HISTORY_BYTES = 64 * 1024 * 1024


class AlreadyStored(Exception):
    """The key to be created is taken by `record`."""

    def __init__(self, record: StoredObject) -> None:
        super().__init__(record.key)
        self.record = record


class Moved(Exception):
    """The stored object is not the one that the writer had read (`record` is now there, or None)."""

    def __init__(self, record: StoredObject | None) -> None:
        super().__init__(record.key if record else "gone")
        self.record = record


class TooLarge(Exception):
    """The object's JSON is larger than the store takes."""


class Journal(Protocol):
    """Where a store puts each change before it happens."""

    def write(self, storage: str, change: StoredChange) -> None:
        """Keep a change. Whatever it raises comes out of the write, which then has not happened."""

    def drop(self, storage: str) -> None:
        """Forget a whole collection."""


class ObjectStore:
    """All collections under one version counter.

    Attributes:
        step: by how much each write moves the version; tests jump.
        observers: called with (storage, change) after each write, in the same turn of the loop.
        journal: told of each write before it happens; None keeps everything in memory alone.

    Args:
        version: the counter before the first write.
        history_events, history_seconds: how much of each collection's history watches may begin in.
    """

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        version: int = FIRST_VERSION,
        history_events: int = HISTORY_EVENTS,
        history_seconds: float = HISTORY_SECONDS,
    ) -> None:
        self.version = version
        self.step = 1
        self.compacted = 0
        self.observers: list[Callable[[str, StoredChange], None]] = []
        self.journal: Journal | None = None
        self.history_events = history_events
        self.history_seconds = history_seconds
        self._clock = clock
        self._collections: dict[str, Collection] = {}

    def collection(self, storage: str) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(self.compacted)
        return found

    def get(self, storage: str, key: str) -> StoredObject | None:
        return self.collection(storage).records.get(key)

    def create(
        self,
        storage: str,
        key: str,
        obj: dict[str, Any],
        *,
        encoding_version: str,
        fields: dict[str, str] | None = None,
    ) -> StoredObject:
        """Store a new object; sets its metadata.resourceVersion. Raises AlreadyStored, TooLarge."""
        present = self.get(storage, key)
        if present is not None:
            raise AlreadyStored(present)
        return self._commit(storage, ADDED, self._record(key, obj, encoding_version, fields), None)

    def update(
        self,
        storage: str,
        key: str,
        obj: dict[str, Any],
        expected: StoredObject,
        *,
        encoding_version: str,
        fields: dict[str, str] | None = None,
    ) -> StoredObject:
        """Replace the object; sets its metadata.resourceVersion.

        Raises:
            Moved: `expected` is no longer what is stored.
            TooLarge: the new object is.
        """
        present = self.get(storage, key)
        if present is not expected:
            raise Moved(present)
        return self._commit(storage, MODIFIED, self._record(key, obj, encoding_version, fields), present)

    def delete(self, storage: str, key: str, expected: StoredObject) -> StoredObject:
        """Remove the object. Returns its last state under the version of the deletion. Raises Moved."""
        present = self.get(storage, key)
        if present is not expected:
            raise Moved(present)
        record = self._record(key, expected.decode(), expected.encoding_version, expected.fields)
        return self._commit(storage, DELETED, record, present)

    def compact(self, version: int | None = None) -> int:
        """Forget the history up to `version` (now, by default), as etcd's compaction does. Returns it."""
        self.compacted = max(self.compacted, self.version if version is None else min(version, self.version))
        for collection in self._collections.values():
            collection.forget(self.compacted)
        return self.compacted

    def close_collection(self, storage: str, *, keep: bool) -> None:
        """End the watches of a collection; with `keep` its objects and history go on in a new one."""
        if self.journal is not None and not keep:
            self.journal.drop(storage)
        old = self._collections.pop(storage, None)
        if old is not None:
            if keep:
                self._collections[storage] = old.copy()
            old.closed = True
            old.wake()

    def close(self) -> None:
        """End all watches."""
        for collection in self._collections.values():
            collection.closed = True
            collection.wake()

    def fork(self) -> ObjectStore:
        """An independent store with the same objects, history and version; costs no copies of bodies."""
        twin = ObjectStore(
            clock=self._clock,
            version=self.version,
            history_events=self.history_events,
            history_seconds=self.history_seconds,
        )
        twin.compacted, twin.step = self.compacted, self.step
        twin._collections = {name: collection.copy() for name, collection in self._collections.items()}
        return twin

    def load(self, version: int, collections: dict[str, list[StoredObject]]) -> None:
        """Take over saved objects; there is no history from before."""
        self.version = self.compacted = version
        self._collections = {}
        for storage, records in collections.items():
            collection = self.collection(storage)
            collection.records = {record.key: record for record in records}
            collection.keys = sorted(collection.records)

    def contents(self) -> dict[str, list[StoredObject]]:
        """All records by storage name; the lists are the caller's."""
        return {name: list(c.records.values()) for name, c in self._collections.items() if c.records}

    def _record(
        self, key: str, obj: dict[str, Any], encoding_version: str, fields: dict[str, str] | None
    ) -> StoredObject:
        version = self.version + self.step
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(version)
        body = msgspec.json.encode(obj)
        if len(body) > MAX_OBJECT_BYTES:
            raise TooLarge(key)
        return StoredObject(
            key=key,
            version=version,
            uid=metadata.get("uid", ""),
            encoding_version=encoding_version,
            body=body,
            labels=metadata.get("labels") or None,
            fields=fields,
        )

    def _commit(self, storage: str, kind: str, record: StoredObject, previous: StoredObject | None) -> StoredObject:
        now = self._clock.monotonic()
        change = StoredChange(kind, record, previous, now)
        if self.journal is not None:
            self.journal.write(storage, change)
        self.version = record.version
        collection = self.collection(storage)
        collection.apply(change)
        # In portions, so that dropping from the front of the list stays cheap per write.
        if (
            len(collection.changes) > self.history_events * 1.25
            or collection.changes_bytes > HISTORY_BYTES * 1.25
            or collection.changes[0].time < now - self.history_seconds * 1.25
        ):
            collection.trim(self.history_events, now - self.history_seconds, HISTORY_BYTES)
        for observer in self.observers:
            observer(storage, change)
        return record
