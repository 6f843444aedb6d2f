"""SharedCache: the informers of one process, one for each scope, kept for as long as somebody uses them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup

from kopylite.cache.informer import Informer, InformerStatistics, Scope
from kopylite.cache.part import ShardPart
from kopylite.cache.store import Delta, Store
from kopylite.client.listwatch import ListWatch
from kopylite.client.transport import Transport
from kopylite.client.verbs import ResourceInfo, Selection
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.objects import Kind
from kopylite.observers import InformerObserver

logger = logging.getLogger("kopylite.cache")

_WHOLE = (None,)


class KindFinder(Protocol):
    """Discovery."""

    async def find(self, kind: Kind, *, again: bool = False) -> ResourceInfo:
        """Plural and scope of a kind; `again`: ask the server. Raises KindNotFound."""

    def learn(self, resource: ResourceInfo) -> None:
        """Take over what the server's objects have shown."""


class _Entry(msgspec.Struct):
    informer: Informer
    observer: InformerObserver
    users: int = 0
    stop: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)


class Informers(Protocol):
    """Where informers are had."""

    def acquire(
        self, kind: Kind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Informer: ...

    def release(self, informer: Informer) -> None: ...


class PartCache(msgspec.Struct, frozen=True):
    """Hands out informers of one part."""

    cache: SharedCache
    part: ShardPart

    def acquire(
        self, kind: Kind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Informer:
        """As SharedCache's."""
        return self.cache.acquire(
            kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only, part=self.part
        )

    def release(self, informer: Informer) -> None:
        """As SharedCache's."""
        self.cache.release(informer)


class PartReader:
    """The caches as the reconciles of one shard read them.

    Args:
        cache: the caches.
        parts: of the shard, by kind.
    """

    def __init__(self, cache: SharedCache, parts: Mapping[Kind, Sequence[ShardPart]]) -> None:
        self._cache = cache
        self._parts = {_plain(kind): found for kind, found in parts.items()}

    def store_for(self, kind: Kind, namespace: str) -> Store | None:
        """As SharedCache's; a partial store, where there is no other."""
        return self._cache.store_for(kind, namespace, self._parts.get(_plain(kind), ()))

    def follows(self, kind: Kind, namespace: str) -> bool:
        return self._cache.follows(kind, namespace)


class SharedCache:
    """Hands out informers. All users of a scope share one; it stops when the last of them releases it.

    Args:
        transport: brings the answers.
        resources: knows plural and scope of kinds.
        clock: of time and jitter.
        observe: makes the observer of an informer.
        begun: told of each informer before it runs.
    """

    def __init__(
        self,
        transport: Transport,
        resources: KindFinder,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observe: Callable[[Scope], InformerObserver] = lambda scope: InformerObserver(),
        begun: Callable[[Informer], None] = lambda informer: None,
    ) -> None:
        self._transport = transport
        self._resources = resources
        self._clock = clock
        self._observe = observe
        self._begun = begun
        self._entries: dict[Scope, _Entry] = {}
        # Those that reads may rely on, by apiVersion, kind, namespace and part. Every read comes here, and a tuple of
        # texts is found in a tenth of the time that a Scope takes.
        self._readable: dict[tuple[str, str, str, ShardPart | None], Informer] = {}
        self._unstreamed: set[Kind] = set()
        self._told: dict[Hashable, float] = {}
        self._namespaced: dict[Kind, bool] = {}
        self._located: dict[Kind, anyio.Event] = {}
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Run all informers, also those that are acquired later, until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            for entry in self._entries.values():
                self._tasks.start_soon(self._run, entry)
            await anyio.sleep_forever()

    def acquire(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        part: ShardPart | None = None,
    ) -> Informer:
        """The informer of a scope, begun if it is new. Give it back with `release`.

        It is not synced yet: wait for that, or read from the server meanwhile.
        """
        scope = Scope(_plain(kind), namespace, labels, fields, metadata_only, part)
        entry = self._entries.get(scope)
        if entry is None:
            entry = self._entries[scope] = self._begin(kind, scope)
            if (readable := _readable(scope)) is not None:
                self._readable[readable] = entry.informer
            if self._tasks is not None:
                self._tasks.start_soon(self._run, entry)
        entry.users += 1
        return entry.informer

    def release(self, informer: Informer) -> None:
        """Give an informer back, once for each `acquire`; the last time it stops and forgets everything."""
        entry = self._entries.get(informer.scope)
        if entry is None or entry.informer is not informer:
            return
        entry.users -= 1
        if entry.users == 0:
            del self._entries[informer.scope]
            if (readable := _readable(informer.scope)) is not None:
                del self._readable[readable]
            entry.stop.cancel()
            entry.observer.ended()

    def store_for(self, kind: Kind, namespace: str, parts: Sequence[ShardPart] = ()) -> Store | None:
        """The store that reads of a kind may rely on: it holds everything in the namespace ("": in all), and was
        complete at least once. If there is none, one that holds one of these parts. None: ask the server.
        """
        readable, version, name = self._readable, kind.api_version, kind.kind
        for part in (None, *parts) if parts else _WHOLE:
            informer = readable.get((version, name, namespace, part))
            if informer is not None and informer.has_state:
                return informer.store
            informer = readable.get((version, name, "", part)) if namespace else None
            if informer is not None and informer.has_state:
                return informer.store
        return None

    def follows(self, kind: Kind, namespace: str) -> bool:
        """Whether there is such a store, complete or not."""
        return any((kind.api_version, kind.kind, candidate, None) in self._readable for candidate in (namespace, ""))

    def is_namespaced(self, kind: Kind) -> bool | None:
        """The scope of a kind; None as long as no informer has found it on the server."""
        return self._namespaced.get(_plain(kind), kind.namespaced)

    async def wait_scope(self, kind: Kind) -> None:
        """Wait until `is_namespaced` knows the scope of a kind that has an informer."""
        if self.is_namespaced(kind) is None:
            located = self._located.setdefault(_plain(kind), anyio.Event())
            try:
                await located.wait()
            finally:
                if self._located.get(_plain(kind)) is located and not located.statistics().tasks_waiting:
                    del self._located[_plain(kind)]  # whoever waited has gone

    @property
    def informers(self) -> list[Informer]:
        return [entry.informer for entry in self._entries.values()]

    def statistics(self) -> list[InformerStatistics]:
        """Of every informer."""
        return [informer.statistics() for informer in self.informers]

    def _begin(self, kind: Kind, scope: Scope) -> _Entry:
        located: list[ResourceInfo] = []

        async def locate(again: bool) -> ListWatch:
            resource = await self._resources.find(kind, again=again)
            located[:] = [resource]
            self._namespaced[scope.kind] = resource.namespaced
            if scope.kind in self._located:
                self._located.pop(scope.kind).set()
            # A cluster-scoped kind has no namespaces to be limited to.
            namespace = scope.namespace if resource.namespaced else ""
            # A server that does not divide sends all; what is not of the part is dropped in any case.
            selection = Selection(scope.labels, scope.fields, scope.part.selector if scope.part else "")
            return ListWatch(self._transport, resource, namespace, selection, scope.metadata_only)

        observer = self._observe(scope)
        informer = Informer(
            scope, locate, clock=self._clock, observer=observer, unstreamed=self._unstreamed, told=self._told
        )

        def check_scope(delta: Delta) -> None:
            """By the first object. It comes before any other handler is told of it, and so before it is mapped."""
            informer.remove_handler(handle)
            record, [resource] = delta.new or delta.old, located
            if record is not None and bool(record.namespace) != resource.namespaced:
                self._correct(resource)

        handle = informer.add_handler(check_scope)
        self._begun(informer)
        return _Entry(informer, observer)

    def _correct(self, resource: ResourceInfo) -> None:
        """A Kind or class says its scope, no one was asked, and the server's objects have the other one."""
        namespaced = not resource.namespaced
        words = ("cluster-scoped", "namespaced")
        logger.error(
            "%s is declared as %s, and on this server it is %s: that is taken from now on; declare it so",
            resource.kind,
            words[resource.namespaced],
            words[namespaced],
        )
        self._namespaced[_plain(resource.kind)] = namespaced
        self._resources.learn(msgspec.structs.replace(resource, namespaced=namespaced))

    async def _run(self, entry: _Entry) -> None:
        with entry.stop:
            await entry.informer.run()


def _readable(scope: Scope) -> tuple[str, str, str, ShardPart | None] | None:
    """Where reads find the informer of a scope; None: it leaves something out, so they may not."""
    if scope.labels or scope.fields or scope.metadata_only:
        return None
    return (scope.kind.api_version, scope.kind.kind, scope.namespace, scope.part)


def _plain(kind: Kind) -> Kind:
    """The kind without what may or may not be known about it."""
    return Kind(kind.api_version, kind.kind)
