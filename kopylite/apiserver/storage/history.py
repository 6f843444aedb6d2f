"""The objects of one collection and their recent history, and the readers' places in it.

A watcher holds no buffer: it is a position in the history of its collection. One that falls behind the kept
window is told so (`Outrun`) and its stream ends; nothing is buffered for it without bound.
"""

from __future__ import annotations

import asyncio
import bisect
import heapq
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

# Sorts behind every character of a key.
_AFTER_ALL = "\U0010ffff"

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Compacted(Exception):
    """History from the asked version on is no longer kept; `oldest` is the oldest that is."""

    def __init__(self, oldest: int) -> None:
        super().__init__(str(oldest))
        self.oldest = oldest


class Outrun(Exception):
    """A watcher was slower than the history window."""


class StoredObject(msgspec.Struct, frozen=True, gc=False):
    """One stored object. `body` is its JSON, resourceVersion included; `encoding_version`: see Resource.

    `labels` and `fields` (the selectable ones besides name and namespace) are what selectors look at.
    """

    key: str
    version: int
    uid: str
    encoding_version: str
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
class StoredChange:
    """One write as watchers see it.

    Attributes:
        record: the object afterwards; of a deletion the last state, with the version of the deletion.
        previous: the object before; None for a creation.
        frames: encoded watch events, made once for all watchers, by whatever tells them apart.
    """

    type: str
    record: StoredObject
    previous: StoredObject | None
    time: float
    frames: dict[Any, bytes] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return self.record.version

    @property
    def size(self) -> int:
        """Bytes that the history may hold for it: the object before and after, and the event once it was encoded."""
        return 2 * len(self.record.body) + (len(self.previous.body) if self.previous is not None else 0)


class Subscription:
    """A reader's place in the history of one collection. Close it when done; forgotten, it holds nothing either."""

    __slots__ = ("__weakref__", "_collection", "position")

    def __init__(self, collection: Collection, position: int) -> None:
        self._collection = collection
        self.position = position
        collection.subscriptions.add(self)

    def take(self, limit: int = 256, limit_bytes: int = 1 << 20) -> list[StoredChange]:
        """The next changes in order, none if there are none yet. Raises Outrun.

        At most `limit`, and one more than fit into `limit_bytes`: who reads slowly keeps them from being forgotten.
        """
        log = self._collection
        start = self.position - log.first
        if start < 0:
            raise Outrun
        changes = log.changes[start : start + limit]
        total = 0
        for taken, change in enumerate(changes, 1):
            total += change.size
            if total > limit_bytes:
                del changes[taken:]
                break
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
                # Woken, it is no longer in the list; a wait that was given up must not stay there for ever.
                if future in log.waiters:
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
        self.records: dict[str, StoredObject] = {}
        self.keys: list[str] = []
        self.oldest = oldest
        self.first = 0
        self.changes: list[StoredChange] = []
        self.waiters: list[asyncio.Future[None]] = []
        # Weak: a stream that nobody ever began to read must not hold the history.
        self.subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()
        self.changes_bytes = 0
        self.closed = False

    def apply(self, change: StoredChange) -> None:
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
        self.changes_bytes += change.size
        self.wake()

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)

    def scan(self, prefix: str, start: str, version: int) -> Iterator[StoredObject]:
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
        return max(0, last - first) + sum((before[key] is not None) - (key in self.records) for key in concerned)

    def _before(self, version: int) -> dict[str, StoredObject | None]:
        """What the objects changed since `version` were then."""
        if version < self.oldest:
            raise Compacted(self.oldest)
        before: dict[str, StoredObject | None] = {}
        for change in reversed(self.changes):
            if change.version <= version:
                break
            before[change.record.key] = change.previous
        return before

    def _merge(self, prefix: str, start: str, before: dict[str, StoredObject | None]) -> Iterator[StoredObject]:
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

    def trim(self, keep: int, before: float, keep_bytes: int) -> None:
        """Keep at most `keep` changes of `keep_bytes` bytes, and none that is older than the time `before`."""
        index = bisect.bisect_left(self.changes, before, key=lambda c: c.time)
        if len(self.changes) - index > keep:
            index = len(self.changes) - keep
        kept = self.changes_bytes - sum(change.size for change in self.changes[:index])
        while kept > keep_bytes and index < len(self.changes):
            kept -= self.changes[index].size
            index += 1
        if index > 0:
            self.oldest = max(self.oldest, self.changes[index - 1].version)
            self._drop(index)

    def _drop(self, count: int) -> None:
        if count > 0:
            self.changes_bytes -= sum(change.size for change in self.changes[:count])
            del self.changes[:count]
            self.first += count

    def copy(self) -> Collection:
        twin = Collection(self.oldest)
        twin.records, twin.keys = dict(self.records), list(self.keys)
        twin.first, twin.changes, twin.changes_bytes = self.first, list(self.changes), self.changes_bytes
        return twin
