"""What finished runs mean for their keys: every error alone, as a cause and in groups; every history of outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, cast

from kopylite.controller.outcome import COUNTED, Failure, NextRun, Settlement, settle_error, settle_result
from kopylite.controller.reasons import Reasons
from kopylite.controller.settler import Settler
from kopylite.controller.spec import ControllerSpec
from kopylite.errors import (
    AlreadyExists,
    BeingDeleted,
    Conflict,
    ConnectionFailed,
    DecodeError,
    Forbidden,
    NamespaceTerminating,
    NotFound,
    ReconcileTimeout,
    ServiceUnavailable,
    TerminalError,
)
from kopylite.objects import Kind
from kopylite.observers import ReconcileObserver
from kopylite.reconcile.context import Context, Environment
from kopylite.reconcile.request import Request, Result, Retry
from kopylite.testing import VirtualClock
from kopylite.workqueue import WorkQueue
from tests.explore.search import Explored

KEYS = [Request("ns", name) for name in "abc"]
KIND = Kind("example.com/v1", "Thing", plural="things", namespaced=True)
MAX_RETRIES = 2


def gone() -> NotFound:
    error = NotFound("it is gone")
    error.request = "PATCH /things/a"
    return error


ERRORS: dict[str, Callable[[], Exception]] = {
    "conflict": lambda: Conflict("changed"),
    "gone": gone,
    "going": lambda: NamespaceTerminating("ends"),
    "being deleted": lambda: BeingDeleted("ends"),
    "unreached": lambda: ConnectionFailed("refused"),
    "unavailable": lambda: ServiceUnavailable("down"),
    "refused": lambda: Forbidden("no"),
    "exists": lambda: AlreadyExists("there"),
    "timeout": lambda: ReconcileTimeout("too long"),
    "misfit": lambda: DecodeError("does not fit"),
    "terminal": lambda: TerminalError("hopeless"),
    "retry": lambda: Retry("not yet", after=5),
    "crash": lambda: RuntimeError("bug"),
}
RESULTS: dict[str, Any] = {
    "done": None,
    "requeue": Result(requeue=True),
    "after": Result(requeue_after=5),
    "hold": Result(requeue_after=5, hold=True),
}
# Of each kind one: what a history is made of, with an event during the run, and one before it.
ENDS = ["conflict", "gone", "going", "unreached", "refused", "misfit", "terminal", "retry", "crash", *RESULTS]
FORGETS = {NextRun.NONE, NextRun.AFTER}


def every_error() -> Iterator[tuple[Hashable, Exception]]:
    """Each alone, raised from each other, and in groups of two and three."""
    for name, make in ERRORS.items():
        yield name, make()
        for cause, other in ERRORS.items():
            error = make()
            error.__cause__ = other()
            yield (name, "from", cause), error
            yield (name, "and", cause), ExceptionGroup("both", [make(), other()])
    for names in itertools.combinations(ERRORS, 3):
        yield names, ExceptionGroup("all", [ERRORS[name]() for name in names])


def errors() -> Explored:
    """Each error has a meaning; nothing is forgotten by mistake, and what never helps is not tried again."""
    count = 0
    for name, error in every_error():
        for errors_before in range(MAX_RETRIES + 2):
            found = settle_error(error, errors_before, MAX_RETRIES)
            free = settle_error(error, errors_before, None)
            count += 1
            assert found.failure is not None, f"{name}: an error is taken for success"
            stops = found.next_run is NextRun.NONE
            assert stops == (found.failure in (Failure.TERMINAL, Failure.GAVE_UP)), f"{name} is never tried again"
            assert (free.failure in COUNTED and errors_before >= MAX_RETRIES) == (found.failure is Failure.GAVE_UP)
            assert found.next_run is not NextRun.AFTER or 0 < found.after <= 1e9, f"{name} is tried again at once"
    return Explored(count, count, 1)


class Bench:
    """A Settler with a queue and a clock, and one worker's part played by hand."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.queue: WorkQueue[Request] = WorkQueue(clock=self.clock)
        self.environment = Environment("thing", cast("Any", None), clock=self.clock)
        spec = ControllerSpec(name="thing", kind=KIND, reconcile=_never, max_retries=MAX_RETRIES)
        self.settler = Settler(spec, self.queue, Reasons(), ReconcileObserver(), clock=self.clock)
        self.expected: dict[Request, int] = {}

    def run(self, request: Request, end: str, *, event: bool) -> None:
        """One run of a key from its take to its done, with an event meanwhile or without."""
        taken = self.queue.get_nowait()
        assert taken is not None
        assert taken[0] == request
        if event:
            self.queue.add(request)
        settlement, error = self._settlement(request, end)
        before = self.queue.failures(request)
        self.settler.settle(Context(self.environment, request), request, 0, settlement, error, 0.1)
        self.queue.done(request)
        self._check(request, settlement, before, event)

    def _settlement(self, request: Request, end: str) -> tuple[Settlement, BaseException | None]:
        if end in RESULTS:
            return settle_result(RESULTS[end]), None
        error = ERRORS[end]()
        return settle_error(error, self.settler.errors(request), MAX_RETRIES), error

    def _check(self, request: Request, settlement: Settlement, before: int, event: bool) -> None:
        queue, state = self.queue, self.queue.statistics()
        to_come = state.ready + state.waiting
        wanted = event or settlement.next_run is not NextRun.NONE
        assert to_come == wanted, f"{to_come} runs to come after {settlement}, event: {event}"
        if event and not settlement.hold:
            assert state.ready == 1, "an event during the run waits for a retry"
        if settlement.hold:
            assert state.ready == 0, "a hold is broken"
        if settlement.next_run in FORGETS:
            assert queue.failures(request) == 0, "failures are not forgotten"
        if settlement.next_run is NextRun.BACK_OFF:
            assert queue.failures(request) == before + 1, "a failure is not counted"
        waits = settlement.next_run is NextRun.REACHED
        assert (request in set(self.settler.unreached)) == waits, "it does not wait for the server, or for ever"
        errors = self.expected.get(request, 0)
        if settlement.failure in COUNTED:
            errors += 1
        elif settlement.failure not in (Failure.CONFLICT, Failure.GOING, Failure.UNREACHED):
            errors = 0
        self.expected[request] = errors
        assert self.settler.errors(request) == errors, "errors are counted wrongly"

    def to_its_next_run(self, request: Request) -> None:
        """An event, or the time that it waits for; for what waits for the server, its answer."""
        if request in set(self.settler.unreached):
            self.settler.server_reached()
            self.clock.advance(2.5)
            state = self.queue.statistics()
            assert state.ready == 1, "the server answers again, and the key does not run"
            return
        if self.queue.statistics().waiting:
            self.clock.advance(2000.0)
        elif not self.queue.statistics().ready:
            self.queue.add(request)


