"""Sources: where a controller learns which keys changed. Each is run by the controller that it was made for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from typing import Final

import anyio

from kopylite.cache import Delta, Handle, Informer, SharedCache
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.objects import HasKey, Kind
from kopylite.reconcile.request import Request
from kopylite.triggers.events import Event, EventType, event_of
from kopylite.triggers.handlers import (
    LOW_PRIORITY,
    NORMAL_PRIORITY,
    BackgroundHandler,
    Enqueue,
    Handler,
    PreparedHandler,
)
from kopylite.triggers.predicates import Predicate
from kopylite.workqueue import RateLimit

_log: Final = logging.getLogger("kopylite.triggers")

# A channel that breaks is opened again after 1 s, and after 60 s at most.
REOPEN: Final = RateLimit(first=1.0, longest=60.0)


class KindSource:
    """The changes of one kind, by an informer of the shared cache.

    It holds the informer from its making until `close`, so that reads stay cached while a stopped controller's last
    reconciles finish.

    Args:
        cache: has the informers.
        kind: what to watch.
        handler: says whose reconcile an event concerns.
        predicate: drops events. An event on which it raises passes.
        namespace: "" for all.
        labels, fields: narrow what the server sends, and thus also what is cached.
        metadata_only: only metadata is sent.
    """

    def __init__(
        self,
        cache: SharedCache,
        kind: Kind,
        handler: Handler | BackgroundHandler,
        *,
        predicate: Predicate | None = None,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> None:
        self.informer: Informer = cache.acquire(
            kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )
        self._cache = cache
        self._watched = kind.kind
        self._handler = handler
        self._predicate = predicate
        self._handle: Handle | None = None
        self._begun = anyio.Event()

    @property
    def name(self) -> str:
        return str(self.informer.scope)

    @property
    def namespace(self) -> str:
        """The one that it watches; "" for all."""
        return self.informer.scope.namespace

    @property
    def synced(self) -> bool:
        """The handler was told of everything that existed when it began."""
        return self._handle is not None and self._handle.synced

    async def wait_synced(self) -> None:
        await self._begun.wait()
        assert self._handle is not None
        await self._handle.wait_synced()

    async def run(self, enqueue: Enqueue) -> None:
        """Hand events to the handler until cancelled."""
        if isinstance(self._handler, PreparedHandler):
            await self._handler.prepare()  # nothing is missed: a late handler is told of all that is there
        self._handle = self.informer.add_handler(partial(self._deliver, enqueue))
        self._begun.set()
        try:
            if isinstance(self._handler, BackgroundHandler):
                await self._handler.run(self._watched, enqueue)
            else:
                await anyio.sleep_forever()
        finally:
            self.informer.remove_handler(self._handle)

    def close(self) -> None:
        """Give the informer back. To be called once, when it doesn't run any more."""
        self._cache.release(self.informer)

    def _deliver(self, enqueue: Enqueue, delta: Delta) -> None:
        event = event_of(delta)
        if self._predicate is None or self._passes(self._predicate, event):
            self._handler.handle(event, self._watched, enqueue)

    def _passes(self, predicate: Predicate, event: Event) -> bool:
        try:
            return predicate(event)
        except Exception:
            _log.exception("a predicate failed on %s %s: the event passes", self._watched, event.record.key)
            return True


class ChannelSource:
    """Keys that come from outside of the cluster: from a message queue, a webhook, another part of the program.

    Args:
        open_channel: returns the stream of keys. It is called again, after a pause, when the stream raises; when
            the stream ends, so does the source.
        name: for logs and reasons.
        clock: of the pause.
    """

    def __init__(
        self, open_channel: Callable[[], AsyncIterable[HasKey]], *, name: str = "channel", clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.name = name
        self.namespace = ""
        self._open = open_channel
        self._clock = clock

    @property
    def synced(self) -> bool:
        """Always: what a channel will bring can't be waited for."""
        return True

    async def wait_synced(self) -> None:
        return

    async def run(self, enqueue: Enqueue) -> None:
        """Enqueue each key that comes, until the stream ends."""
        reason = f"{EventType.GENERIC.value} by {self.name}"
        failures = 0
        while True:
            try:
                async for key in self._open():
                    enqueue(Request.of(key), reason, NORMAL_PRIORITY)
                    failures = 0
                return
            except Exception as error:
                delay = REOPEN.delay(failures, self._clock.random())
                failures += 1
                _log.warning("%s broke: %r; opening it again in %.1f s", self.name, error, delay)
            await self._clock.sleep(delay)


class PeriodicSource:
    """Asks for a run of some keys again and again, with low priority: for what no event tells of.

    Args:
        every: seconds between two rounds. Each pause is 10 % shorter or longer, so that controllers drift apart.
        keys: whose run; asked at each round. When it fails, the round is left out.
        name: for logs and reasons.
        clock: of the pauses.
    """

    def __init__(
        self,
        every: float,
        keys: Callable[[], Awaitable[Iterable[HasKey]]],
        *,
        name: str = "timer",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if every <= 0:
            raise ValueError(f"every must be above 0, not {every}")
        self.name = name
        self.namespace = ""
        self._every = every
        self._keys = keys
        self._clock = clock

    @property
    def synced(self) -> bool:
        """Always: its first round comes later."""
        return True

    async def wait_synced(self) -> None:
        return

    async def run(self, enqueue: Enqueue) -> None:
        """Enqueue each round's keys until cancelled; the first round comes after one pause."""
        while True:
            await self._clock.sleep(self._every * (0.9 + 0.2 * self._clock.random()))
            try:
                keys = await self._keys()
            except Exception as error:
                _log.warning("%s: no keys this time: %r", self.name, error)
                continue
            for key in keys:
                enqueue(Request.of(key), self.name, LOW_PRIORITY)
