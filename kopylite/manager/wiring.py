"""Wiring: from the declarations of an App to the sources of its controllers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import msgspec

from kopylite.boundary import CHANNEL, MAP, PERIODIC, PREDICATE
from kopylite.cache import Informer, Informers, PartCache, Record, ShardPart, SharedCache
from kopylite.client import Resources
from kopylite.client.selecting import label_selector_text
from kopylite.clock import Clock
from kopylite.controller import Channel, ControllerSpec, MapFunction, Periodic, Source, Watch
from kopylite.errors import DecodeError, KopyliteError
from kopylite.objects import Kind, adapter_of, kind_of
from kopylite.reconcile import Context, Environment, Request
from kopylite.reconcile.context import in_run
from kopylite.triggers import (
    BackgroundHandler,
    ChannelSource,
    Enqueue,
    EnqueueMapped,
    EnqueueObject,
    EnqueueOwner,
    Handler,
    KindSource,
    PeriodicSource,
    guard_of,
)

ALL_NAMESPACES = ("",)

# A kind that is only read holds a controller up for so long at most: it may be one that the cluster does not have.
GATE_SECONDS = 10.0
# A map function reads a few objects. One that takes longer hangs, and holds one of the few that run at a time.
MAP_SECONDS = 60.0

MakeHandler = Callable[[], Handler | BackgroundHandler]


def sources_of(
    spec: ControllerSpec,
    environment: Environment,
    cache: SharedCache,
    places: Places,
    own: list[KindSource],
    complete: FirstSync,
) -> list[KindSource]:
    """The sources of a controller in some places: its own kind first, then what it owns, then what it watches.

    With a shard, its own kind and what it owns are of that shard only. What is watched otherwise is cached whole, since
    it may concern any key; of these keys only those count whose object is in the shard's cache. No run is lost by
    that: an object that comes into the cache has one.

    Args:
        own: the sources of its own kind, wherever they are; those that are made now are added.
        complete: map functions wait for it.
    """
    owner, shard = kind_of(spec.kind), environment.shard
    sources: list[KindSource] = []

    def add(watch: Watch, default: MakeHandler, part: ShardPart | None = None) -> list[KindSource]:
        make = default if watch.map is None else _mapping(watch.map, watch, spec.timeout, environment, complete.wait)
        whole = part is None or watch.map is not None
        informers: Informers = cache if part is None or whole else PartCache(cache, part)
        made = list(_sources(watch, make, informers, places, environment))
        for source in made:
            source.reads = cache
            if whole and shard is not None:
                source.admits = partial(_is_key_in, own)
        sources.extend(made)
        return made

    watch = Watch(spec.kind, predicates=spec.predicates, labels=label_selector_text(spec.labels))
    own += add(watch, EnqueueObject, None if shard is None else ShardPart(shard))
    for watch in spec.owns:
        part = None if shard is None else ShardPart(shard, owner.group_kind, watch.any_owner)
        make = partial(EnqueueOwner, owner, scopes=cache, controller_only=not watch.any_owner, shard=shard)
        add(watch, make, part)
    for watch in spec.watches:
        add(watch, EnqueueObject)
    return sources


def _is_key_in(sources: Iterable[KindSource], request: Request) -> bool:
    """Whether a key's object is in the cache of one of these."""
    return any(source.informer.store.get(request) is not None for source in sources)


def external_sources(spec: ControllerSpec, environment: Environment) -> Iterator[Source]:
    """The sources of a controller that are no watches."""
    for declared in spec.sources:
        yield _external(declared, spec.timeout, environment)


class Places(msgspec.Struct, frozen=True):
    """Where kinds are mirrored.

    Args:
        namespaces: those in scope; None: all of the cluster are, and are mirrored as one.
        cluster_scoped: kinds that are known to be in no namespace.
        only: what is mirrored in these namespaces, and nothing else.
    """

    namespaces: Sequence[str] | None = None
    cluster_scoped: frozenset[Kind] = frozenset()
    only: bool = False

    def of(self, kind: Kind, namespace: str | None) -> Sequence[str]:
        """The namespaces in which a kind is to be mirrored; "" stands for all of them, and for cluster scope."""
        unbound = kind.namespaced is False or kind in self.cluster_scoped
        if self.namespaces is not None and namespace is None and not unbound:
            return self.namespaces
        if self.only:
            return ()
        return ALL_NAMESPACES if unbound or namespace is None else (namespace,)


