"""Workers with a real queue, in virtual time; driven through a Controller without sources."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from kopylite.controller import Controller, ControllerSpec
from kopylite.controller.spec import Reconcile
from kopylite.controller.worker import TURN, LoopTurn, _is_async
from kopylite.errors import Conflict, ConnectionFailed, DecodeError, Invalid, TerminalError
from kopylite.objects import Kind
from kopylite.observers import QueueObserver, ReconcileObserver
from kopylite.reconcile import Context, Environment, Request, Result, Retry
from kopylite.reconcile.context import RUNNING
from kopylite.testing.clock import VirtualClock
from kopylite.workqueue import RateLimit

if TYPE_CHECKING:
    from kopylite.client import Client

WIDGET = Kind("example.com/v1", "Widget")
A, B = Request("default", "a"), Request("default", "b")


class Notes(ReconcileObserver):
    def __init__(self) -> None:
        self.results: list[str] = []
        self.failures: list[str] = []

    def finished(self, result: str, seconds: float) -> None:
        self.results.append(result)

    def failed(self, *, terminal: bool, timeout: bool, crashed: bool) -> None:
        flags = {"terminal": terminal, "timeout": timeout, "crashed": crashed}
        self.failures.append(" ".join(name for name, flag in flags.items() if flag) or "refused")

    def conflicted(self) -> None:
        self.failures.append("conflict")

    def postponed(self) -> None:
        self.failures.append("postponed")

    def object_rejected(self) -> None:
        self.failures.append("rejected")


@dataclass
class Bench:
    """Runs one reconcile function in a controller of its own."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    notes: Notes = field(default_factory=Notes)
    runs: list[tuple[float, Request, tuple[str, ...]]] = field(default_factory=list)
    queue_observer: QueueObserver = field(default_factory=QueueObserver)

    def play(
        self,
        behaviour: Callable[[Context, Request], Awaitable[Result | None]],
        script: Callable[[Controller], Awaitable[None]],
        *,
        workers: int = 1,
        around: Callable[[Reconcile], Reconcile] = lambda reconcile: reconcile,
        **options: Any,
    ) -> Controller:
        async def reconcile(ctx: Context, request: Request) -> Result | None:
            self.runs.append((self.clock.monotonic(), request, ctx.reasons))
            return await behaviour(ctx, request)

        options.setdefault("rate_limit", RateLimit(jitter=0))
        spec = ControllerSpec(name="widget", kind=WIDGET, reconcile=around(reconcile), **options)
        controller = Controller(
            spec,
            Environment("widget", cast("Client", None), clock=self.clock),
            workers=workers,
            observer=self.notes,
            queue_observer=self.queue_observer,
        )

        async def main() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(controller.run)
                await script(controller)
                await controller.drain(1000.0)

        self.clock.run(main)
        return controller

    @property
    def times(self) -> list[float]:
        return [began for began, _, _ in self.runs]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def once(*requests: Request, then: float = 0.0) -> Callable[[Controller], Awaitable[None]]:
    """A script: enqueue each request, then let time pass."""

    async def script(controller: Controller) -> None:
        for request in requests:
            controller.enqueue(request, "created")
        await anyio.sleep(then)

    return script


def raises(*errors: BaseException) -> Callable[[Context, Request], Awaitable[Result | None]]:
    """A behaviour: raise one after the other, then succeed."""
    left = list(errors)

    async def behaviour(ctx: Context, request: Request) -> Result | None:
        if left:
            raise left.pop(0)
        return None

    return behaviour


def test_a_failing_key_backs_off_exponentially_and_a_success_forgets_it(bench: Bench) -> None:
    bench.play(raises(*[ValueError("no")] * 4), once(A, then=1.0))
    assert bench.times == pytest.approx([0.0, 0.005, 0.015, 0.035, 0.075])
    assert [reasons for _, _, reasons in bench.runs] == [("created",), *[("retry",)] * 4]
    assert bench.notes.results == ["error"] * 4 + ["success"]
    assert bench.notes.failures == ["crashed"] * 4


def test_an_event_runs_a_key_at_once_though_it_backs_off(bench: Bench) -> None:
    async def script(controller: Controller) -> None:
        controller.enqueue(A, "created")
        await anyio.sleep(0.001)
        controller.enqueue(A, "changed")
        await anyio.sleep(0.001)

    bench.play(raises(ValueError("no")), script)
    assert bench.times == [0.0, 0.001]
    assert bench.runs[1][2] == ("retry", "changed")


