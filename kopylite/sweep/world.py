"""World: server, workloads, scenario and operator in one event loop and one virtual time, and what happens in it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from kopylite.apiserver.controllers import NAMES
from kopylite.apiserver.request.request import HttpRequest, Response, parse_target
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.apiserver.storage.history import StoredChange
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.client import Client
from kopylite.clock import Clock
from kopylite.devcluster.faults import WRITES, Faults, past_of
from kopylite.devcluster.simulator import Simulation, simulator_app
from kopylite.manager import Manager, Options
from kopylite.objects import kind_of
from kopylite.reconcile.context import RUNNING
from kopylite.reconcile.effects import EffectCall
from kopylite.sweep.frames import users_frames
from kopylite.sweep.incarnation import Incarnation
from kopylite.sweep.source import AppSource
from kopylite.sweep.trace import NOISE, OPERATOR, SCENARIO, SERVER, SIMULATOR, WEBHOOKS, Point, Trace, TraceEntry
from kopylite.sweep.transport import Link, MemoryTransport
from kopylite.sweep.webhooks import answer_webhooks

# Who makes the request that is answered now.
ACTOR: ContextVar[str] = ContextVar("kopylite_sweep_actor", default=SERVER)
# The write of the operator that is answered now.
_WRITE: ContextVar[TraceEntry | None] = ContextVar("kopylite_sweep_write", default=None)
AtWrite = Callable[[Point, TraceEntry, HttpRequest], Awaitable[Response | None]]
AfterWrite = Callable[[Point, TraceEntry, Response], Awaitable[None]]
# From a crash until the next start.
DOWN_SECONDS = 1.0
# An operator that ends by itself is started again so often.
MOST_ENDS = 3
_SIMULATOR_OPTIONS = Options(workers=4, metrics_address="off", health_address="off", grace_period=1.0)


class SweepWorld:
    """One run's world. Enter it, then `start_operator`.

    Args:
        store: what there is at first.
        clock: of everything.
        source: makes the operator.
        simulate: play workloads.
        controllers: of the server.

    Attributes:
        trace: what happened so far.
        faults: of its server.
        step: of the scenario, from 0.
        reads: the steps in which a reconcile read from the server itself, and not from its caches.
        ends: why the operator ended by itself.
        at_write, after_write: called around each write of the operator.
        on_effect: called after each call that left the cluster; returns whether the operator crashes now.
    """

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        source: AppSource,
        *,
        simulate: bool = True,
        controllers: tuple[str, ...] = NAMES,
    ) -> None:
        self.clock = clock
        self.trace = Trace()
        self.step = 0
        self.reads: set[int] = set()
        self.ends: list[str] = []
        self.server = ApiServer(ApiServerOptions(listen=False, controllers=controllers), clock=clock, store=store)
        world = self.server.world
        self.faults = Faults(world.hooks, clock, lambda: past_of(world), lambda: world.store.compact())
        self.incarnation: Incarnation | None = None
        self.last_write = clock.monotonic()
        self.tasks: TaskGroup | None = None
        self._source = source
        self._simulate = simulate
        self._counted: dict[tuple[str, ...], int] = {}
        self._called: set[tuple[str, str, str]] = set()
        self._began = clock.monotonic()
        self._wanted = False
        self._restarts = anyio.Event()
        self._restart_at = 0.0
        self._primary: list[tuple[str, str]] = []
        self._agent = "nobody yet"
        self.at_write: AtWrite | None = None
        self.after_write: AfterWrite | None = None
        self.on_effect: Callable[[TraceEntry, EffectCall], bool] = lambda entry, call: False

    @property
    def now(self) -> float:
        """Seconds since its beginning."""
        return self.clock.monotonic() - self._began

    def note(self, kind: str, actor: str, text: str, **more: Any) -> TraceEntry:
        """Add an entry to the trace."""
        return self.trace.add(TraceEntry(kind, actor, self.now, self.step, text, **more))

    @contextlib.asynccontextmanager
    async def lived(self) -> AsyncIterator[None]:
        """The world without the operator, as long as the block runs."""
        answer_webhooks(self._source.app, self.server, self.client(WEBHOOKS), self.clock)
        async with self.server, anyio.create_task_group() as self.tasks:
            self.server.world.store.observers.append(self._observe)
            if self._simulate:
                link = Link(self.server, SIMULATOR)
                manager = Manager(
                    simulator_app(Simulation()), link.config(), _SIMULATOR_OPTIONS, clock=self.clock,
                    connect=_as(SIMULATOR, link), reports=False,
                )  # fmt: skip
                self.tasks.start_soon(manager.run)
                await manager.wait_synced()
            self.tasks.start_soon(self._supervise)
            yield
            self.tasks.cancel_scope.cancel()

    def client(self, actor: str = SCENARIO) -> Client:
        """A client of somebody else than the operator."""
        link = _ActorLink(self.server, actor)
        return Client(MemoryTransport(link, actor, self.clock), field_manager=actor, clock=self.clock)

    # The operator

    def start_operator(self) -> None:
        """Start it, with empty memory."""
        assert self.tasks is not None, "enter the world first"
        self._wanted = True
        self.note("start", OPERATOR, "starts, with empty memory")
        link = _OperatorLink(self)
        self.incarnation = Incarnation(self._source, link, self.clock, self._ended, LifeEffects(self, link))
        self.tasks.start_soon(self.incarnation.run)

    def stop_operator(self) -> None:
        """Crash it, and leave it down."""
        self._wanted = False
        if self.incarnation is not None:
            self.incarnation.crash()
            self.incarnation = None

    def crash(self, why: str) -> None:
        """Crash it now; it starts again after a moment."""
        self.note("fault", "fault", why)
        self.stop_operator()
        self._wanted = True
        self._restart(DOWN_SECONDS)

    def _restart(self, after: float) -> None:
        """Start it later, and not as a child of the task that crashed: that one's context variables are its own."""
        self._restart_at = self.clock.monotonic() + after
        self._restarts.set()

    async def _supervise(self) -> None:
        """Start the operator again whenever that was asked for."""
        while True:
            await self._restarts.wait()
            self._restarts = anyio.Event()
            await self.clock.sleep(self._restart_at - self.clock.monotonic())
            if self._wanted and self.incarnation is None:
                self.start_operator()

    def _ended(self, why: str) -> None:
        """It has ended by itself: as in a cluster, it is started again, some times."""
        self.note("error", OPERATOR, f"the operator ended: {why}")
        self.ends.append(why)
        self.last_write = self.clock.monotonic()
        self.incarnation = None
        if len(self.ends) < MOST_ENDS:
            self._restart(10.0)

    # What happens

    def _observe(self, storage: str, change: StoredChange) -> None:
        if storage in NOISE:
            return
        actor = ACTOR.get()
        self.last_write = self.clock.monotonic()
        if (write := _WRITE.get()) is not None:
            write.changed = True
        before = change.previous.decode() if change.previous is not None else None
        self.note(
            "change", actor, f"{change.type.lower()} {storage} {change.record.key}",
            key=f"{storage} {change.record.key}", change=change.type, before=before, after=change.record.decode(),
        )  # fmt: skip

    def point_of(self, request: HttpRequest) -> Point | None:
        """Where a request of the operator stands in the sweep; None: it writes nothing that counts."""
        target = parse_target(request)
        storage = f"{target.resource}.{target.group}" if target.group else target.resource
        if target.verb not in WRITES or storage in NOISE or not target.resource:
            return None
        name = target.name or _name_in(request.body)
        key = (target.verb, storage, target.subresource, f"{target.namespace}/{name}".strip("/"))
        self._counted[key] = nth = self._counted.get(key, 0) + 1
        return Point(*key, nth)

    async def operate(self, link: Link, request: HttpRequest, answer: Callable[[], Awaitable[Response]]) -> Response:
        """Carry out a request of the operator, and keep it."""
        point = self.point_of(request)
        if point is None:
            if request.method == "GET" and RUNNING.get() is not None:
                self.reads.add(self.step)
            return await answer()
        frames = users_frames()
        entry = self.note("write", OPERATOR, str(point), point=point, frames=frames)
        if self.at_write is not None and (refused := await self.at_write(point, entry, request)) is not None:
            entry.status = refused.status
            return refused
        token = _WRITE.set(entry)
        try:
            response = await answer()
        finally:
            _WRITE.reset(token)
        entry.status = response.status
        if self.after_write is not None:
            await self.after_write(point, entry, response)
        await link.check()
        return response

    def effect(self, call: EffectCall) -> bool:
        """Keep a call that left the cluster; returns whether the operator crashes now."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
        entry = self.note("effect", OPERATOR, f"calls {call.name}({arguments})", frames=users_frames(), key=call.name)
        entry.effect = (call.name, arguments, "" if call.key is None else repr(call.key))
        entry.changed = call.key is None or entry.effect not in self._called
        self._called.add(entry.effect)
        if entry.changed:  # a second look at what is done already is no work
            self.last_write = self.clock.monotonic()
        return self.on_effect(entry, call)

    def last_error(self, after: float) -> str:
        """The last error of a reconcile since a moment; "" if there was none."""
        found = [entry for entry in self.trace.entries if entry.kind == "error" and entry.time + self._began >= after]
        return found[-1].text if found else ""

    @property
    def runs(self) -> int:
        """How many reconciles of the present operator have ended."""
        manager = self.incarnation.manager if self.incarnation is not None else None
        return sum(controller.runs for controller in manager.controllers) if manager is not None else 0

    @property
    def agent(self) -> str:
        """How the operator's User-Agent begins."""
        manager = self.incarnation.manager if self.incarnation is not None else None
        self._agent = f"{manager.apps[0].name}/" if manager is not None else self._agent
        return self._agent

    def primary(self) -> list[tuple[str, str]]:
        """apiVersion and kind of what the operator's controllers reconcile."""
        manager = self.incarnation.manager if self.incarnation is not None else None
        kinds = [kind_of(controller.spec.kind) for controller in (manager.controllers if manager else ())]
        self._primary = [(kind.api_version, kind.kind) for kind in kinds] or self._primary
        return self._primary

    def owned(self) -> set[str]:
        """The kinds that the operator owns and watches."""
        return {kind_of(each.kind).kind for spec in self._source.app.controllers for each in spec.owns}

    def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """What serves a kind."""
        for resource in self.server.world.registry:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        return None


