"""Wiring: from the declarations of an App to the sources of its controllers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

import anyio

from kopylite.cache import Informer, Record, SharedCache
from kopylite.clock import Clock
from kopylite.controller import Channel, ControllerSpec, MapFunction, Periodic, Source, Watch
from kopylite.errors import DecodeError
from kopylite.objects import Kind, adapter_of, kind_of
from kopylite.reconcile import Context, Environment, Request
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
)

ALL_NAMESPACES = ("",)

# A kind that is only read holds a controller up for so long at most: it may be one that the cluster does not have.
GATE_SECONDS = 10.0

MakeHandler = Callable[[], Handler | BackgroundHandler]


def sources_of(
    spec: ControllerSpec, environment: Environment, cache: SharedCache, namespaces: Sequence[str]
) -> list[KindSource]:
    """The sources of a controller: its own kind first, then what it owns, then what it watches.

    Args:
        namespaces: of the manager; none for all.
    """
    own = Watch(spec.kind, predicates=spec.predicates, labels=spec.labels)
    owner = kind_of(spec.kind)
    sources: list[KindSource] = []

    async def caches_complete() -> None:
        for source in sources:
            await source.informer.wait_synced()

    def add(watch: Watch, default: MakeHandler) -> None:
        make = default if watch.map is None else _mapping(watch.map, watch, environment, caches_complete)
        sources.extend(_sources(watch, make, cache, namespaces))

    add(own, EnqueueObject)
    for watch in spec.owns:
        add(watch, lambda: EnqueueOwner(owner, is_namespaced=lambda: cache.is_namespaced(owner)))
    for watch in spec.watches:
        add(watch, EnqueueObject)
    return sources


def external_sources(spec: ControllerSpec, environment: Environment) -> Iterator[Source]:
    """The sources of a controller that are no watches."""
    for declared in spec.sources:
        yield _external(declared, environment)


def scopes_of(kind: Kind, namespace: str | None, namespaces: Sequence[str]) -> Sequence[str]:
    """The namespaces in which a kind is to be mirrored; "" stands for all of them, and for cluster scope."""
    if kind.namespaced is False:
        return ALL_NAMESPACES
    return [namespace] if namespace is not None else namespaces or ALL_NAMESPACES


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
    def synced(self) -> bool:
        return self.informer.has_state or (self._opens is not None and self._clock.monotonic() >= self._opens)

    async def wait_synced(self) -> None:
        if self._opens is None:
            self._opens = self._clock.monotonic() + GATE_SECONDS
        with anyio.move_on_after(self._opens - self._clock.monotonic()):
            await self.informer.wait_synced()

    async def run(self, enqueue: Enqueue) -> None:
        await anyio.sleep_forever()


def _sources(watch: Watch, make: MakeHandler, cache: SharedCache, namespaces: Sequence[str]) -> Iterator[KindSource]:
    kind = kind_of(watch.kind)
    for namespace in scopes_of(kind, watch.namespace, namespaces):
        yield KindSource(
            cache,
            kind,
            make(),
            predicate=watch.predicates,
            namespace=namespace,
            labels=watch.labels,
            fields=watch.fields,
            metadata_only=watch.metadata_only,
        )


def _external(declared: Periodic | Channel, environment: Environment) -> Source:
    function = declared.keys if isinstance(declared, Periodic) else declared.open
    name = getattr(function, "__name__", type(function).__name__)

    def context() -> Context:
        return Context(environment, Request("", ""), (name,))

    if isinstance(declared, Periodic):
        keys = declared.keys
        return PeriodicSource(declared.seconds, lambda: keys(context()), name=name, clock=environment.clock)
    open_channel = declared.open
    return ChannelSource(lambda: open_channel(context()), name=name, clock=environment.clock)


def _mapping(
    function: MapFunction, watch: Watch, environment: Environment, caches_complete: Callable[[], Awaitable[None]]
) -> MakeHandler:
    """A handler for a user's map function.

    It is fed with objects of the class that it asked for (metadata alone fits no class but a dict), and not before
    all caches of its controller are complete, since it will read them. An object that does not fit the class is told
    of, and maps to nothing.
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
        return await function(obj, context)

    return lambda: EnqueueMapped(on_record, name=name, clock=environment.clock)
