"""Assembly: the living parts of one run, made from an App and put together."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kopylite.cache import Scope, SharedCache
from kopylite.client import Client, MissingPermissions, Resources, Transport
from kopylite.clock import Clock
from kopylite.controller import Controller, ControllerSpec, Source, Watch
from kopylite.diagnostics import LoopReport
from kopylite.errors import DecodeError, Forbidden
from kopylite.manager.options import Options
from kopylite.manager.wiring import CacheGate, Places, external_sources, find_places, finder_of, sources_of
from kopylite.metrics import Metrics
from kopylite.objects import Unstructured, kind_of
from kopylite.reconcile import Environment, Request
from kopylite.reconcile.recorder import INVALID_OBJECT, EventRecorder, is_publishable

logger = logging.getLogger("kopylite.manager")


class Operator(Protocol):
    """What a Manager runs: an App, or whatever else has an App's declarations."""

    @property
    def name(self) -> str: ...
    @property
    def controllers(self) -> Sequence[ControllerSpec]: ...
    @property
    def cached(self) -> Sequence[Watch]: ...


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of one run. Nothing of it runs by itself."""

    cache: SharedCache
    recorders: tuple[EventRecorder, ...]
    permissions: MissingPermissions
    controllers: tuple[Controller, ...]
    loops: LoopReport

    def waiting_for(self, scope: Scope) -> list[str]:
        """The names of the controllers that wait for a cache."""
        return [
            controller.name
            for controller in self.controllers
            if any(source.name == str(scope) and not source.synced for source in controller.sources)
        ]


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of the server before anything is put together."""

    transport: Transport
    resources: Resources
    places: Places


async def prepare(apps: Sequence[Operator], options: Options, transport: Transport, clock: Clock) -> Ground:
    """Ask the server what has to be known first."""
    resources = Resources(transport, clock)
    specs = [spec for app in apps for spec in app.controllers]
    declared = [watch for spec in specs for watch in (Watch(spec.kind), *spec.owns, *spec.watches)]
    cached = [watch for app in apps for watch in app.cached]
    places = await find_places([*declared, *cached], resources, options.namespaces)
    return Ground(transport, resources, places)


def assemble(apps: Sequence[Operator], options: Options, ground: Ground, metrics: Metrics, clock: Clock) -> Assembly:
    """Make caches, clients and controllers. The metrics see all of them from here on."""
    cache = SharedCache(ground.transport, ground.resources, clock=clock, observe=metrics.informer)
    metrics.informer_statistics = cache.statistics
    permissions = MissingPermissions(apps[0].name, options.namespaces)
    recorders, controllers, loops = [], [], LoopReport(clock=clock)

    def on_forbidden(error: Forbidden) -> None:
        permissions.note(error, clock.monotonic())

    for app in apps:
        client, recorder = _client(app, options, ground, cache, metrics, clock, on_forbidden, loops)
        recorders.append(recorder)
        gates = tuple(_gates(app.cached, cache, ground.places, clock))
        for spec in app.controllers:
            log = logging.getLogger(app.name)
            numbers = metrics.controller(spec.name, spec.workers or options.workers)
            on_run = loops.on_run(spec.name, numbers.reconcile.looped)
            environment = Environment(spec.name, client, recorder, log, clock, on_forbidden, numbers.called, on_run)
            watched = sources_of(spec, environment, cache, ground.places)
            sources: list[Source] = [*gates, *watched, *external_sources(spec, environment)]
            find = finder_of(spec, watched)
            controllers.append(_controller(spec, environment, sources, options, metrics, find))
    for informer in cache.informers:
        loops.watch(informer)
    return Assembly(cache, tuple(recorders), permissions, tuple(controllers), loops)


def _client(
    app: Operator,
    options: Options,
    ground: Ground,
    cache: SharedCache,
    metrics: Metrics,
    clock: Clock,
    on_forbidden: Callable[[Forbidden], None],
    loops: LoopReport,
) -> tuple[Client, EventRecorder]:
    """Each App writes under its own name."""

    def on_misfit(error: DecodeError) -> None:
        metrics.skipped += 1
        if is_publishable(error.object):
            recorder.event(error.object, INVALID_OBJECT, str(error), type="Warning", action="List")

    client = Client(
        ground.transport,
        resources=ground.resources,
        cache=cache,
        field_manager=app.name,
        namespaces=options.namespaces,
        clock=clock,
        on_misfit=on_misfit,
        listener=loops,
    )
    instance = platform.node() or app.name
    recorder = EventRecorder(
        client.live, controller=app.name, instance=instance, clock=clock, on_forbidden=on_forbidden
    )
    return client, recorder


def _gates(cached: Sequence[Watch], cache: SharedCache, places: Places, clock: Clock) -> Iterator[CacheGate]:
    for watch in cached:
        kind = kind_of(watch.kind)
        for namespace in places.of(kind, watch.namespace):
            informer = cache.acquire(kind, namespace=namespace, labels=watch.labels, metadata_only=watch.metadata_only)
            yield CacheGate(informer, clock)


def _controller(
    spec: ControllerSpec,
    environment: Environment,
    sources: Sequence[Source],
    options: Options,
    metrics: Metrics,
    find: Callable[[Request], Unstructured | None],
) -> Controller:
    numbers = metrics.controller(spec.name, spec.workers or options.workers)
    controller = Controller(
        spec,
        environment,
        sources=sources,
        workers=options.workers,
        observer=numbers.reconcile,
        queue_observer=numbers.queue,
        find=find,
    )
    numbers.statistics = lambda: controller.statistics().queue
    return controller