async def cluster_scoped_of(watches: Iterable[Watch], resources: Resources) -> frozenset[Kind]:
    """Ask for the scope of each kind once, so that one without namespaces is not mirrored once for each of them.

    A kind that is not served yet, or cannot be asked for, is taken for namespaced: then its mirrors are more than
    needed, and as right as one.
    """
    found: set[Kind] = set()

    async def find(kind: Kind) -> None:
        with suppress(KopyliteError, OSError):
            if not (await resources.find(kind)).namespaced:
                found.add(kind)

    with anyio.move_on_after(GATE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for kind in {kind_of(watch.kind) for watch in watches}:
                tasks.start_soon(find, kind)
    return frozenset(found)


class FirstSync:
    """Waits until some sources are in sync, once and 10 s at most: what is not is read from the server then."""

    def __init__(self, sources: Sequence[KindSource], clock: Clock) -> None:
        self._sources = sources
        self._clock = clock
        self._ends: float | None = None

    async def wait(self) -> None:
        now = self._clock.monotonic()
        if self._ends is None:
            self._ends = now + GATE_SECONDS
        if now < self._ends:
            with anyio.move_on_after(self._ends - now):
                for source in self._sources:
                    await source.informer.wait_synced()
                self._ends = now


class CacheGate:
    """A source without events, for a kind that is only read: a controller begins when it is in the cache.

    But it waits 10 s at most. After that, reads go to the server, and say themselves what is wrong.
    """

    def __init__(self, informer: Informer, clock: Clock) -> None:
        self.informer = informer
        self._clock = clock
        self._opens: float | None = None

    @property
    def name(self) -> str:
        return str(self.informer.scope)

    @property
    def namespace(self) -> str:
        return self.informer.scope.namespace

    @property
    def synced(self) -> bool:
        return self.informer.has_state or (self._opens is not None and self._clock.monotonic() >= self._opens)

    async def wait_synced(self) -> None:
        if self._opens is None:
            self._opens = self._clock.monotonic() + GATE_SECONDS
        with anyio.move_on_after(self._opens - self._clock.monotonic()):
            await self.informer.wait_synced()

    async def run(self, enqueue: Enqueue) -> None:
        """Nothing comes of it."""


def _sources(
    watch: Watch, make: MakeHandler, cache: Informers, places: Places, environment: Environment
) -> Iterator[KindSource]:
    kind, predicate = kind_of(watch.kind), watch.predicates
    observe = partial(environment.on_call, PREDICATE.what)
    guard = None
    if predicate is not None:
        bound = predicate.bound_to(watch.kind, metadata_only=watch.metadata_only)
        guard = guard_of(bound, environment.clock, observe)
    for namespace in places.of(kind, watch.namespace):
        yield KindSource(
            cache,
            kind,
            make(),
            predicate=guard,
            namespace=namespace,
            labels=watch.labels,
            fields=watch.fields,
            metadata_only=watch.metadata_only,
        )


def _external(declared: Periodic | Channel, timeout: float | None, environment: Environment) -> Source:
    function = declared.keys if isinstance(declared, Periodic) else declared.open
    name = getattr(function, "__name__", type(function).__name__)

    def context() -> Context:
        return Context(environment, Request("", ""), (name,))

    if isinstance(declared, Periodic):
        keys = declared.keys
        return PeriodicSource(
            declared.seconds,
            lambda: in_run(now := context(), keys, now),
            name=name,
            clock=environment.clock,
            timeout=timeout,
            observe=partial(environment.on_call, PERIODIC.what, name),
        )
    open_channel = declared.open
    observe = partial(environment.on_call, CHANNEL.what, name)
    return ChannelSource(lambda: open_channel(context()), name=name, clock=environment.clock, observe=observe)


def _mapping(
    function: MapFunction,
    watch: Watch,
    timeout: float | None,
    environment: Environment,
    caches_complete: Callable[[], Awaitable[None]],
) -> MakeHandler:
    """A handler for a user's map function.

    It is fed with objects of the class that it asked for (metadata alone fits no class but a dict), and usually not
    before all caches of its controller are complete, since it will read them. An object that does not fit the class
    is told of, and maps to nothing.
    """
    adapter: Any = adapter_of(kind_of(watch.kind) if watch.metadata_only else watch.kind)
    reasons = (f"{kind_of(watch.kind).kind} changed",)
    name = getattr(function, "__name__", type(function).__name__)

    async def on_record(record: Record) -> Iterable[Request]:
        await caches_complete()
        context = Context(environment, Request(record.namespace, record.name), reasons)
        try:
            obj = adapter.decode(record.body)
        except DecodeError as error:
            environment.client.misfits.tell(adapter.kind, error)
            return []  # a retry would find the same; its next change is an event
        return await in_run(context, function, obj, context)

    limit = MAP_SECONDS if timeout is None else min(timeout, MAP_SECONDS)
    observe = partial(environment.on_call, MAP.what, name)
    return lambda: EnqueueMapped(on_record, name=name, clock=environment.clock, timeout=limit, observe=observe)
