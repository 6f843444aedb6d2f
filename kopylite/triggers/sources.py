"""Sources: where a controller learns which keys changed. Each is run by the controller that it was made for."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from contextlib import aclosing, nullcontext
from functools import partial
from typing import Final

import anyio

from kopylite.boundary import CHANNEL, PERIODIC, PREDICATE, ActiveCall, CallFailed, Guard, name_of
from kopylite.cache import Delta, Handle, Informer, Informers
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.objects import HasKey, Kind
from kopylite.reconcile.chains import ChangeReason, Version
from kopylite.reconcile.request import Request
from kopylite.triggers.echoes import Echoes, Reads
from kopylite.triggers.events import Event, EventType, event_of
from kopylite.triggers.handlers import (
    LOW_PRIORITY,
    NORMAL_PRIORITY,
    BackgroundHandler,
    Enqueue,
    EnqueueMapped,
    Handler,
    PreparedHandler,
)
from kopylite.triggers.predicates import Predicate
from kopylite.workqueue import RateLimit

logger = logging.getLogger("kopylite.triggers")

# A channel that breaks is opened again after 1 s, and after 60 s at most.
REOPEN: Final = RateLimit(first=1.0, longest=60.0)


def guard_of(
    predicate: Predicate, clock: Clock = SYSTEM_CLOCK, observe: Callable[[str, str], None] = lambda name, result: None
) -> Guard[[Event], bool]:
    """The guard of a predicate. `observe` is told its name and "error" whenever it fails."""
    name = name_of(predicate)
    # Its answer is the user's too: asked for its truth, it may raise.
    return Guard(
        PREDICATE,
        lambda event: bool(predicate(event)),
        name=name,
        now=clock.monotonic,
        observe=lambda result: observe(name, result),
    )


def only(enqueue: Enqueue, admits: Callable[[Request], bool] | None) -> Enqueue:
    """An Enqueue that drops all keys but some; None: it drops none."""
    if admits is None:
        return enqueue

    def enqueue_some(request: Request, reason: str, priority: int) -> None:
        if admits(request):
            enqueue(request, reason, priority)

    return enqueue_some


class KindSource:
    """The changes of one kind, by an informer of the shared cache.

    It holds the informer from its making until `close`, so that reads stay cached while a stopped controller's last
    reconciles finish.

    Args:
        cache: has the informers.
        kind: what to watch.
        handler: says whose reconcile an event concerns.
        predicate: drops events. An event on which it raises passes. See `guard_of`.
        namespace: "" for all.
        labels, fields: narrow what the server sends, and thus also what is cached.
        metadata_only: only metadata is sent.

    Attributes:
        admits: of its keys, only these are enqueued; None: all. To be set before it runs.
        asks: told of each change before the predicate is; says why the object itself is to run, or "". Then an update
            that the predicate drops counts as if the object had just been created. None: nobody asks.
        reads: where reads of the kind come from. Where that is another cache than this watch's, an event that is ahead
            of it is handed on twice: see Echoes. To be set before it runs; None: nobody reads.
    """

    def __init__(
        self,
        cache: Informers,
        kind: Kind,
        handler: Handler | BackgroundHandler,
        *,
        predicate: Predicate | Guard[[Event], bool] | None = None,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> None:
        self.admits: Callable[[Request], bool] | None = None
        self.asks: Callable[[Event], str] | None = None
        self.reads: Reads | None = None
        self.informer: Informer = cache.acquire(
            kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )
        self._echoes: Echoes | None = None
        self._cache = cache
        self._watched = kind.kind
        self._handler = handler
        self._predicate = guard_of(predicate) if isinstance(predicate, Predicate) else predicate
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
        enqueue = only(enqueue, self.admits)
        if isinstance(self._handler, PreparedHandler):
            await self._handler.prepare()  # nothing is missed: a late handler is told of all that is there
        scope = self.informer.scope
        if self.reads is not None and (scope.labels or scope.fields or scope.metadata_only):
            self._echoes = Echoes(scope.kind, self.informer.store, self.reads)
        self._handle = self.informer.add_handler(partial(self._deliver, enqueue))
        self._begun.set()
        try:
            if self._echoes is None:
                await self._work(enqueue)
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._echoes.run, partial(self._hand_on, enqueue))
                await self._work(enqueue)
        finally:
            self.informer.remove_handler(self._handle)

    async def _work(self, enqueue: Enqueue) -> None:
        if isinstance(self._handler, BackgroundHandler):
            await self._handler.run(self._watched, enqueue)
        else:
            await anyio.sleep_forever()

    def close(self) -> None:
        """Give the informer back. To be called once, when it doesn't run any more."""
        self._cache.release(self.informer)

    def _deliver(self, enqueue: Enqueue, delta: Delta) -> None:
        event = event_of(delta)
        if self._echoes is not None:
            self._echoes.note(event)
        self._hand_on(enqueue, event)

    def _hand_on(self, enqueue: Enqueue, event: Event) -> None:
        new, ask = event.new, enqueue
        why = self.asks(event) if self.asks is not None else ""
        if self._passes(event) or (why and new is not None and self._passes(Event(EventType.CREATE, None, new))):
            if new is not None and not event.initial and not event.unchanged:
                enqueue = partial(_enqueue_change, enqueue, Version(new.uid, new.resource_version))
            self._handler.handle(event, self._watched, enqueue)
            if why and new is not None:
                ask(Request(new.namespace, new.name), why, NORMAL_PRIORITY)

    def _passes(self, event: Event) -> bool:
        guard = self._predicate
        return guard is None or guard.call(lambda: f"{self._watched} {event.record.key}", True, event)

    def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
        """The calls of a map function that are in progress for longer than some seconds."""
        return self._handler.active_calls(longer_than) if isinstance(self._handler, EnqueueMapped) else []