class LifeEffects:
    """The EffectWatcher of one life of the operator."""

    def __init__(self, world: SweepWorld, link: Link) -> None:
        self._world = world
        self._link = link
        self._loop = asyncio.get_running_loop()

    async def begins(self, call: EffectCall) -> None:
        await self._link.check()

    async def happened(self, call: EffectCall) -> None:
        if self._world.effect(call):
            self._world.crash(f"the operator crashes after {call.name} was called")
        await self._link.check()

    def begins_in_thread(self, call: EffectCall) -> None:
        if not self._link.alive:
            raise asyncio.CancelledError

    def happened_in_thread(self, call: EffectCall) -> None:
        if threading.current_thread() is threading.main_thread():  # a plain function that is called in the event loop
            crashes = self._world.effect(call)
            if crashes:
                self._world.crash(f"the operator crashes after {call.name} was called")
            if not self._link.alive:
                raise asyncio.CancelledError
            return
        told: Future[None] = Future()

        def tell() -> None:
            if self._world.effect(call):
                self._world.crash(f"the operator crashes after {call.name} was called")
            told.set_result(None)

        self._loop.call_soon_threadsafe(tell)
        told.result()
        if not self._link.alive:
            raise asyncio.CancelledError


class _ActorLink(Link):
    """A Link whose changes are known as somebody's."""

    async def pass_on(self, request: HttpRequest) -> Response:
        token = ACTOR.set(self.agent)
        try:
            return await super().pass_on(request)
        finally:
            ACTOR.reset(token)


class _OperatorLink(_ActorLink):
    def __init__(self, world: SweepWorld) -> None:
        super().__init__(world.server, OPERATOR)
        self._world = world

    async def pass_on(self, request: HttpRequest) -> Response:
        answer = super().pass_on
        return await self._world.operate(self, request, lambda: answer(request))


def _as(actor: str, link: Link) -> Any:
    return _ActorLink(link.server, actor).connect


def _name_in(body: bytes) -> str:
    """The name of the object that is created; what the server completes ends with "*"."""
    try:
        metadata = msgspec.json.decode(body).get("metadata") or {}
        return str(metadata.get("name") or f"{metadata.get('generateName', '')}*")
    except (msgspec.DecodeError, AttributeError):
        return ""
