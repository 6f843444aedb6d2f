"""Worker: one long-lived task that runs one Request after the other."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Container
from contextvars import copy_context
from typing import Any, cast

import anyio
import msgspec

from kopylite.boundary import cancelled_from_outside, ends_process, in_context
from kopylite.clock import TICK, Clock
from kopylite.controller.outcome import NextRun, Settlement, settle_error, settle_result
from kopylite.controller.pausecondition import with_condition
from kopylite.controller.pauses import Pauses
from kopylite.controller.reasons import Reasons
from kopylite.controller.settler import Settler
from kopylite.controller.spec import ControllerSpec, Reconcile
from kopylite.controller.ticks import Ticks
from kopylite.errors import ForgottenAwait, QueueShutDown, ReconcileTimeout
from kopylite.objects import kind_of
from kopylite.reconcile.chains import ChainLink
from kopylite.reconcile.context import RUNNING, Context, Environment
from kopylite.reconcile.request import Request
from kopylite.reconcile.synchronous import SyncReconcile, in_threads
from kopylite.reconcile.threads import Threads
from kopylite.workqueue import WorkQueue

logger = logging.getLogger("kopylite.controller")

# How long workers may go on without letting the rest of the process have the event loop. Watches and probes wait for
# so long at worst, plus one step of user code. Giving way costs some 5 µs, a thousandth of it.
TURN = 0.005


class LoopTurn:
    """The time that the workers of one controller share between two turns of the event loop.

    A reconcile that finds nothing to do never suspends, so a worker could run thousands of them in a row and starve
    the watches. Each worker looks whether it is over before it takes a key, and gives way when it is.

    Attributes:
        ends: on the clock.
    """

    __slots__ = ("_clock", "ends")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ends = clock.monotonic() + TURN

    def is_over(self) -> bool:
        return self._clock.monotonic() > self.ends

    async def give_way(self) -> None:
        """Return in a turn of the event loop that has time left. The first worker to come back begins it."""
        while self.is_over():
            ends = self.ends
            await asyncio.sleep(0)
            if self.ends == ends:
                self.ends = self._clock.monotonic() + TURN


class Shift(msgspec.Struct, frozen=True):
    """What the workers of one controller have in common.

    Attributes:
        turn: their time between two turns of the event loop.
        threads: where the runs of a plain function are.
        pauses: objects that are left alone.
        ticks: of a timer: when each object's time has come.
    """

    turn: LoopTurn
    threads: Threads
    pauses: Pauses
    ticks: Ticks | None = None


def _awaited(spec: ControllerSpec, shift: Shift) -> Reconcile:
    """The reconcile as an async function, with what stands around it."""
    if spec.threads is None:
        reconcile = cast("Reconcile", spec.reconcile)
    else:
        reconcile = in_threads(cast("SyncReconcile", spec.reconcile), shift.threads)
    if shift.ticks is not None:
        reconcile = shift.ticks.around(reconcile)
    return with_condition(reconcile, kind_of(spec.kind), shift.pauses) if spec.paused_condition else reconcile


def _is_async(function: Reconcile) -> bool:
    """Whether calling it runs nothing of it yet: so it is with what `async def` makes, and with nothing around that."""
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_COROUTINE)


class Worker:
    """Takes keys from the queue, runs the user's function for each, and has the outcome settled.

    Whatever the function raises concerns its key only, and so do the context variables that it sets: each run has a
    fresh copy of the worker's own. The worker ends when the queue is shut down, after the run
    that is in progress, or when it is cancelled from outside. An exception of the machinery itself is let through:
    it must end the process, since a controller with a dead worker would look alive.

    The limit on a run costs nothing per run: one scope lasts for many runs and is cancelled, and replaced, only when
    one of them is overdue; one timer, armed once per timeout at most, watches for that.
    """

    def __init__(
        self,
        spec: ControllerSpec,
        environment: Environment,
        queue: WorkQueue[Request],
        reasons: Reasons[Request],
        settler: Settler,
        shift: Shift,
    ) -> None:
        self._spec = spec
        self._environment = environment
        self._clock = environment.clock
        self._queue = queue
        self._reasons = reasons
        self._settler = settler
        self._turn = shift.turn
        self._threads = shift.threads
        self._pauses = shift.pauses
        self._timeout = spec.timeout
        self._reconcile: Reconcile = _awaited(spec, shift)
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The run in progress; the rest is valid only while there is one.
        self._context: Context | None = None
        self._scope: anyio.CancelScope
        self._overdue = False
        self._request = Request("", "")
        self._began = 0.0

    @property
    def context(self) -> Context | None:
        """The context of the run in progress; None between runs."""
        return self._context

    async def run(self) -> None:
        """Work until the queue is shut down. Cancelled: the run in progress is cancelled and not settled."""
        self._task = asyncio.current_task()
        try:
            while True:
                try:
                    self._overdue = False
                    with anyio.CancelScope() as self._scope:
                        await self._serve()
                except asyncio.CancelledError:
                    if cancelled_from_outside():
                        raise
                if self._context is not None:
                    self._fail(self._timeout_error())
        except QueueShutDown:
            return
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._context is not None:
                self._queue.done(self._request)
                self._context = None

    async def _serve(self) -> None:
        """Run keys until one is overdue (then it is cancelled, or has returned all the same)."""
        queue, turn, reconcile, clock = self._queue, self._turn, self._reconcile, self._clock
        is_async = _is_async(reconcile)
        paused: Container[Request] = () if self._spec.paused_condition else self._pauses.paused
        while not self._overdue:
            # The clock is read twice per run: here, and when the run has ended.
            now = clock.monotonic()
            if now > turn.ends and queue.has_key(now):  # who waits for a key gives way, too
                await turn.give_way()
                now = clock.monotonic()
            if (item := queue.get_nowait(now)) is None:
                item = await queue.get()
                now = clock.monotonic()
            request, priority = item
            if paused and request in paused:
                self._pauses.park(request, priority)
                queue.done(request, now)
                continue
            context = self._begin(request, priority, now)
            try:
                variables = copy_context()
                variables.run(RUNNING.set, context)
                run = reconcile(context, request) if is_async else variables.run(reconcile, context, request)
                settlement = settle_result(await in_context(variables, run), reconcile)
                if context.forgotten:
                    raise ForgottenAwait("; ".join(context.forgotten))
            except asyncio.CancelledError as error:
                if cancelled_from_outside():
                    raise
                self._fail(error)
            except BaseException as error:
                if ends_process(error):
                    raise
                self._fail(self._timeout_error(error) if self._overdue else error)
            else:
                self._finish(settlement, None)

    def _begin(self, request: Request, priority: int, now: float) -> Context:
        reasons, causes = self._reasons.take(request)
        self._context = context = Context(self._environment, request, reasons, causes, priority)
        self._request = request
        self._began = now
        if self._timer is None and self._timeout is not None:
            self._watch_deadline(self._timeout)
        return context

    def _fail(self, error: BaseException) -> None:
        self._finish(settle_error(error, self._settler.errors(self._request), self._spec.max_retries), error)

    def _finish(self, settlement: Settlement, error: BaseException | None) -> None:
        context = self._context
        assert context is not None
        request, now = self._request, self._clock.monotonic()
        has_news = error is not None or context.step is not None
        if has_news:
            RUNNING.set(context)  # for the log lines about it
        self._settler.settle(context, request, context.priority, settlement, error, now - self._began, now)
        self._environment.on_run(context.step, now)
        if has_news:
            RUNNING.set(None)
        self._context = None
        # An event may come before the answer to the write that made it: see Controller.enqueue.
        echoes = context.step is not None and settlement.next_run is NextRun.NONE and self._wrote_all(context.step)
        self._queue.done(request, now, context.priority if echoes else None)

    def _wrote_all(self, step: ChainLink) -> bool:
        """Whether the run to come is for nothing but what the one that has ended wrote itself."""
        changes = self._reasons.changes(step.request)
        return bool(changes) and all(self._environment.writer(to) is step for to in changes)

    def _watch_deadline(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(max(seconds, TICK), self._on_deadline)

    def _on_deadline(self) -> None:
        """The timer was armed for an earlier run if a later one is in progress: then it is armed for that one."""
        self._timer = None
        if self._context is None or self._timeout is None:
            return
        left = self._began + self._timeout - self._clock.monotonic()
        if left > 0:
            self._watch_deadline(left)
            return
        self._overdue = True
        self._scope.cancel()
        for call in self._threads.active(self._context):
            logger.warning(
                "its timeout of %g s is over, but %s is at work in a thread, which nothing can stop: the run ends when "
                "it returns, or uses ctx again. Give it a limit of its own, shorter than the timeout",
                *(self._spec.timeout, call.name),
                extra={"fields": self._context.fields()},
            )

    def leave(self) -> None:
        """Do not wait for a run any longer that was cancelled; see Patience, which has to be over."""
        if self._task is not None:
            self._task.cancel()  # anyio's own cancellation stops at the shields of user code

    def _timeout_error(self, cause: BaseException | None = None) -> ReconcileTimeout:
        error = ReconcileTimeout(f"cancelled after {self._clock.monotonic() - self._began:.3f} s")
        error.__cause__ = cause
        return error
