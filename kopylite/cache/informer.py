"""Informer: one kind, mirrored into a store, with handlers that hear of every change in order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Final

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from kopylite.cache.part import ShardPart
from kopylite.cache.record import Record, RecordDecoder
from kopylite.cache.reflector import Locate, Reflector
from kopylite.cache.steps import Phase, Problem, Replacement
from kopylite.cache.store import Delta, Store
from kopylite.cache.watchstate import WatchState
from kopylite.clock import Clock
from kopylite.errors import ApiError, TransportError
from kopylite.objects import Kind, ObjectKey
from kopylite.observers import InformerObserver

logger = logging.getLogger("kopylite.cache")

DeltaHandler = Callable[[Delta], None]

# Objects dealt with between two pauses: at 20 µs each, other tasks wait no longer than 10 ms.
BATCH: Final = 500
# A watch that has failed for longer than this no longer counts as in sync. Shorter gaps are everyday life: a
# server restarts, a load balancer moves.
UNSYNCED_AFTER: Final = 60.0
# Informers that fail alike within so long fail of one cause; those that come later may have another.
SAME_TROUBLE: Final = 30.0


class Scope(msgspec.Struct, frozen=True):
    """What one informer mirrors: the objects of a kind, of a namespace ("": all), that match the selectors.

    `part`: and are of one shard; the others are dropped as they come.
    """

    kind: Kind
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    part: ShardPart | None = None

    @property
    def whole(self) -> bool:
        """Nothing of the kind and namespace is left out, so that reads may rely on it."""
        return not (self.labels or self.fields or self.metadata_only or self.part)

    def __str__(self) -> str:
        parts = [str(self.kind), self.namespace and f"namespace {self.namespace}", self.labels, self.fields]
        parts.append(str(self.part or ""))
        return " ".join(filter(None, parts))


class InformerStatistics(msgspec.Struct, frozen=True):
    """The present state of an informer. Ages are in seconds; None: it never happened.

    Attributes:
        synced: as `Informer.synced`.
        phase: what it is doing.
        version: the newest version whose changes are all applied.
        objects, body_bytes: what the store holds.
        handlers: how many there are.
        last_event_age: since the last change or bookmark.
        last_byte_age: since anything came on the watch, or it was opened, or the server said that it has missed
            nothing. While phase is "watching" it grows past two minutes only if nobody reads the watch any more.
        problem: the last error, while the watch does not work; "" when it does.
        problem_age: since when it does not.
    """

    scope: Scope
    synced: bool
    phase: Phase
    version: str
    objects: int
    body_bytes: int
    handlers: int
    last_event_age: float | None
    last_byte_age: float | None
    problem: str
    problem_age: float


class Handle:
    """One registered handler. What it is told of an object begins with a create and is in order."""

    __slots__ = ("_backlog", "_call", "_caught_up")

    def __init__(self, call: DeltaHandler, backlog: dict[str, dict[str, None]]) -> None:
        self._call = call
        # Objects that were stored before the handler came, and that it has not been told of yet.
        self._backlog = backlog
        self._caught_up = anyio.Event()

    @property
    def synced(self) -> bool:
        """It has been told of every object of the first state."""
        return self._caught_up.is_set()

    async def wait_synced(self) -> None:
        """Wait until the handler has been told of every object of the first state."""
        await self._caught_up.wait()

    def _tell(self, delta: Delta) -> None:
        if self._backlog:
            record = delta.new or delta.old
            if record is not None and self._strike_off(record.namespace, record.name):
                if delta.new is None:
                    return
                delta = Delta(None, delta.new, True)
        try:
            self._call(delta)
        except Exception:
            logger.exception("a handler failed on %s: other handlers are not affected", delta.new or delta.old)

    def _strike_off(self, namespace: str, name: str) -> bool:
        """Take an object off the backlog; whether it was there."""
        names = self._backlog.get(namespace)
        if names is None or name not in names:
            return False
        del names[name]
        if not names:
            del self._backlog[namespace]
        return True


class Informer:
    """Mirrors a scope of the server's objects for as long as `run` runs.

    Guarantees: handlers and readers see every change in the server's order, the store first; a missed delete is
    found at the next list; a missing kind is waited for; no error of the server or the network ends it.

    Args:
        scope: what to mirror.
        locate: finds the collection on the server.
        clock: of time and jitter.
        observer: is told of events and failures.
        unstreamed: kinds that the server is known not to stream; shared, so that it is found out only once.
        told: when which cause of trouble was told; shared, so that what stops many informers is one line.

    Attributes:
        has_state: the store holds a whole state of a kind that exists. It may be old: see `synced`.
    """

    def __init__(
        self,
        scope: Scope,
        locate: Locate,
        *,
        clock: Clock,
        observer: InformerObserver,
        unstreamed: set[Kind],
        told: dict[Hashable, float] | None = None,
    ) -> None:
        self.scope = scope
        self.store = Store(observer.index_failed, partial=scope.part is not None)
        self._clock = clock
        self._unstreamed = unstreamed
        self._told = {} if told is None else told
        self._state = WatchState(streaming=scope.kind not in unstreamed)
        self._reflector = Reflector(
            str(scope),
            self._state,
            locate,
            RecordDecoder(scope.kind, metadata_only=scope.metadata_only),
            self,
            clock,
            observer,
            self._is_news,
        )
        self._handles: list[Handle] = []
        self.has_state = False
        self._complete = anyio.Event()  # replaced by a new one when the kind goes
        self._tried = anyio.Event()
        self._last_event: float | None = None
        self._tasks: TaskGroup | None = None

    @property
    def synced(self) -> bool:
        """The store holds a whole state, and the watch works, or has not worked for 60 s at most."""
        problem = self.problem
        late = problem is not None and self._clock.monotonic() - problem.since > UNSYNCED_AFTER
        return self.has_state and not late

    @property
    def problem(self) -> Problem | None:
        """Why the watch does not work, and since when; None if it does."""
        return self._state.problem(self._clock.monotonic())

    async def wait_synced(self) -> None:
        """Wait until the store holds a whole state and every handler has been told of it."""
        await self._complete.wait()

    async def wait_tried(self) -> None:
        """Wait until the store holds a whole state, or the first try to get one has failed."""
        await self._tried.wait()

    async def run(self) -> None:
        """Mirror until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            await self._reflector.run()

    def add_handler(self, call: DeltaHandler) -> Handle:
        """Have `call` told of every change from now on, and of what is stored already as initial creates.

        It is called from the event loop, must not block, and ought not to raise.
        """
        handle = Handle(call, self.store.names())
        self._handles = [*self._handles, handle]  # a new list: the old one may be in use
        if handle._backlog and self._tasks is not None:
            self._tasks.start_soon(self._replay, handle)
        elif self.has_state:
            handle._caught_up.set()
        return handle

    def remove_handler(self, handle: Handle) -> None:
        """Tell it nothing more. Harmless when repeated."""
        self._handles = [other for other in self._handles if other is not handle]
        handle._backlog.clear()

    def statistics(self) -> InformerStatistics:
        now, problem = self._clock.monotonic(), self.problem
        heard = self._state.heard
        return InformerStatistics(
            scope=self.scope,
            synced=self.synced,
            phase=self._state.phase,
            version=self.store.newest(),
            objects=len(self.store),
            body_bytes=self.store.body_bytes,
            handlers=len(self._handles),
            last_event_age=None if self._last_event is None else now - self._last_event,
            last_byte_age=now - heard if heard else None,
            problem=_text(problem.error) if problem else "",
            problem_age=now - problem.since if problem else 0.0,
        )

    # Sink: called by the reflector

    def wants(self, record: Record) -> bool:
        return self.scope.part is None or self.scope.part.holds(record)

    def known(self, record: Record) -> Record:
        return self.store.known(record)

    def changed(self, word: str, record: Record) -> None:
        # What is not of this part any more, or has taken the name of what was, is as good as deleted.
        part = self.scope.part
        goes = word == "DELETED" or (part is not None and not part.holds(record))
        for delta in self.store.remove(record.key, record) if goes else self.store.put(record):
            self._tell(delta)

    def advanced(self, version: str) -> None:
        self._last_event = self._state.heard
        self.store.advance(version)

    async def replace(self, snapshot: Replacement) -> None:
        if snapshot.gone:
            self.has_state, self._complete = False, anyio.Event()
        if not self._state.streaming:
            self._unstreamed.add(self.scope.kind)
        for count, deltas in enumerate(self.store.replace(snapshot.records, snapshot.initial), start=1):
            for delta in deltas:
                self._tell(delta)
            if count % BATCH == 0:
                await anyio.lowlevel.checkpoint()
        self._last_event = self._clock.monotonic()
        self.store.advance(snapshot.version)
        if not snapshot.gone:
            self.has_state = True
            self._complete.set()
            self._tried.set()
            for handle in self._handles:
                if not handle._backlog:
                    handle._caught_up.set()

    def failed(self) -> None:
        self._tried.set()

    def _is_news(self, error: Exception) -> bool:
        """A server that is away stops all informers alike; what it refuses, those of one kind in all namespaces."""
        cause = type(error), None if isinstance(error, TransportError) else self.scope.kind
        now, last = self._clock.monotonic(), self._told.get(cause)
        if last is not None and now - last < SAME_TROUBLE:
            return False
        self._told[cause] = now
        return True

    def _tell(self, delta: Delta) -> None:
        for handle in self._handles:
            handle._tell(delta)

    async def _replay(self, handle: Handle) -> None:
        """Tell a late handler of what was there before it."""
        backlog = handle._backlog
        while backlog:
            namespace, names = next(iter(backlog.items()))
            for name in [*islice(names, BATCH)]:
                record = self.store.get(ObjectKey(namespace, name))
                if handle._strike_off(namespace, name) and record is not None:
                    handle._tell(Delta(None, record, True))
            await anyio.lowlevel.checkpoint()
        if self.has_state:
            handle._caught_up.set()


def _text(error: Exception) -> str:
    """An ApiError's own text begins with its name."""
    return str(error) if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"
