"""Store: the objects of one informer, by key, with indexes. Written by the informer alone, read by everybody.

Events are applied in the server's order, so a store that has seen version R has applied every change up to R.
That is what reading your own writes rests on.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from kopylite.cache.indexer import Indexer
from kopylite.cache.record import Record, RecordDecoder
from kopylite.cache.selectors import parse_label_selector
from kopylite.cache.steps import Spaces
from kopylite.objects import Kind, ObjectKey, compare_versions

logger = logging.getLogger("kopylite.cache")


class Delta(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One change of a store: created (old is None), updated, or deleted (new is None).

    The old record of a delete is the last state known: the server's last word on it, or, when the delete itself
    was missed, what was stored. `initial`: it is part of the first state of the kind, not news.
    """

    old: Record | None
    new: Record | None
    initial: bool = False


class _Waiter(msgspec.Struct, frozen=True):
    key: ObjectKey
    version: str
    seen: asyncio.Future[bool]


class Store:
    """The present objects of one kind, as far as the informer's selection goes.

    Args:
        on_index_failure: told the name of an index whenever its function fails on an object.
        partial: it holds some of the objects only: what is not in it may exist.
    """

    def __init__(self, on_index_failure: Callable[[str], None] = lambda name: None, *, partial: bool = False) -> None:
        self.partial = partial
        self._spaces: Spaces = {}
        self._indexer = Indexer(on_index_failure)
        self._newest = ""
        self._waiters: list[_Waiter] = []
        self._body_bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._spaces.values()))

    @property
    def body_bytes(self) -> int:
        """The bytes of all bodies together."""
        return self._body_bytes

    # For readers

    def get(self, key: ObjectKey) -> Record | None:
        space = self._spaces.get(key.namespace)
        return space.get(key.name) if space is not None else None

    def list(
        self, namespace: str = "", labels: str | None = None, index: Mapping[str, str] | None = None
    ) -> list[Record]:
        """The records of a namespace ("": all), that match the label selector and hold these index values.

        An index that was not added before is taken for a dotted path and made now, which decodes every object.

        Raises:
            UsageError: `labels` is no label selector.
        """
        records: Iterable[Record]
        if index:
            keys = self._indexed(namespace, index)
            records = filter(None, map(self.get, keys))
        elif namespace:
            records = self._spaces.get(namespace, {}).values()
        else:
            records = self._all()
        if labels:
            selector = parse_label_selector(labels)
            return [record for record in records if selector.matches(record.labels)]
        return [*records]

    def find_in(self, kind: Kind, bodies: Iterable[bytes], index: Mapping[str, str]) -> builtins.list[bytes]:
        """Of objects as the server lists them, those that the same index functions find.

        Raises:
            StreamBroken: one is no object of the kind.
        """
        for name in index:
            if name not in self._indexer.names:
                self.add_index(name)
        decode, values = RecordDecoder(kind).item, self._indexer.values
        records = map(decode, bodies)
        return [r.body for r in records if all(wanted in values(name, r) for name, wanted in index.items())]

    def newest(self) -> str:
        """The newest version whose changes are all applied; "" before the first list."""
        return self._newest

    async def wait_newer(self, key: ObjectKey, version: str, timeout: float) -> bool:
        """Wait until the store can't show a state of `key` older than `version`.

        Returns:
            False when that did not happen within `timeout` seconds.
        """
        if self._has_seen(key, version):
            return True
        loop = asyncio.get_running_loop()
        waiter = _Waiter(key, version, loop.create_future())
        timer = loop.call_later(timeout, _give_up, waiter.seen)
        self._waiters.append(waiter)
        try:
            return await waiter.seen
        finally:
            timer.cancel()
            self._waiters.remove(waiter)

    # For the informer

    def names(self) -> dict[str, dict[str, None]]:
        """The names of all objects, by namespace: a copy that is cheap even for 100,000 of them."""
        return {namespace: dict.fromkeys(space) for namespace, space in self._spaces.items() if space}

    def add_index(self, name: str, function: Callable[[Record], Iterable[str]] | None = None) -> None:
        """Index by the values of a function, or by a dotted path (the name itself). At any time.

        Raises:
            RegistrationError: the name is taken by another function.
        """
        self._indexer.add(name, function, self._all())

    def known(self, record: Record) -> Record:
        """The stored record if it is the same state, else `record`: a new list needn't hold everything twice."""
        if not self._spaces:
            return record  # the first list
        stored = self.get(record.key)
        return stored if stored is not None and _same_state(stored, record) else record

    def put(self, record: Record, initial: bool = False) -> tuple[Delta, ...]:
        """Store a record. Nothing changes if it is the stored state; another uid is a delete and a create."""
        space = self._spaces.get(record.namespace)
        if space is None:
            space = self._spaces[record.namespace] = {}
        old = space.get(record.name)
        if old is not None:
            if _same_state(old, record):
                return ()
            self._body_bytes -= len(old.body)
        space[record.name] = record
        self._body_bytes += len(record.body)
        if self._indexer.names:
            self._indexer.put(record)
        if old is None or old.uid == record.uid:
            return (Delta(old, record, initial),)
        return Delta(old, None, initial), Delta(None, record, initial)

    def remove(self, key: ObjectKey, last: Record | None = None) -> tuple[Delta, ...]:
        """Forget an object; `last` is the server's last word on it. Nothing happens if it is not stored."""
        space = self._spaces.get(key.namespace)
        old = space.pop(key.name, None) if space is not None else None
        if old is None:
            return ()
        if not space:
            del self._spaces[key.namespace]
        self._body_bytes -= len(old.body)
        self._indexer.remove(key)
        return (Delta(last if last is not None and last.uid == old.uid else old, None),)

    def replace(self, records: Spaces, initial: bool) -> Iterator[tuple[Delta, ...]]:
        """Make the store hold exactly these records: what is missing is deleted first, then the rest is put.

        It happens object by object as the iterator is consumed, so that the caller can pause in between.
        """
        for record in [*self._all()]:
            yield () if record.name in records.get(record.namespace, ()) else self.remove(record.key)
        for space in records.values():
            for record in space.values():
                yield self.put(record, initial)

    def advance(self, version: str) -> None:
        """Every change up to `version` is applied; wakes those who wait for it."""
        self._newest = version
        if self._waiters:
            for waiter in self._waiters:
                if not waiter.seen.done() and self._has_seen(waiter.key, waiter.version):
                    waiter.seen.set_result(True)

    def _has_seen(self, key: ObjectKey, version: str) -> bool:
        if self._newest and compare_versions(self._newest, version) >= 0:
            return True
        record = self.get(key)
        return record is not None and compare_versions(record.resource_version, version) >= 0

    def _all(self) -> Iterator[Record]:
        for space in [*self._spaces.values()]:
            yield from [*space.values()]

    def _indexed(self, namespace: str, index: Mapping[str, str]) -> builtins.list[ObjectKey]:
        found: set[ObjectKey] | None = None
        for name, value in index.items():
            if name not in self._indexer.names:
                self.add_index(name)
                if self._spaces and self._indexer.is_empty(name):
                    logger.info("list by the index %r: no object has a value there yet; is it spelt rightly?", name)
            keys = self._indexer.find(name, value, namespace)
            found = keys if found is None else found & keys
        return sorted(found or ())


def _same_state(old: Record, new: Record) -> bool:
    return old.resource_version == new.resource_version != "" and old.uid == new.uid


def _give_up(seen: asyncio.Future[bool]) -> None:
    if not seen.done():
        seen.set_result(False)