def _enqueue_change(enqueue: Enqueue, to: Version, request: Request, reason: str, priority: int) -> None:
    enqueue(request, ChangeReason.of(reason, to), priority)


class ChannelSource:
    """Keys that come from outside of the cluster: from a message queue, a webhook, another part of the program.

    Args:
        open_channel: returns the stream of keys. It is called again, after a pause, when the stream raises; when
            the stream ends, so does the source.
        name: for logs and reasons.
        clock: of the pause.
    """

    def __init__(
        self,
        open_channel: Callable[[], AsyncIterable[HasKey]],
        *,
        name: str = "channel",
        clock: Clock = SYSTEM_CLOCK,
        observe: Callable[[str], None] = lambda result: None,
    ) -> None:
        self._observe = observe
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

        async def read() -> None:
            nonlocal failures
            stream = self._open()
            # What is no key ends the stream too; its own `finally` must not wait for the garbage collector then.
            async with aclosing(stream) if isinstance(stream, AsyncGenerator) else nullcontext():
                async for key in stream:
                    enqueue(Request.of(key), reason, NORMAL_PRIORITY)
                    failures = 0

        guard: Guard[[], None] = Guard(CHANNEL, read, name=self.name, now=self._clock.monotonic, observe=self._observe)
        while True:
            try:
                await guard.run("its stream")
                logger.warning(
                    "channel %s has ended: it brings no more keys; one that ought to go on has to wait", self.name
                )
                return
            except CallFailed as failed:
                delay = REOPEN.delay(failures, self._clock.random())
                failures += 1
                guard.report(failed, "its stream", delay)
            await self._clock.sleep(delay)


class PeriodicSource:
    """Asks for a run of some keys again and again, with low priority: for what no event tells of.

    Args:
        every: seconds between two rounds. Each pause is 10 % shorter or longer, so that controllers drift apart.
        keys: whose run; asked at each round. When it fails, the round is repeated after 1 s, doubling to 60 s.
        name: for logs and reasons.
        clock: of the pauses.
        timeout: seconds after which a round counts as failed; None: never.
        observe: told of each round: "success", "error" or "timeout".
    """

    def __init__(
        self,
        every: float,
        keys: Callable[[], Awaitable[Iterable[HasKey]]],
        *,
        name: str = "timer",
        clock: Clock = SYSTEM_CLOCK,
        timeout: float | None = None,
        observe: Callable[[str], None] = lambda result: None,
    ) -> None:
        if every <= 0:
            raise ValueError(f"every must be above 0, not {every}")
        self.name = name
        self.namespace = ""
        self._every = every
        self._keys = keys
        self._clock = clock
        self._guard: Guard[[], list[Request]] = Guard(
            PERIODIC, self._requests, name=name, now=clock.monotonic, timeout=timeout, observe=observe
        )

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
            for request in await self._round():
                enqueue(request, self.name, LOW_PRIORITY)

    def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
        """The round in progress, if it is older than some seconds."""
        return self._guard.active(longer_than)

    async def _round(self) -> list[Request]:
        """The keys of one round, asked for until they are there."""
        failures = 0
        while True:
            try:
                return await self._guard.run("its round")
            except CallFailed as failed:
                delay = REOPEN.delay(failures, self._clock.random())
                failures += 1
                self._guard.report(failed, "its round", delay)
            await self._clock.sleep(delay)

    async def _requests(self) -> list[Request]:
        return Request.all_of(await self._keys())
