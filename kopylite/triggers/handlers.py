"""Handlers: whose reconcile an event concerns.

None of them loses an event: one bad owner reference doesn't hide the others, and a map function that fails is
called again until it succeeds.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, runtime_checkable

import anyio
import msgspec

from kopylite.boundary import MAP, ActiveCall, CallFailed, Guard
from kopylite.cache import Record
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import RegistrationError
from kopylite.objects import HasKey, Kind, ObjectKey, OwnerReference, Shard
from kopylite.reconcile.request import Request
from kopylite.triggers.events import Event
from kopylite.workqueue import RateLimit, RateLimiter, WorkQueue

logger = logging.getLogger("kopylite.triggers")

LOW_PRIORITY: Final = -100  # controller-runtime's value
NORMAL_PRIORITY: Final = 0

# Map functions that run at the same time, per watch: enough to hide the latency of live reads.
MAPPERS: Final = 4
# A map function that fails usually lacks a permission or a server; 0.1 s to 60 s, doubling.
MAP_RETRIES: Final = RateLimit(first=0.1, longest=60.0)

Enqueue = Callable[[Request, str, int], None]
"""Ask for a run: the key, why (a few words, for people), and the priority. Returns at once and never raises."""


class Handler(Protocol):
    """Turns the events of one watch into requests."""

    def handle(self, event: Event, watched: str, enqueue: Enqueue) -> None:
        """Deal with one event of the kind `watched`. Must not block."""


@runtime_checkable
class PreparedHandler(Handler, Protocol):
    """A Handler that has to know something before its first event."""

    async def prepare(self) -> None:
        """Return when it knows."""


@runtime_checkable
class BackgroundHandler(Handler, Protocol):
    """A Handler that has work of its own."""

    async def run(self, watched: str, enqueue: Enqueue) -> None:
        """Work until cancelled."""


def priority_of(event: Event) -> int:
    """Low for what is no news: the first state of a kind, and updates that repeat a state."""
    return LOW_PRIORITY if event.initial or event.unchanged else NORMAL_PRIORITY


class Scopes(Protocol):
    """Knows which kinds are namespaced: a SharedCache."""

    def is_namespaced(self, kind: Kind) -> bool | None:
        """None: it is not known yet."""

    async def wait_scope(self, kind: Kind) -> None:
        """Return when it is known."""


class EnqueueObject:
    """Asks for a run of the object itself."""

    __slots__ = ()

    def handle(self, event: Event, watched: str, enqueue: Enqueue) -> None:
        record = event.record
        # All objects of a first list have the same reason: it is kept once.
        reason = sys.intern(f"{watched} {event.type.word}")
        enqueue(Request(record.namespace, record.name), reason, priority_of(event))


class EnqueueOwner:
    """Asks for a run of the object's owners of one kind, those of its old state included.

    Owners are matched by group and kind, of whatever version.

    Args:
        owner: the kind.
        controller_only: only the reference that is marked as the controller counts.
        shard: only owners in it count; None: all.
        scopes: knows whether the owner is namespaced, which a reference does not tell; without it the `Kind` does.

    Raises:
        RegistrationError: nothing says the scope.
    """

    __slots__ = ("_controller_only", "_group_kind", "_owner", "_scopes", "_shard")

    def __init__(
        self, owner: Kind, *, controller_only: bool = True, scopes: Scopes | None = None, shard: Shard | None = None
    ) -> None:
        if scopes is None and owner.namespaced is None:
            raise RegistrationError(f"events of what {owner} owns: nothing says whether {owner} is namespaced")
        self._owner = owner
        self._group_kind = owner.group_kind
        self._scopes = scopes
        self._controller_only = controller_only
        self._shard = shard

    async def prepare(self) -> None:
        """Wait for the scope: a guess would be the key of another object, and one that is always gone."""
        if self._scopes is not None:
            await self._scopes.wait_scope(self._owner)

    def handle(self, event: Event, watched: str, enqueue: Enqueue) -> None:
        names: dict[str, None] = {}
        for record in (event.new, event.old):
            if record is not None:
                for reference in record.owner_references:
                    if self._matches(reference):
                        names[reference.name] = None
        if names:
            record, owner = event.record, self._owner
            namespaced = owner.namespaced if self._scopes is None else self._scopes.is_namespaced(owner)
            assert namespaced is not None, "see prepare"
            if namespaced and not record.namespace:
                return  # an owner in a namespace can own nothing outside of it; the garbage collector thinks so too
            namespace = record.namespace if namespaced else ""
            reason, priority = f"{watched} {record.key} {event.type.word}", priority_of(event)
            for name in names:
                enqueue(Request(namespace, name), reason, priority)

    def _matches(self, reference: OwnerReference) -> bool:
        group, kind = self._group_kind
        if reference.kind != kind or reference.group != group or not reference.name:
            return False
        if self._shard is not None and not self._shard.holds(reference.uid):
            return False
        return reference.controller is True or not self._controller_only


class _Unmapped(msgspec.Struct, frozen=True):
    """What is to be mapped of one object: its state before the first event that is not mapped yet, and the newest.

    `enqueue` knows the event; None when there is more than one.
    """

    old: Record | None
    new: Record | None
    what: str
    enqueue: Enqueue | None = None


class EnqueueMapped:
    """Asks for a run of what an async function names, for the old and the new state of the object.

    The function may fail: it is called again with back-off, until it succeeds. Events of one object that come
    meanwhile are merged, so memory is bounded by the number of objects; what the first old state and the newest
    state map to always gets its run. It never runs twice at once for one object.

    Args:
        function: names the keys to reconcile.
        name: of the function, for reasons and logs.
        clock: of the back-off.
        timeout: seconds after which a call is cancelled, to be made again; None: never.
        observe: told of each call: "success", "error" or "timeout".
    """

    def __init__(
        self,
        function: Callable[[Record], Awaitable[Iterable[HasKey]]],
        *,
        name: str = "",
        clock: Clock = SYSTEM_CLOCK,
        timeout: float | None = None,
        observe: Callable[[str], None] = lambda result: None,
    ) -> None:
        self._function = function
        self._guard: Guard[[_Unmapped], dict[Request, None]] = Guard(
            MAP,
            self._requests,
            name=name or getattr(function, "__name__", type(function).__name__),
            now=clock.monotonic,
            timeout=timeout,
            observe=observe,
        )
        self._unmapped: dict[ObjectKey, _Unmapped] = {}
        self._queue: WorkQueue[ObjectKey] = WorkQueue(clock=clock, rate_limiter=RateLimiter(MAP_RETRIES))

    def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
        """The calls in progress that are older than some seconds."""
        return self._guard.active(longer_than)

    def __len__(self) -> int:
        """Objects whose last event is not mapped yet, those whose function runs now left out."""
        return len(self._unmapped)

    def handle(self, event: Event, watched: str, enqueue: Enqueue) -> None:
        key = event.record.key
        self._merge(key, _Unmapped(event.old, event.new, event.type.word, enqueue))
        self._queue.add(key, priority=priority_of(event))

    async def run(self, watched: str, enqueue: Enqueue) -> None:
        """Call the function for what was handled, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(MAPPERS):
                    tasks.start_soon(self._work, watched, enqueue)
        finally:
            self._queue.shut_down()  # or its timer for a failed object outlives the source

    async def _work(self, watched: str, enqueue: Enqueue) -> None:
        while True:
            key, priority = await self._queue.get()
            try:
                await self._map(key, priority, watched, enqueue)
            finally:
                self._queue.done(key)

    async def _map(self, key: ObjectKey, priority: int, watched: str, enqueue: Enqueue) -> None:
        unmapped = self._unmapped.pop(key)
        try:
            requests = await self._guard.run(f"{watched} {key}", unmapped)
        except CallFailed as failed:
            newer = self._unmapped.pop(key, None)
            self._unmapped[key] = unmapped
            if newer is not None:
                self._merge(key, newer)
            delay = self._queue.add_rate_limited(key, priority=priority)
            self._guard.report(failed, f"{watched} {key}", delay)
            return
        self._queue.forget(key)
        reason = f"{watched} {key} {unmapped.what} via {self._guard.name}"
        for request in requests:
            (unmapped.enqueue or enqueue)(request, reason, priority)

    async def _requests(self, unmapped: _Unmapped) -> dict[Request, None]:
        requests: dict[Request, None] = {}
        for record in (unmapped.old, unmapped.new):
            if record is not None:
                requests |= dict.fromkeys(Request.all_of(await self._function(record)))
        return requests

    def _merge(self, key: ObjectKey, unmapped: _Unmapped) -> None:
        earlier = self._unmapped.get(key)
        if earlier is not None:
            # What was created and is not mapped yet has no old state that anybody could have acted on.
            unmapped = _Unmapped(earlier.old, unmapped.new or unmapped.old, unmapped.what)
        self._unmapped[key] = unmapped
