"""Echoes: events that are handed on once more, when reads show what they tell of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import anyio

from kopylite.cache import Store
from kopylite.objects import Kind, ObjectKey, compare_versions
from kopylite.triggers.events import Event

# A cache that is so far behind has lost its watch, which says so itself.
LOOK_AGAIN: Final = 30.0


class Reads(Protocol):
    """Where reads of a kind come from; None: from the server."""

    def store_for(self, kind: Kind, namespace: str) -> Store | None: ...


class Echoes:
    """Events of a watch with a cache of its own, where reads of its kind come from another cache.

    A watch that is narrowed by labels, by fields, or to metadata is such a one, if somebody watches all objects of the
    kind. Both caches follow the server, each at its own pace. A run that an event starts may then read the state from
    before it, and no other event would run the key again. So the event is handed on at once, and once more when the
    other cache has reached it. Of an object, the newest event is kept, and none where reads are up to date.

    Args:
        kind: of the objects.
        own: the cache of the watch.
        reads: where reads come from.
    """

    def __init__(self, kind: Kind, own: Store, reads: Reads) -> None:
        self._kind, self._own, self._reads = kind, own, reads
        self._early: dict[ObjectKey, Event] = {}
        self._noted = anyio.Event()

    def __len__(self) -> int:
        return len(self._early)

    def note(self, event: Event) -> None:
        """Keep an event that reads do not show yet."""
        store = self._reads.store_for(self._kind, event.record.namespace)
        if store is None or store is self._own or _shows(store, event):
            return
        self._early[event.record.key] = event
        self._noted.set()

    async def run(self, hand_on: Callable[[Event], None]) -> None:
        """Hand on what was kept, each when reads show it, until cancelled."""
        while True:
            if not self._early:
                self._noted = anyio.Event()
                await self._noted.wait()
            key, event = next(iter(self._early.items()))
            store = self._reads.store_for(self._kind, key.namespace)
            # Without a store, runs read from the server; but one before may have read from the store that there was.
            shown = store is None or await store.wait_newer(key, event.record.resource_version, LOOK_AGAIN)
            if self._early[key] is not event:
                continue  # a newer one came, which is waited for instead
            del self._early[key]
            if shown:
                hand_on(event)
            else:
                self._early[key] = event  # behind the others


def _shows(store: Store, event: Event) -> bool:
    newest = store.newest()
    return bool(newest) and compare_versions(newest, event.record.resource_version) >= 0