async def _never(ctx: Context, request: Request) -> None: ...


def histories(length: int) -> Explored:
    """Every history of so many runs of one key, each with an event during it or without."""
    count = 0
    steps = list(itertools.product(ENDS, (False, True)))
    for history in itertools.product(steps, repeat=length):
        bench, request = Bench(), KEYS[0]
        for end, event in history:
            bench.to_its_next_run(request)
            bench.run(request, end, event=event)
        count += 1
    return Explored(count, count * length, length)


def together(length: int) -> Explored:
    """Histories of 3 keys whose runs take turns: none has a part in what becomes of another."""
    count = 0
    for ends in itertools.product(ENDS, repeat=length):
        bench = Bench()
        for place, end in enumerate(ends):
            request = KEYS[place % len(KEYS)]
            bench.queue.add(request)
            taken = bench.queue.get_nowait()
            if taken is None:
                continue  # it is held
            settlement, error = bench._settlement(taken[0], end)
            others = {key: (bench.queue.failures(key), bench.settler.errors(key)) for key in KEYS if key != taken[0]}
            bench.settler.settle(Context(bench.environment, taken[0]), taken[0], 0, settlement, error, 0.1)
            bench.queue.done(taken[0])
            assert others == {key: (bench.queue.failures(key), bench.settler.errors(key)) for key in others}
        count += 1
    return Explored(count, count * length, length)
