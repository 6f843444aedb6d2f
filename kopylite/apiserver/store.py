"""Store: every object as immutable encoded bytes, one resourceVersion counter, and the recent history.

All methods are synchronous and run between two awaits, so a write is atomic and seen by all readers at once.
A watcher holds no buffer: it is a position in the history of its collection. One that falls behind the
kept window is told so (`Outrun`) and its stream ends; nothing is buffered for it without bound.
"""

from __future__ import annotations

import asyncio
import bisect
import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kopylite.clock import SYSTEM_CLOCK, Clock

# A real server's counter is past the bootstrap objects when the first client comes.
FIRST_VERSION = 1000
# etcd is compacted each 5 minutes; kube-apiserver's watch cache keeps at least 75 s and up to 102,400 events.
HISTORY_SECONDS = 300.0
HISTORY_EVENTS = 20_000

# Sorts behind every character of a key.
_AFTER_ALL = "\U0010ffff"

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class AlreadyStored(Exception):
    """The key to be created is taken by `record`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.key)
        self.record = record


class Moved(Exception):
    """The stored object is not the one that the writer had read (`record` is now there, or None)."""

    def __init__(self, record: Record | None) -> None:
        super().__init__(record.key if record else "gone")
        self.record = record


class Compacted(Exception):
    """History from the asked version on is no longer kept; `oldest` is the oldest that is."""

    def __init__(self, oldest: int) -> None:
        super().__init__(str(oldest))
        self.oldest = oldest


class Outrun(Exception):
    """A watcher was slower than the history window."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored object. `body` is its JSON, resourceVersion included; `shape` names the form of the body.

    `labels` and `fields` (the selectable ones besides name and namespace) are what selectors look at.
    """

    key: str
    version: int
    uid: str
    shape: str
    body: bytes
    labels: dict[str, str] | None = None
    fields: dict[str, str] | None = None

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def decode(self) -> dict[str, Any]:
        """A fresh copy of the object."""
        obj: dict[str, Any] = msgspec.json.decode(self.body)
        return obj


@dataclass(slots=True, eq=False)
class Change:
    """One write as watchers see it.

    Attributes:
        record: the object afterwards; of a deletion the last state, with the version of the deletion.
        previous: the object before; None for a creation.
        frames: encoded watch events, made once for all watchers, by whatever tells them apart.
    """

    type: str
    record: Record
    previous: Record | None
    time: float
    frames: dict[Any, bytes] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return self.record.version


class Subscription:
    """A reader's place in the history of one collection. Close it when done."""

    __slots__ = ("_collection", "position")

    def __init__(self, collection: Collection, position: int) -> None:
        self._collection = collection
        self.position = position
        collection.subscriptions.add(self)

    def take(self, limit: int = 256) -> list[Change]:
        """The next changes in order, at most `limit`, none if there are none yet. Raises Outrun."""
        log = self._collection
        start = self.position - log.first
        if start < 0:
            raise Outrun
        changes = log.changes[start : start + limit]
        self.position += len(changes)
        return changes

    async def wait(self) -> None:
        """Return when `take` would yield something (or raise), or the collection was closed."""
        log = self._collection
        while self.position >= log.first + len(log.changes) and not log.closed:
            future = asyncio.get_running_loop().create_future()
            log.waiters.append(future)
            try:
                await future
            finally:
                if not future.done():
                    log.waiters.remove(future)

    @property
    def closed(self) -> bool:
        return self._collection.closed

    def close(self) -> None:
        self._collection.subscriptions.discard(self)


