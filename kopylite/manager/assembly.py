"""Assembly: the living parts of one run, made from an App and put together."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
import msgspec

from kopylite.boundary import CHECK, TASK, name_of
from kopylite.cache import PartReader, Scope, SharedCache
from kopylite.client import Client, MissingPermissions, Resources, Transport
from kopylite.client.caches import CacheReader
from kopylite.clock import Clock
from kopylite.controller import Controller, ControllerSpec, Source, Watch
from kopylite.diagnostics import LoopReport
from kopylite.errors import DecodeError, Forbidden, LifecycleError
from kopylite.leaderelection import FencedTransport
from kopylite.lifecycle import CheckSpec, LifecycleHook, TaskSpec
from kopylite.lifecycle.healthchecks import HealthChecks
from kopylite.lifecycle.lifespans import Lifespans
from kopylite.lifecycle.taskforce import TaskForce
from kopylite.manager.crew import Crew
from kopylite.manager.elections import Candidacy, Herald, elector_of, elects, shards_of
from kopylite.manager.feeds import AppCaches, Feed
from kopylite.manager.namespaces import Namespaces
from kopylite.manager.operator import Operator
from kopylite.manager.options import Options
from kopylite.manager.sharding import ShardClient, membership_of, parts_of, roster_of, shard_elector
from kopylite.manager.wiring import cluster_scoped_of
from kopylite.metrics import ControllerMetrics, Metrics
from kopylite.objects import Kind, Shard, Unstructured, kind_of
from kopylite.reconcile import Context, Environment, Request, SharedState
from kopylite.reconcile.recorder import INVALID_OBJECT, RECREATED, EventRecorder, is_publishable
from kopylite.workqueue import QueueStatistics

if TYPE_CHECKING:
    from kopylite.leaderelection import Elector, Membership

logger = logging.getLogger("kopylite.manager")

# The last Events are worth a moment, but not a pod's whole grace period.
FLUSH_SECONDS = 3.0
# Of what runs for no object.
NOTHING = Request("", "")


class Assembly(msgspec.Struct, frozen=True):
    """The parts of one run. Nothing of it runs by itself."""

    cache: SharedCache
    namespaces: Namespaces
    recorders: tuple[EventRecorder, ...]
    permissions: MissingPermissions
    crews: tuple[Crew, ...]
    memberships: tuple[Membership, ...]
    loops: LoopReport
    lifespans: tuple[Lifespans, ...]
    checks: tuple[HealthChecks, ...]
    webhooks: tuple[tuple[Operator, Environment], ...]

    @property
    def controllers(self) -> list[Controller]:
        """Those that run, and those that wait for their term."""
        return [controller for crew in self.crews for controller in crew.controllers]

    @property
    def electors(self) -> list[Elector]:
        return [crew.elector for crew in self.crews if crew.elector is not None]

    async def flush(self) -> None:
        """Publish the last Events, within a limit."""
        await flush(self.recorders)

    def waiting_for(self, scope: Scope) -> list[str]:
        """The names of the controllers that wait for a cache."""
        return [
            controller.name
            for controller in self.controllers
            if any(source.name == str(scope) and not source.synced for source in controller.sources)
        ]


class Ground(msgspec.Struct, frozen=True):
    """What is known of the server before anything is put together. Attributes: hooks: what webhooks write through."""

    transport: Transport
    hooks: Transport
    resources: Resources
    cluster_scoped: frozenset[Kind]
    candidacy: Candidacy | None


async def prepare(
    apps: Sequence[Operator],
    options: Options,
    ways: tuple[Transport, Transport],
    candidacy: Candidacy | None,
    clock: Clock,
) -> Ground:
    """Ask the server what has to be known first.

    Args:
        ways: the transport of all, and that of webhooks.
    """
    transport, hooks = ways
    resources = Resources(transport, clock)
    specs = [spec for app in apps for spec in app.controllers]
    declared = [watch for spec in specs for watch in (Watch(spec.kind), *spec.owns, *spec.watches)]
    cached = [watch for app in apps for watch in app.cached]
    limited = options.scope.limited
    cluster_scoped = await cluster_scoped_of([*declared, *cached], resources) if limited else frozenset[Kind]()
    return Ground(transport, hooks, resources, cluster_scoped, candidacy)


def assemble(
    apps: Sequence[Operator],
    options: Options,
    ground: Ground,
    metrics: Metrics,
    clock: Clock,
    fail: Callable[[LifecycleError], None],
) -> Assembly:
    """Make caches, clients and controllers. The metrics see all of them from here on.

    Args:
        fail: told of what the Apps cannot do without and has failed.
    """
    loops = LoopReport(clock=clock)
    cache = SharedCache(ground.transport, ground.resources, clock=clock, observe=metrics.informer, begun=loops.watch)
    metrics.informer_statistics = cache.statistics
    namespaces = Namespaces(options.scope, cache, clock)
    metrics.namespaces = namespaces.counts
    permissions = MissingPermissions(apps[0].name, limited=options.scope.limited)
    workshop = _Workshop(options, ground, metrics, clock, cache, namespaces, permissions, loops, fail)
    crews: list[Crew] = []
    memberships: list[Membership] = []
    hooks: list[tuple[Operator, Environment]] = []
    staff = [workshop.add(app, crews, memberships, hooks) for app in apps]
    recorders, lifespans, checks = zip(*staff, strict=True)
    assembly = Assembly(
        cache, namespaces, recorders, permissions, tuple(crews), tuple(memberships), loops, lifespans, checks,
        tuple(hooks),
    )  # fmt: skip
    metrics.tasks = lambda: [(spec.name, spec.name in c.tasks.active) for c in crews for spec in c.tasks.specs]
    metrics.elections.memberships = lambda: [(each.roster.name, each.statistics()) for each in memberships]
    metrics.elections.leaders = lambda: [(elector.settings.name, elector.leading) for elector in assembly.electors]
    return assembly


async def flush(recorders: Sequence[EventRecorder]) -> None:
    """Publish what these have noted, within a limit."""
    with anyio.move_on_after(FLUSH_SECONDS):
        for recorder in recorders:
            await recorder.flush()


class _Parts(msgspec.Struct, frozen=True):
    """What all parts of one App have in common."""

    app: Operator
    recorder: EventRecorder
    state: SharedState


def _ignore(what: str, name: str, result: str) -> None:
    """Of a call that is counted elsewhere."""


class _Workshop(msgspec.Struct, frozen=True):
    """What all parts of one run have in common while they are made."""

    options: Options
    ground: Ground
    metrics: Metrics
    clock: Clock
    cache: SharedCache
    namespaces: Namespaces
    permissions: MissingPermissions
    loops: LoopReport
    fail: Callable[[LifecycleError], None]

    def add(
        self,
        app: Operator,
        crews: list[Crew],
        memberships: list[Membership],
        hooks: list[tuple[Operator, Environment]],
    ) -> tuple[EventRecorder, Lifespans, HealthChecks]:
        """Make the crews of an App: one that begins at once; one that waits until this process leads, or one for each
        shard, of which the first has the leader's tasks. Its webhooks work in any case: their writes need no lease.
        """
        options, clock = self.options, self.clock
        client = self._client(app, self.ground.transport, lambda error: self._misfit(recorder, error))
        instance = platform.node() or app.name
        recorder = EventRecorder(
            client.live, controller=app.name, instance=instance, clock=clock, on_forbidden=self._on_forbidden
        )
        client.on_recreate = partial(_note_recreation, recorder)
        parts = _Parts(app, recorder, SharedState())
        caches = AppCaches(app.cached, self.cache, self.namespaces, self.ground.cluster_scoped, clock)
        led = [spec for spec in app.controllers if spec.leader] if elects(app, options) else []
        tasks = [task for task in app.life.tasks if task.leader] if elects(app, options) else []
        free = [spec for spec in app.controllers if spec not in led]
        own = [task for task in app.life.tasks if task not in tasks]
        environment = self._environment(parts, app.name, client)
        if app.hooks or app.converters:
            beside = self._client(app, self.ground.hooks, lambda error: self._misfit(recorder, error))
            hooks.append((app, self._environment(parts, app.name, beside)))
        lifespans, checks = self._lifespans(parts, environment), self._checks(parts, environment)
        if free or own:
            makers = [self._maker(parts, spec, client, caches) for spec in free]
            crews.append(Crew(makers, options.grace_period, None, self._tasks(parts, own, client)))
        candidacy = self.ground.candidacy
        herald = Herald(recorder, self.permissions, clock, partial(flush, (recorder,)), self.metrics.elections.changed)
        if led and candidacy is not None and (shards := shards_of(app, options)):
            roster, posts = roster_of(app, options, candidacy, shards), list[Crew]()
            for shard in (Shard(index, shards) for index in range(shards)):
                elector = shard_elector(app, options, candidacy, roster, shard, clock, herald)
                posts.append(self._shard_crew(parts, led, shard, elector, caches, [] if shard.index else tasks))
            memberships.append(membership_of(app, options, candidacy, roster, posts, clock, herald))
            self._count_together(led, posts)
            crews.extend(posts)
        elif (led or tasks) and candidacy is not None:
            elector = elector_of(app, options, candidacy, clock, herald)
            fenced = FencedTransport(self.ground.transport, elector.fence)
            client = self._client(app, fenced, lambda error: self._misfit(recorder, error))
            client.on_recreate = partial(_note_recreation, recorder)
            makers = [self._maker(parts, spec, client, caches) for spec in led]
            crews.append(Crew(makers, options.grace_period, elector, self._tasks(parts, tasks, client)))
        return recorder, lifespans, checks

    def _environment(
        self, parts: _Parts, name: str, client: Client, on_call: Callable[[str, str, str], None] = _ignore
    ) -> Environment:
        """Of whatever runs no reconciles: hooks, tasks and checks."""
        log = logging.getLogger(parts.app.name)
        return Environment(
            name, client, parts.recorder, log, self.clock, self._on_forbidden, on_call, state=parts.state
        )

    def _tasks(self, parts: _Parts, specs: Sequence[TaskSpec], client: Client) -> TaskForce:
        def context(spec: TaskSpec) -> Context:
            return Context(self._environment(parts, spec.name, client), NOTHING, ("the task runs",))

        return TaskForce(specs, context, self.clock, observe=partial(self.metrics.called, TASK.what), fail=self.fail)

    def _lifespans(self, parts: _Parts, environment: Environment) -> Lifespans:
        def context(hook: LifecycleHook) -> Context:
            return Context(environment, NOTHING, (name_of(hook.function),))

        hooks, observe = parts.app.life.hooks, self.metrics.call_failed
        return Lifespans(hooks, context, parts.state, self.clock, observe=observe, fail=self.fail)

    def _checks(self, parts: _Parts, environment: Environment) -> HealthChecks:
        def context(check: CheckSpec) -> Context:
            return Context(environment, NOTHING, (check.name,))

        observe = partial(self.metrics.called, CHECK.what)
        return HealthChecks(parts.app.life.checks, context, self.clock, observe)

    def _shard_crew(
        self,
        parts: _Parts,
        led: Sequence[ControllerSpec],
        shard: Shard,
        elector: Elector,
        caches: AppCaches,
        tasks: Sequence[TaskSpec],
    ) -> Crew:
        """What runs one shard, with caches and a client of its own."""
        fenced = FencedTransport(self.ground.transport, elector.fence)
        reader, make = PartReader(self.cache, parts_of(led, shard)), partial(ShardClient, shard)
        client = self._client(parts.app, fenced, lambda error: self._misfit(parts.recorder, error), reader, make)
        client.on_recreate = partial(_note_recreation, parts.recorder)
        makers = [self._maker(parts, spec, client, caches, shard) for spec in led]
        return Crew(makers, self.options.grace_period, elector, self._tasks(parts, tasks, client), warm=False)

    def _count_together(self, led: Sequence[ControllerSpec], crews: Sequence[Crew]) -> None:
        """The numbers of a controller are those of all its shards here."""

        def statistics(name: str) -> QueueStatistics:
            found = [each for crew in crews for each in crew.controllers if each.name == name]
            return QueueStatistics.of_all(each.statistics().queue for each in found)

        def paused(name: str) -> int:
            return sum(len(each.pauses) for crew in crews for each in crew.controllers if each.name == name)

        for spec in led:
            numbers = self._numbers(spec)
            numbers.statistics = partial(statistics, spec.name)
            numbers.paused = partial(paused, spec.name)

    def _client(
        self,
        app: Operator,
        transport: Transport,
        on_misfit: Callable[[DecodeError], None],
        cache: CacheReader | None = None,
        make: Callable[..., Client] = Client,
    ) -> Client:
        """Each App writes under its own name."""
        return make(
            transport,
            resources=self.ground.resources,
            cache=cache or self.cache,
            field_manager=app.name,
            namespaces=self.namespaces.listed if self.options.scope.limited else (),
            clock=self.clock,
            on_misfit=on_misfit,
            listener=self.loops,
        )

    def _misfit(self, recorder: EventRecorder, error: DecodeError) -> None:
        self.metrics.skipped += 1
        if is_publishable(error.object):
            recorder.event(error.object, INVALID_OBJECT, str(error), type="Warning", action="List")

    def _on_forbidden(self, error: Forbidden) -> None:
        self.permissions.note(error, self.clock.monotonic())

    def _maker(
        self,
        parts: _Parts,
        spec: ControllerSpec,
        client: Client,
        caches: AppCaches,
        shard: Shard | None = None,
    ) -> Callable[[], Feed]:
        """What makes a controller, as often as it is asked."""
        numbers = self._numbers(spec)
        on_run = self.loops.on_run(spec.name, numbers.reconcile.looped)
        environment = msgspec.structs.replace(
            self._environment(parts, spec.name, client, numbers.called),
            on_run=on_run,
            writer=self.loops.writer,
            kind=kind_of(spec.kind),
            shard=shard,
        )

        def build(feed: Feed, sources: Sequence[Source]) -> Controller:
            in_scope = self.namespaces.in_scope
            return _controller(spec, environment, sources, self.options, numbers, feed.find, in_scope)

        return lambda: Feed(spec, environment, caches, build)

    def _numbers(self, spec: ControllerSpec) -> ControllerMetrics:
        return self.metrics.controller(spec.name, spec.workers or self.options.workers)


def _controller(
    spec: ControllerSpec,
    environment: Environment,
    sources: Sequence[Source],
    options: Options,
    numbers: ControllerMetrics,
    find: Callable[[Request], Unstructured | None],
    in_scope: Callable[[Request], bool] | None,
) -> Controller:
    controller = Controller(
        spec,
        environment,
        sources=sources,
        workers=options.workers,
        observer=numbers.reconcile,
        queue_observer=numbers.queue,
        find=find,
        in_scope=in_scope,
    )
    if environment.shard is None:
        numbers.statistics = lambda: controller.statistics().queue
        numbers.paused = lambda: len(controller.pauses)
    return controller


def _note_recreation(recorder: EventRecorder, obj: object, why: str) -> None:
    recorder.event(obj, RECREATED, why, action="Recreate")
