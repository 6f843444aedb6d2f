"""Feeds: what controllers get their keys from, in all namespaces in scope, while these come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kopylite.boundary import ActiveCall
from kopylite.cache import SharedCache
from kopylite.clock import Clock
from kopylite.controller import Controller, ControllerSpec, Source, Watch
from kopylite.manager.namespaces import Namespaces
from kopylite.manager.wiring import CacheGate, FirstSync, Places, external_sources, sources_of
from kopylite.objects import Kind, Unstructured, kind_of
from kopylite.reconcile import Environment, Request
from kopylite.triggers import Enqueue, Event, KindSource, only


class AppCaches:
    """What an App reads from caches though no controller follows it, in all places.

    Held from the making on, for the whole run.

    Args:
        watches: of `app.cache()`.
        cache: has the informers.
        namespaces: in scope.
        cluster_scoped: kinds that are known to be in no namespace.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        cache: SharedCache,
        namespaces: Namespaces,
        cluster_scoped: frozenset[Kind],
        clock: Clock,
    ) -> None:
        self.cache = cache
        self.namespaces = namespaces
        self._watches = watches
        self._cluster_scoped = cluster_scoped
        self._clock = clock
        self._everywhere = self._made(self.everywhere)
        self._gates: dict[str, list[CacheGate]] = {}
        for namespace in namespaces.now:
            self.begin(namespace)
        namespaces.follow(self)

    @property
    def everywhere(self) -> Places:
        """Where kinds are mirrored whichever namespaces are in scope."""
        return Places(() if self.namespaces.rule.limited else None, self._cluster_scoped)

    def inside(self, *namespaces: str) -> Places:
        """Where the other kinds are mirrored for some namespaces."""
        return Places(namespaces, self._cluster_scoped, only=True)

    def gates(self, *namespaces: str) -> list[CacheGate]:
        """Those that a controller waits for that works in some namespaces; none: those that each waits for."""
        return [*self._everywhere] if not namespaces else [gate for n in namespaces for gate in self._gates.get(n, ())]

    def begin(self, namespace: str) -> None:
        self._gates[namespace] = self._made(self.inside(namespace))

    def end(self, namespace: str) -> None:
        for gate in self._gates.pop(namespace, ()):
            self.cache.release(gate.informer)

    def _made(self, places: Places) -> list[CacheGate]:
        made: list[CacheGate] = []
        for watch in self._watches:
            kind, metadata_only = kind_of(watch.kind), watch.metadata_only
            for namespace in places.of(kind, watch.namespace):
                informer = self.cache.acquire(
                    kind, namespace=namespace, labels=watch.labels, metadata_only=metadata_only
                )
                made.append(CacheGate(informer, self._clock))
        return made


class OwnKeys:
    """A source, of which only some keys count."""

    def __init__(self, source: Source, admits: Callable[[Request], bool]) -> None:
        self._source = source
        self._admits = admits
        self.name, self.namespace = source.name, source.namespace

    @property
    def synced(self) -> bool:
        return self._source.synced

    async def wait_synced(self) -> None:
        await self._source.wait_synced()

    async def run(self, enqueue: Enqueue) -> None:
        """As the source's."""
        await self._source.run(only(enqueue, self._admits))

    def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
        """As the source's."""
        found: list[ActiveCall] = getattr(self._source, "active_calls", lambda longer_than: [])(longer_than)
        return found


class ScopeGate:
    """A source without events: a controller gives it a moment at its start, so that it finds its namespaces at work.

    It stands for the namespaces that nobody has named. Those that somebody has do not wait for it.
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self.name = str(namespaces.rule)
        self.namespace = namespaces.rule.followed

    @property
    def synced(self) -> bool:
        return self._namespaces.opened.is_set()

    async def wait_synced(self) -> None:
        await self._namespaces.opened.wait()

    async def run(self, enqueue: Enqueue) -> None:
        """Nothing comes of it."""


class Feed:
    """A controller with its sources: those of the namespaces that are in scope when it is made, and of each that comes.

    Args:
        spec: of the controller.
        environment: of its runs.
        caches: of its App.
        build: makes the controller, of its first sources.
    """

    def __init__(
        self,
        spec: ControllerSpec,
        environment: Environment,
        caches: AppCaches,
        build: Callable[[Feed, Sequence[Source]], Controller],
    ) -> None:
        self._spec = spec
        self._environment = environment
        self._caches = caches
        self._kind = kind_of(spec.kind)
        # Of its own kind, wherever they are.
        self._own: list[KindSource] = []
        first: list[KindSource] = []
        complete = FirstSync(first, environment.clock)
        now = caches.namespaces.now
        first += self._make(caches.everywhere, complete)
        self._everywhere = [*first]
        bound = self._make(caches.inside(*now), complete)
        first += bound
        self._bound = {name: [source for source in bound if source.namespace == name] for name in now}
        gates: list[Source] = [*caches.gates(), *caches.gates(*now)]
        if caches.namespaces.rule.live:
            gates.append(ScopeGate(caches.namespaces))
        self.controller = build(self, [*gates, *first, *self._external()])
        caches.namespaces.follow(self)

    def begin(self, namespace: str) -> None:
        made: list[KindSource] = []
        made += self._make(self._caches.inside(namespace), FirstSync(made, self._environment.clock))
        self._bound[namespace] = made
        self.controller.enter(namespace, [*self._caches.gates(namespace), *made])

    def end(self, namespace: str) -> None:
        made = self._bound.pop(namespace)
        self.controller.leave(namespace, [*self._caches.gates(namespace), *made])
        self._own[:] = [source for source in self._own if source not in made]
        for source in made:
            source.close()

    def close(self) -> None:
        """Let go of the caches, when the controller has ended."""
        self._caches.namespaces.leave(self)
        for source in [*self._everywhere, *(one for made in self._bound.values() for one in made)]:
            source.close()

    def find(self, request: Request) -> Unstructured | None:
        """Names the object of a key, with its uid, as far as the caches have it."""
        for source in self._of_its_kind(request.namespace):
            if (record := source.informer.store.get(request)) is not None:
                metadata = {"name": record.name, "uid": record.uid}
                if self._spec.timer is not None:
                    metadata["creationTimestamp"] = record.creation_timestamp()
                metadata |= {"namespace": record.namespace} if record.namespace else {}
                return Unstructured(apiVersion=self._kind.api_version, kind=self._kind.kind, metadata=metadata)
        return None

    def _of_its_kind(self, namespace: str) -> Iterable[KindSource]:
        bound = [self._bound[namespace]] if namespace in self._bound else self._bound.values()
        found = [*self._everywhere, *(one for made in bound for one in made)]
        return (one for one in found if one.informer.scope.kind.group_kind == self._kind.group_kind)

    def _make(self, places: Places, complete: FirstSync) -> list[KindSource]:
        made = sources_of(self._spec, self._environment, self._caches.cache, places, self._own, complete)
        for source in self._own:
            source.asks = self._asks
        return made

    def _asks(self, event: Event) -> str:
        return self.controller.pauses.heard(event)

    def _external(self) -> list[Source]:
        made = external_sources(self._spec, self._environment)
        if self._environment.shard is None:
            return [*made]
        return [OwnKeys(source, lambda request: self.find(request) is not None) for source in made]