class Collection:
    """The objects of one storage name, in key order, and their history.

    Attributes:
        oldest: changes after this version are all at hand; a reader from an earlier one is refused.
        changes: the history; `first` is the position of its first entry, counted from the beginning of time.
        closed: the collection is no longer served: watchers end.
    """

    def __init__(self, oldest: int) -> None:
        self.records: dict[str, Record] = {}
        self.keys: list[str] = []
        self.oldest = oldest
        self.first = 0
        self.changes: list[Change] = []
        self.waiters: list[asyncio.Future[None]] = []
        self.subscriptions: set[Subscription] = set()
        self.closed = False

    def apply(self, change: Change) -> None:
        """Take in a change whose version is newer than all before, and wake the watchers."""
        key = change.record.key
        if change.type == DELETED:
            del self.records[key]
            del self.keys[bisect.bisect_left(self.keys, key)]
        else:
            if key not in self.records:
                bisect.insort(self.keys, key)
            self.records[key] = change.record
        self.changes.append(change)
        self.wake()

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)

    def scan(self, prefix: str, start: str, version: int) -> Iterator[Record]:
        """The records as of `version`, keys >= start and with the prefix, in key order.

        Raises:
            Compacted: at once, if that version is no longer known.
        """
        return self._merge(prefix, max(start, prefix), self._before(version))

    def count(self, prefix: str, start: str, version: int) -> int:
        """How many records `scan` would yield. Raises Compacted."""
        before = self._before(version)
        first = bisect.bisect_left(self.keys, max(start, prefix))
        last = bisect.bisect_left(self.keys, prefix + _AFTER_ALL) if prefix else len(self.keys)
        concerned = [key for key in before if key >= start and key.startswith(prefix)]
        return last - first + sum((before[key] is not None) - (key in self.records) for key in concerned)

    def _before(self, version: int) -> dict[str, Record | None]:
        """What the objects changed since `version` were then."""
        if version < self.oldest:
            raise Compacted(self.oldest)
        before: dict[str, Record | None] = {}
        for change in reversed(self.changes):
            if change.version <= version:
                break
            before[change.record.key] = change.previous
        return before

    def _merge(self, prefix: str, start: str, before: dict[str, Record | None]) -> Iterator[Record]:
        live = self.keys[bisect.bisect_left(self.keys, start) :]
        gone = sorted(k for k in before if k >= start and k not in self.records)
        for key in heapq.merge(live, gone) if gone else live:
            if not key.startswith(prefix):
                return
            record = before[key] if key in before else self.records.get(key)
            if record is not None:
                yield record

    def subscribe(self, version: int) -> Subscription:
        """A reader of all changes after `version`. Raises Compacted."""
        if version < self.oldest:
            raise Compacted(self.oldest)
        index = bisect.bisect_right(self.changes, version, key=lambda c: c.version)
        return Subscription(self, self.first + index)

    def forget(self, version: int) -> None:
        """Refuse readers from before `version`; drop what no present watcher has still to read."""
        self.oldest = max(self.oldest, version)
        unread = min((s.position for s in self.subscriptions), default=self.first + len(self.changes))
        index = bisect.bisect_right(self.changes, self.oldest, key=lambda c: c.version)
        self._drop(min(index, unread - self.first))

    def trim(self, keep: int, before: float) -> None:
        """Keep at most `keep` changes, and none that is older than the time `before`."""
        index = bisect.bisect_left(self.changes, before, key=lambda c: c.time)
        if len(self.changes) - index > keep:
            index = len(self.changes) - keep
        if index > 0:
            self.oldest = max(self.oldest, self.changes[index - 1].version)
            self._drop(index)

    def _drop(self, count: int) -> None:
        if count > 0:
            del self.changes[:count]
            self.first += count

    def copy(self) -> Collection:
        twin = Collection(self.oldest)
        twin.records, twin.keys = dict(self.records), list(self.keys)
        twin.first, twin.changes = self.first, list(self.changes)
        return twin