def test_requeue_after_runs_again_then_and_keeps_the_priority(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        return Result(requeue_after=60) if len(bench.runs) < 3 else None

    async def script(controller: Controller) -> None:
        controller.enqueue(A, "created", -100)
        await anyio.sleep(121.0)

    bench.play(behaviour, script)
    assert bench.times == [0.0, 60.0, 120.0]
    assert bench.runs[1][2] == ("requeue_after",)
    assert bench.notes.results == ["requeue_after", "requeue_after", "success"]


def test_a_conflict_is_retried_fast_counted_apart_and_not_shouted_about(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.play(raises(Conflict("newer")), once(A, then=1.0), max_retries=0)
    assert bench.times == [0.0, 0.005]
    assert bench.notes.failures == ["conflict"]
    assert bench.notes.results == ["requeue", "success"]
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_conflicts_without_end_are_reported(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.play(raises(*[Conflict("newer")] * 6), once(A, then=10.0))
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert ["no. 5 in a row" in text for text in warnings] == [True], "a line for each would be a storm"


def test_a_terminal_error_waits_for_the_next_event(bench: Bench) -> None:
    async def script(controller: Controller) -> None:
        await once(A, then=2_000.0)(controller)  # longer than any back-off
        await once(A, then=1.0)(controller)

    bench.play(raises(ValueError(), TerminalError("hopeless")), script)
    assert bench.times == [0.0, 0.005, 2_000.0]
    assert bench.notes.failures == ["crashed", "terminal"]


def test_max_retries_gives_up_until_the_next_event_which_gets_as_many_again(bench: Bench) -> None:
    async def script(controller: Controller) -> None:
        await once(A, then=100.0)(controller)
        await once(A, then=100.0)(controller)

    bench.play(raises(*[Invalid("no")] * 99), script, max_retries=2)
    assert bench.times == pytest.approx([0.0, 0.005, 0.015, 100.0, 100.005, 100.015])
    assert bench.notes.failures == ["refused", "refused", "terminal"] * 2


def test_an_object_that_does_not_fit_is_logged_once_and_not_retried_hot(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.play(raises(*[DecodeError("spec.replicas: not a number")] * 9), once(A, then=1000.0))
    assert bench.times == [0.0, 600.0]
    assert bench.notes.failures == ["refused", "rejected"] * 2
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "spec.replicas: not a number" in errors[0].getMessage()


def test_an_error_is_logged_with_the_fields_of_its_run_and_a_traceback_only_if_it_is_foreign(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.play(raises(ValueError("bug"), Invalid("spec.x: too long")), once(A, then=1.0))
    foreign, refused = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert foreign.exc_info is not None
    assert refused.exc_info is None
    assert "422 Invalid: spec.x: too long" in refused.getMessage()
    fields = foreign.fields  # type: ignore[attr-defined]
    assert fields | {"reconcile_id": ""} == {
        "controller": "widget",
        "namespace": "default",
        "name": "a",
        "reasons": ("created",),
        "reconcile_id": "",
    }


def test_a_run_that_is_overdue_is_cancelled_and_its_worker_goes_on(bench: Bench) -> None:
    ends: list[float] = []

    async def behaviour(ctx: Context, request: Request) -> Result | None:
        if request == A and len(bench.runs) == 1:
            try:
                await anyio.sleep(1000.0)
            finally:
                ends.append(bench.clock.monotonic())
        return None

    bench.play(behaviour, once(A, B, then=100.0), timeout=30.0)
    assert ends == [30.0]
    assert [request for _, request, _ in bench.runs] == [A, B, A]
    assert bench.notes.failures == ["timeout"]


def test_each_run_has_its_own_limit_though_all_share_one_timer(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        await anyio.sleep(25.0 if len(bench.runs) < 4 else 31.0)
        return Result(requeue_after=0.5) if len(bench.runs) < 4 else None

    bench.play(behaviour, once(A, then=107.0), timeout=30.0)
    assert bench.times[:4] == [0.0, 25.5, 51.0, 76.5]
    assert bench.times[4:] == [pytest.approx(106.505)]
    assert bench.notes.failures[0] == "timeout"


def test_a_run_has_its_limit_after_a_pause_that_was_longer(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        await anyio.sleep(1.0 if len(bench.runs) == 1 else 1000.0)
        return Result(requeue_after=100.0)

    bench.play(behaviour, once(A, then=131.5), timeout=30.0)
    assert bench.times[:2] == [0.0, 101.0]
    assert bench.notes.failures[0] == "timeout"


def test_without_a_timeout_a_run_takes_as_long_as_it_likes(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        await anyio.sleep(50_000.0)
        return None

    bench.play(behaviour, once(A, then=60_000.0), timeout=None)
    assert bench.notes.results == ["success"]


def test_a_run_that_answers_the_cancellation_with_its_own_exception_still_timed_out(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        if len(bench.runs) == 1:
            try:
                await anyio.sleep(1000.0)
            except BaseException:
                raise RuntimeError("while cleaning up") from None
        return None

    bench.play(behaviour, once(A, then=100.0), timeout=30.0)
    assert bench.notes.failures == ["timeout"]
    assert bench.notes.results == ["error", "success"]


async def cancels_itself(ctx: Context, request: Request) -> Result | None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return None


async def cancels_itself_and_leaves(ctx: Context, request: Request) -> Result | None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return None


async def awaits_what_was_cancelled(ctx: Context, request: Request) -> Result | None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future
    return None


async def exits(ctx: Context, request: Request) -> Result | None:
    raise SystemExit(3)


@pytest.mark.parametrize("behaviour", [cancels_itself, cancels_itself_and_leaves, awaits_what_was_cancelled, exits])
def test_no_exception_of_user_code_takes_the_worker_along(
    bench: Bench, behaviour: Callable[[Context, Request], Awaitable[Result | None]]
) -> None:
    async def misbehaves_for_a(ctx: Context, request: Request) -> Result | None:
        return await behaviour(ctx, request) if request == A else None

    async def script(controller: Controller) -> None:
        for _ in range(5):
            controller.enqueue(A, "changed")
            await anyio.sleep(0.001)
        controller.enqueue(B, "changed")
        await anyio.sleep(0.001)

    bench.play(misbehaves_for_a, script)
    assert bench.runs[-1][1] == B
    assert bench.notes.results[-1] == "success"


def test_shut_down_lets_the_run_in_progress_finish_and_starts_no_other(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        await anyio.sleep(20.0)
        return Result(requeue_after=1)

    bench.play(behaviour, once(A, B, then=10.0))
    assert [request for _, request, _ in bench.runs] == [A]
    assert bench.clock.monotonic() == 20.0
    assert bench.notes.results == ["requeue_after"]


def test_a_slow_key_holds_up_no_other_as_long_as_a_worker_is_free(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        await anyio.sleep(100.0 if request == A else 1.0)
        return None

    async def script(controller: Controller) -> None:
        controller.enqueue(A, "created")
        for _ in range(3):
            await anyio.sleep(5.0)
            controller.enqueue(B, "changed")
        await anyio.sleep(1.0)

    bench.play(behaviour, script, workers=2)
    assert bench.times == [0.0, 5.0, 10.0, 15.0]


def test_the_running_context_is_set_during_a_run_and_only_then(bench: Bench) -> None:
    seen: list[Context | None] = []

    class Between(QueueObserver):
        def taken(self, waited: float) -> None:
            seen.append(RUNNING.get())

    async def behaviour(ctx: Context, request: Request) -> Result | None:
        assert RUNNING.get() is ctx
        return None

    bench.queue_observer = Between()
    bench.play(behaviour, once(A, B, then=1.0))
    assert bench.notes.results == ["success", "success"]
    assert seen == [None, None]


def test_what_is_told_of_a_failure_is_told_of_its_run(bench: Bench) -> None:
    told: list[bool] = []

    def failed(**what: bool) -> None:
        running = RUNNING.get()
        told.append(running is not None and running.request == A)

    bench.notes.failed = failed  # type: ignore[method-assign]
    bench.play(raises(ValueError("no")), once(A, then=1.0))
    assert told == [True]


def test_only_what_async_def_makes_runs_nothing_when_it_is_called() -> None:
    async def reconcile(ctx: Context, request: Request) -> None: ...

    def around(ctx: Context, request: Request) -> Awaitable[None]:
        return reconcile(ctx, request)

    assert [_is_async(cast("Any", one)) for one in (reconcile, around, partial(reconcile))] == [True, False, False]


def test_a_stray_cancellation_leaves_no_trace_in_later_runs(bench: Bench) -> None:
    """A count that stays above 0 would make asyncio's TaskGroup (3.13) cancel its task again."""
    pending: list[int] = []

    async def behaviour(ctx: Context, request: Request) -> Result | None:
        if request == A:
            return await cancels_itself(ctx, request)
        task = asyncio.current_task()
        assert task is not None
        pending.append(task.cancelling())
        return None

    bench.play(behaviour, once(A, B, then=0.001))
    assert pending == [0]


def test_a_fault_of_the_machinery_is_let_through(bench: Bench) -> None:
    def broken(result: str, seconds: float) -> None:
        raise RuntimeError("observer bug")

    bench.notes.finished = broken  # type: ignore[method-assign]
    with pytest.raises(ExceptionGroup) as group:
        bench.play(raises(), once(A, then=1.0))
    assert group.group_contains(RuntimeError, match="observer bug")


def test_workers_that_never_suspend_leave_the_loop_to_others_every_turn() -> None:
    clock = VirtualClock()
    turn = LoopTurn(clock)
    turns: list[tuple[str, float]] = []

    async def worker(name: str) -> None:
        for _ in range(6):
            if turn.is_over():
                await turn.give_way()
            clock.advance(TURN / 2)
            turns.append((name, clock.monotonic()))

    async def neighbour() -> None:
        for _ in range(8):
            turns.append(("neighbour", clock.monotonic()))
            await asyncio.sleep(0)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker("one"))
            group.create_task(worker("two"))
            group.create_task(neighbour())

    clock.run(main)
    between = [moment for name, moment in turns if name == "neighbour"]
    longest = max(later - earlier for earlier, later in itertools.pairwise(between))
    assert longest <= 2 * TURN


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def circle() -> Exception:
    error, cause = ValueError("a"), ValueError("b")
    error.__cause__, cause.__cause__ = cause, error
    return error


def nested(levels: int) -> BaseException:
    error: Exception = ValueError("innermost")
    for _ in range(levels):
        error = ExceptionGroup("group", [error])
    return error


@pytest.mark.parametrize("error", [Unspeakable(), ValueError("\ud800"), circle(), nested(3000)], ids=range(4))
def test_an_exception_that_cannot_be_told_is_an_error_of_its_run_like_any_other(
    bench: Bench, error: BaseException
) -> None:
    logging.raiseExceptions, before = False, logging.raiseExceptions
    try:
        bench.play(raises(error), once(A, B, then=1.0))
    finally:
        logging.raiseExceptions = before
    assert bench.notes.results == ["error", "success", "success"]


def test_a_result_whose_repr_fails_is_an_error_of_its_run(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    results: list[Any] = [Unspeakable()]

    async def behaviour(ctx: Context, request: Request) -> Result | None:
        return results.pop() if results else None

    bench.play(behaviour, once(A, then=1.0))
    assert bench.notes.results == ["error", "success"]
    assert "returned <Unspeakable, its __repr__ raised RuntimeError>" in caplog.text


TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


def test_a_context_variable_of_one_run_is_not_seen_by_the_next(bench: Bench) -> None:
    seen: list[str] = []

    async def behaviour(ctx: Context, request: Request) -> Result | None:
        seen.append(TENANT.get())
        TENANT.set(request.name)
        await asyncio.sleep(0)
        assert TENANT.get() == request.name
        return None

    bench.play(behaviour, once(A, B, then=1.0))
    assert seen == ["nobody", "nobody"]


if sys.version_info >= (3, 12):  # before, nothing marks a plain function as one that returns a coroutine

    def test_what_a_plain_function_does_before_the_coroutine_that_it_returns_is_part_of_its_run(bench: Bench) -> None:
        seen: list[tuple[str, bool]] = []

        def around(reconcile: Reconcile) -> Reconcile:
            def plain(ctx: Context, request: Request) -> Awaitable[Result | None]:
                seen.append((TENANT.get(), RUNNING.get() is ctx))
                TENANT.set(request.name)
                return reconcile(ctx, request)

            return inspect.markcoroutinefunction(plain)

        async def behaviour(ctx: Context, request: Request) -> Result | None:
            assert TENANT.get() == request.name
            return None

        bench.play(behaviour, once(A, B, then=1.0), around=around)
        assert bench.notes.results == ["success", "success"]
        assert seen == [("nobody", True), ("nobody", True)]


def changed_after(seconds: float) -> Callable[[Controller], Awaitable[None]]:
    """A script: a first event, another one while its run is over, and twenty seconds more."""

    async def script(controller: Controller) -> None:
        controller.enqueue(A, "created")
        await anyio.sleep(seconds)
        controller.enqueue(A, "changed")
        controller.enqueue(A, "deleted")
        await anyio.sleep(20.0)

    return script


def test_a_retry_from_deep_inside_is_one_line_and_no_failure_and_holds_the_key(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async def find_kafka(left: list[int] = [0, 0]) -> None:  # noqa: B006  (counts the calls)
        if left:
            left.pop()
            raise Retry("Kafka is not there yet", after=10)

    async def behaviour(ctx: Context, request: Request) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(find_kafka)
        except* OSError:
            raise

    with caplog.at_level(logging.INFO, logger="kopylite.controller"):
        bench.play(behaviour, changed_after(2.0), max_retries=0)
    assert bench.times == pytest.approx([0.0, 10.0, 20.0])
    assert bench.runs[1][2] == ("requeue_after", "changed", "deleted") or set(bench.runs[1][2]) >= {
        "changed",
        "deleted",
    }
    assert bench.notes.results == ["requeue_after", "requeue_after", "success"]
    assert bench.notes.failures == ["postponed", "postponed"]
    [line] = [record for record in caplog.records if "Kafka" in record.message and "1 more" not in record.message][:1]
    assert (line.levelno, line.exc_info) == (logging.INFO, None)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_a_retry_that_does_not_hold_and_a_plain_requeue_after_give_way_to_an_event(bench: Bench) -> None:
    bench.play(raises(Retry("not yet", after=10, hold=False)), changed_after(2.0))
    assert bench.times == pytest.approx([0.0, 2.0])


def test_an_event_during_the_run_waits_for_the_hold_that_the_run_asks_for(bench: Bench) -> None:
    async def behaviour(ctx: Context, request: Request) -> Result | None:
        if len(bench.runs) > 1:
            return None
        await anyio.sleep(5.0)
        return Result(requeue_after=10, hold=True)

    bench.play(behaviour, changed_after(2.0))
    assert bench.times == pytest.approx([0.0, 15.0])


def test_while_the_server_is_away_retries_back_off_and_say_what_they_are(bench: Bench) -> None:
    async def unreached(ctx: Context, request: Request) -> None:
        raise ConnectionFailed("nobody is there")

    bench.play(unreached, once(A, then=8.0), rate_limit=RateLimit(first=1.0, jitter=0.0))
    assert bench.times == [0.0, 1.0, 3.0, 7.0]
    assert [reasons for _, _, reasons in bench.runs[1:]] == [("retry",)] * 3


def test_keys_that_failed_are_counted_once_whether_the_server_was_away_or_not(bench: Bench) -> None:
    async def fails(ctx: Context, request: Request) -> None:
        if request == B and len(bench.runs) < 4:
            raise ValueError("no")
        raise ConnectionFailed("nobody is there")

    async def script(controller: Controller) -> None:
        for request in (A, B, Request("default", "c")):
            controller.enqueue(request, "created")
        await anyio.sleep(5.0)
        assert controller.statistics().queue.failing == 3

    bench.play(fails, script, rate_limit=RateLimit(first=3.0, jitter=0.0))


def test_an_object_that_is_paused_keeps_no_other_from_its_run(bench: Bench) -> None:
    async def fine(ctx: Context, request: Request) -> None: ...

    async def script(controller: Controller) -> None:
        controller.pauses.paused.add(A)
        for request in (A, B):
            controller.enqueue(request, "changed")
        await anyio.sleep(1.0)

    bench.play(fine, script)
    assert [request for _, request, _ in bench.runs] == [B]


def test_who_gives_way_lets_others_have_a_turn_and_begins_a_new_one() -> None:
    clock, others = VirtualClock(), list[str]()

    async def main() -> None:
        turn = LoopTurn(clock)
        asyncio.get_running_loop().call_soon(others.append, "ran")
        await turn.give_way()
        assert not others, "there is time left"
        clock.advance(2 * TURN)
        await turn.give_way()
        assert others == ["ran"]
        assert turn.ends == clock.monotonic() + TURN

    clock.run(main)


def test_a_run_behind_a_shield_is_left_when_its_patience_is_over(bench: Bench) -> None:
    async def shielded(ctx: Context, request: Request) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()

    async def script(controller: Controller) -> None:
        controller.enqueue(A, "changed")
        await anyio.sleep(1.0)
        assert not await controller.drain(0.0)
        assert bench.clock.monotonic() < 100
        assert not controller.active_runs()

    bench.play(shielded, script)
