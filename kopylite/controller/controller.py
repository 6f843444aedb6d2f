"""Controller: sources that say which keys changed, a queue, and workers that reconcile them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup

from kopylite.boundary import PATIENCE, ActiveCall, Patience
from kopylite.controller.gate import Gate, Syncing
from kopylite.controller.pauses import Pauses
from kopylite.controller.reasons import Reasons
from kopylite.controller.settler import Settler
from kopylite.controller.spec import ControllerSpec
from kopylite.controller.ticks import Ticks
from kopylite.controller.worker import LoopTurn, Shift, Worker
from kopylite.errors import UsageError
from kopylite.objects import Unstructured
from kopylite.observers import QueueObserver, ReconcileObserver
from kopylite.reconcile.chains import ChangeReason
from kopylite.reconcile.context import Environment
from kopylite.reconcile.request import Request
from kopylite.reconcile.threads import THREADS, Threads
from kopylite.triggers import Enqueue
from kopylite.workqueue import QueueStatistics, RateLimiter, WorkQueue

logger = logging.getLogger("kopylite.controller")

# For what was cancelled to clean up.
CLEANUP_SECONDS = 5.0


class Source(Syncing, Protocol):
    """Where a controller learns which keys changed."""

    @property
    def name(self) -> str:
        """For logs: what it watches, e.g. "Deployment.apps/v1"."""

    @property
    def synced(self) -> bool:
        """Whether everything that exists has been enqueued once."""

    async def run(self, enqueue: Enqueue) -> None:
        """Enqueue until cancelled, or until there is nothing more to come."""

    async def wait_synced(self) -> None:
        """Return as soon as `synced` is true."""


class ActiveRun(msgspec.Struct, frozen=True):
    """A reconcile in progress: since how many seconds, and why."""

    request: Request
    seconds: float
    reasons: tuple[str, ...]
    reconcile_id: str


class ControllerStatistics(msgspec.Struct, frozen=True):
    """A controller at one moment.

    Attributes:
        workers: how many there are; `max_concurrent_reconciles`.
        active: how many are busy; `active_workers`.
        synced: whether its sources are, so that it works on every key.
        waiting_for: names of the sources that are not. The keys that need none of them are worked on.
        queue: its queue.
    """

    name: str
    workers: int
    active: int
    synced: bool
    waiting_for: tuple[str, ...]
    queue: QueueStatistics


class Controller:
    """Runs one ControllerSpec.

    A key is reconciled as soon as the sources that it needs are synced, those of its namespace and those that have
    none, so no reconcile acts on half a world (see Gate); for these it waits for ever, while others run on.

    Args:
        spec: what to run.
        environment: what its runs share: name, client, recorder, clock.
        sources: where its keys come from; they are run by this controller.
        workers: how many reconciles run at the same time, unless the spec says.
        observer: told about finished runs.
        queue_observer: told about the queue.
        find: names the object of a key, for Events about it; see Settler.
        in_scope: whether it works on a key at the moment; None: on all. Others are ignored, and what is arranged for a
            run that has begun before is not. See `leave`.
    """

    def __init__(
        self,
        spec: ControllerSpec,
        environment: Environment,
        *,
        sources: Sequence[Source] = (),
        workers: int = 1,
        observer: ReconcileObserver | None = None,
        queue_observer: QueueObserver | None = None,
        find: Callable[[Request], Unstructured | None] = lambda request: None,
        in_scope: Callable[[Request], bool] | None = None,
    ) -> None:
        self.spec = spec
        # Those that are followed at the moment have a scope that ends it.
        self._sources: dict[Source, anyio.CancelScope | None] = dict.fromkeys(sources)
        self._in_scope = in_scope
        self._shard = environment.shard
        self._writer = environment.writer
        self._queue: WorkQueue[Request] = WorkQueue(
            clock=environment.clock, rate_limiter=RateLimiter(spec.rate_limit), observer=queue_observer
        )
        self.pauses = Pauses(spec.name, self._queue.add, environment.clock, told=spec.paused_condition)
        self._reasons: Reasons[Request] = Reasons()
        self._gate = Gate(self.name, lambda: self.sources, self._queue.add)
        self._settler = settler = Settler(
            spec,
            self._queue,
            self._reasons,
            observer or ReconcileObserver(),
            clock=environment.clock,
            on_forbidden=environment.on_forbidden,
            find=find,
            in_scope=in_scope,
        )
        self._threads = Threads(spec.name, environment.clock)
        ticks = None if spec.timer is None else Ticks(spec.timer, find, environment.clock)
        shift = Shift(LoopTurn(environment.clock), self._threads, self.pauses, ticks)
        self._workers = [
            Worker(spec, environment, self._queue, self._reasons, settler, shift)
            for _ in range(spec.workers or workers)
        ]
        self._patience = Patience()
        self._started = False
        self._stopping = False
        # Both exist while run() does. Cancelling the intake stops the sources and the wait for them; cancelling the
        # runs ends everything.
        self._intake: TaskGroup | None = None
        self._runs: TaskGroup | None = None
        self._ended = anyio.Event()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where its keys come from at the moment."""
        return tuple(self._sources)

    @property
    def label(self) -> str:
        """Its name, with that of its shard: different from all others of the process."""
        return self.name if self._shard is None else f"{self.name}-shard-{self._shard.index}"

    @property
    def synced(self) -> bool:
        """Whether every source is, so that every key is being reconciled."""
        return all(source.synced for source in self.sources)

    def enter(self, namespace: str, sources: Sequence[Source]) -> None:
        """Work in one more namespace, as soon as these sources are in sync. They are run by this controller."""
        if self._stopping:
            return
        self._sources |= dict.fromkeys(sources)
        if sources:
            self._gate.close(namespace)
        if self._intake is not None:
            for source in sources:
                self._intake.start_soon(self._follow, source)

    def leave(self, namespace: str, sources: Iterable[Source]) -> None:
        """Work in a namespace no more, which `in_scope` denies already: run these sources no longer, and forget the
        keys. Runs in progress end by themselves, and whatever they come to, there is none after them.
        """

        def left(request: Request) -> bool:
            return request.namespace == namespace

        for source in sources:
            if (scope := self._sources.pop(source, None)) is not None:
                scope.cancel()
        self._gate.drop(namespace)
        for kept in (self._queue, self._reasons, self._settler, self.pauses):
            kept.drop(left)

    def enqueue(self, request: Request, reason: str, priority: int = 0) -> None:
        """Ask for a run of `request`; the reasons of all asks until then are merged. Ignored when stopping."""
        if self._in_scope is not None and not self._in_scope(request):
            return
        if type(reason) is ChangeReason:
            run = self._writer(reason.to)
            if run is not None and run.request == request and run.controller == self.name:
                priority = min(priority, run.priority)  # what a run has done itself is no more urgent than it was
        self._reasons.add(request, reason)
        self._gate.add(request, priority)

    def server_reached(self) -> None:
        """The server answers again after it did not: keys that failed by that run within 2 s."""
        self._settler.server_reached()

    async def run(self) -> None:
        """Run until stop() was called and the last run ended.

        An exception that comes out of here is a fault of a source or of kopylite, and must end the process.

        Raises:
            UsageError: it runs, or ran, already.
        """
        if self._started:
            raise UsageError(f"controller {self.name!r} was started before; make a new one")
        self._started = True
        THREADS.set(self._threads)
        PATIENCE.set(self._patience)
        try:
            async with anyio.create_task_group() as self._runs:
                try:
                    async with anyio.create_task_group() as self._intake:
                        if not self._stopping:
                            await self._begin(self._intake, self._runs)
                finally:
                    self._stopping = True  # also where it is cancelled: nothing more is taken in
        finally:
            self._queue.shut_down()  # where it was cancelled, the queue's timer would outlive it
            self._threads.close()
            self._ended.set()

    def stop(self) -> None:
        """Begin no new run and take no new key; runs in progress go on, with a working client."""
        self._stopping = True
        if self._intake is not None:
            self._intake.cancel_scope.cancel()
        self._queue.shut_down()

    async def drain(self, grace: float) -> bool:
        """Stop, wait until the runs in progress ended, and cancel those that are not done after `grace` seconds.

        Threads are not waited for then, and 5 s later nothing else: what swallows its cancellation is named and left
        where it waits.

        Returns:
            Whether all of them ended by themselves.
        """
        self.stop()
        if self._runs is None:
            return True
        with anyio.move_on_after(grace):
            await self._ended.wait()
            return True
        for run in self.active_runs():
            logger.warning(
                "cancelled at the end of the grace period after %.1f s",
                run.seconds,
                extra={"fields": {"controller": self.name, "namespace": run.request.namespace,
                                  "name": run.request.name, "reconcile_id": run.reconcile_id}},
            )  # fmt: skip
        for call in self._threads.active():
            logger.warning("%s runs on in a thread until the process ends, for %.1f s now", call.name, call.seconds)
        self._threads.abandon()
        self._runs.cancel_scope.cancel()
        with anyio.move_on_after(CLEANUP_SECONDS):
            await self._ended.wait()
            return False
        left = [f"reconcile of {run.request}" for run in self.active_runs()]
        left += [f"{call.what} {call.name} of {call.subject}" for call in self.active_calls()]
        logger.error("left where it is, since it does not heed its cancellation: %s", ", ".join(left))
        self._patience.over = True
        for worker in self._workers:
            worker.leave()
        await self._ended.wait()
        return False

    def active_runs(self, longer_than: float = 0.0) -> list[ActiveRun]:
        """The runs in progress that are older than some seconds, the oldest first: what is stuck, and why it ran."""
        ages = self._queue.running()
        contexts = [worker.context for worker in self._workers if worker.context is not None]
        runs = [
            ActiveRun(context.request, ages[context.request], context.reasons, context.reconcile_id)
            for context in contexts
        ]
        return sorted((run for run in runs if run.seconds >= longer_than), key=lambda run: -run.seconds)

    @property
    def runs(self) -> int:
        """How many runs have ended."""
        return self._settler.runs

    def slowest(self) -> str:
        """The slowest run since this was last asked, ended or in progress, for people; "" if there was none."""
        seconds, request = self._settler.slowest
        self._settler.slowest = 0.0, None
        for run in self.active_runs(longer_than=seconds)[:1]:
            seconds, request = run.seconds, run.request
        return f"{request}, {seconds:.1f} s" if request is not None else ""

    def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
        """The calls of map and periodic functions in progress that are older than some seconds, the oldest first."""
        calls = [call for source in self.sources for call in getattr(source, "active_calls", _no_calls)(longer_than)]
        return sorted(calls, key=lambda call: -call.seconds)

    def statistics(self) -> ControllerStatistics:
        """The controller as it is now."""
        queue = self._queue.statistics()
        unreached = sum(not self._queue.failures(request) for request in self._settler.unreached)
        queue = msgspec.structs.replace(queue, failing=queue.failing + unreached)
        waiting_for = tuple(source.name for source in self.sources if not source.synced)
        return ControllerStatistics(self.name, len(self._workers), queue.running, not waiting_for, waiting_for, queue)

    async def _begin(self, intake: TaskGroup, runs: TaskGroup) -> None:
        intake.start_soon(self._settler.report)
        for source in self._sources:
            intake.start_soon(self._follow, source)
        await self._gate.wait_open()
        paused = f", paused objects: {len(self.pauses)}" if self.pauses else ""
        logger.info("controller %s begins, workers: %d%s", self.name, len(self._workers), paused)
        for worker in self._workers:
            runs.start_soon(worker.run)
        self._gate.open_rest(intake)

    async def _follow(self, source: Source) -> None:
        if source in self._sources:  # else it was let go before it began
            with anyio.CancelScope() as self._sources[source]:
                await source.run(self.enqueue)


def _no_calls(longer_than: float) -> list[ActiveCall]:
    """Of a source that calls nobody."""
    return []