class Store:
    """All collections under one version counter.

    Args:
        version: the counter before the first write.
        step: by how much each write moves it; tests jump.
        observers: called with (storage, change) after each write, in the same turn of the loop.
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
        self.observers: list[Callable[[str, Change], None]] = []
        self.history_events = history_events
        self.history_seconds = history_seconds
        self._clock = clock
        self._collections: dict[str, Collection] = {}

    def collection(self, storage: str) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(self.compacted)
        return found

    def get(self, storage: str, key: str) -> Record | None:
        return self.collection(storage).records.get(key)

    def create(
        self, storage: str, key: str, obj: dict[str, Any], *, shape: str, fields: dict[str, str] | None = None
    ) -> Record:
        """Store a new object; sets its metadata.resourceVersion. Raises AlreadyStored."""
        present = self.get(storage, key)
        if present is not None:
            raise AlreadyStored(present)
        return self._commit(storage, ADDED, self._record(key, obj, shape, fields), None)

    def update(
        self,
        storage: str,
        key: str,
        obj: dict[str, Any],
        expected: Record,
        *,
        shape: str,
        fields: dict[str, str] | None = None,
    ) -> Record:
        """Replace the object; sets its metadata.resourceVersion. Raises Moved unless `expected` is stored."""
        present = self.get(storage, key)
        if present is not expected:
            raise Moved(present)
        return self._commit(storage, MODIFIED, self._record(key, obj, shape, fields), present)

    def delete(self, storage: str, key: str, expected: Record) -> Record:
        """Remove the object. Returns its last state under the version of the deletion. Raises Moved."""
        present = self.get(storage, key)
        if present is not expected:
            raise Moved(present)
        record = self._record(key, expected.decode(), expected.shape, expected.fields)
        return self._commit(storage, DELETED, record, present)

    def compact(self, version: int | None = None) -> int:
        """Forget the history up to `version` (now, by default), as etcd's compaction does. Returns it."""
        self.compacted = max(self.compacted, self.version if version is None else min(version, self.version))
        for collection in self._collections.values():
            collection.forget(self.compacted)
        return self.compacted

    def close_collection(self, storage: str, *, keep: bool) -> None:
        """End the watches of a collection; with `keep` its objects and history go on in a new one."""
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

    def fork(self) -> Store:
        """An independent store with the same objects, history and version; costs no copies of bodies."""
        twin = Store(
            clock=self._clock,
            version=self.version,
            history_events=self.history_events,
            history_seconds=self.history_seconds,
        )
        twin.compacted, twin.step = self.compacted, self.step
        twin._collections = {name: collection.copy() for name, collection in self._collections.items()}
        return twin

    def load(self, version: int, collections: dict[str, list[Record]]) -> None:
        """Take over saved objects; there is no history from before."""
        self.version = self.compacted = version
        self._collections = {}
        for storage, records in collections.items():
            collection = self.collection(storage)
            collection.records = {record.key: record for record in records}
            collection.keys = sorted(collection.records)

    def contents(self) -> dict[str, list[Record]]:
        """All records by storage name; the lists are the caller's."""
        return {name: list(c.records.values()) for name, c in self._collections.items() if c.records}

    def _record(self, key: str, obj: dict[str, Any], shape: str, fields: dict[str, str] | None) -> Record:
        version = self.version + self.step
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(version)
        return Record(
            key=key,
            version=version,
            uid=metadata.get("uid", ""),
            shape=shape,
            body=msgspec.json.encode(obj),
            labels=metadata.get("labels") or None,
            fields=fields,
        )

    def _commit(self, storage: str, kind: str, record: Record, previous: Record | None) -> Record:
        self.version = record.version
        collection = self.collection(storage)
        now = self._clock.monotonic()
        change = Change(kind, record, previous, now)
        collection.apply(change)
        # In portions, so that dropping from the front of the list stays cheap per write.
        if len(collection.changes) > self.history_events * 1.25 or (
            collection.changes[0].time < now - self.history_seconds * 1.25
        ):
            collection.trim(self.history_events, now - self.history_seconds)
        for observer in self.observers:
            observer(storage, change)
        return record
