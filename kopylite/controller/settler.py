"""Settler: carries out a Settlement: queue, counters, log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import anyio

from kopylite.boundary import place_of, printable, say
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.controller.outcome import AFTER, COUNTED, NONE, UNREACHED_RETRY, Failure, NextRun, Settlement, unreached
from kopylite.controller.reasons import REQUEUE, REQUEUE_AFTER, RETRY, Reasons
from kopylite.controller.spec import ControllerSpec
from kopylite.errors import (
    ApiError,
    DecodeError,
    Forbidden,
    ForgottenAwait,
    KopyliteError,
    ReconcileTimeout,
    TransportError,
)
from kopylite.objects import Unstructured
from kopylite.observers import ReconcileObserver
from kopylite.reconcile.causes import Causes, Line, alike
from kopylite.reconcile.context import Context
from kopylite.reconcile.recorder import INVALID_OBJECT, is_publishable
from kopylite.reconcile.request import Request, Retry
from kopylite.troubleshooting import Trouble
from kopylite.workqueue import RateLimit, WorkQueue
from kopylite.workqueue.ratelimiters import TokenBucket

logger = logging.getLogger("kopylite.controller")

# How often it is looked whether there is something to say; looking costs microseconds.
REPORT_SECONDS = 1.0

# One or two conflicts are how optimistic concurrency works; more in a row are somebody else's writes, again and again.
CONFLICTS_TO_WARN = 5
# When the server answers again, the keys that it was not reached for run within so many seconds.
WAKE_SECONDS = 2.0
# At 30 s each: every 10 minutes.
GOING_TO_WARN = 20
# Events about objects that a controller has given up: a bad release makes thousands of them at once, and then each is
# in the log, and the first ones tell people enough. The recorder bounds those about one object.
EVENT_BURST = 100
EVENTS_PER_SECOND = 1.0
_EVENTS = {Failure.TERMINAL: "TerminalError", Failure.GAVE_UP: "GaveUp"}


class Settler:
    """Shared by the workers of one controller. Always settles before the key is done, so no run is lost between.

    Args:
        find: names the object of a key, with its uid, as far as the cache has it; Events are about it.
        in_scope: whether the controller still works on a key; for one that it has left nothing is arranged.
    """

    def __init__(
        self,
        spec: ControllerSpec,
        queue: WorkQueue[Request],
        reasons: Reasons[Request],
        observer: ReconcileObserver,
        *,
        clock: Clock = SYSTEM_CLOCK,
        on_forbidden: Callable[[Forbidden], None] = lambda error: None,
        find: Callable[[Request], Unstructured | None] = lambda request: None,
        in_scope: Callable[[Request], bool] | None = None,
    ) -> None:
        self._in_scope = in_scope
        self._find = find if spec.failure_events else lambda request: None
        self._events = TokenBucket(EVENTS_PER_SECOND, EVENT_BURST)
        self._name = spec.name
        self._clock = clock
        self._on_forbidden = on_forbidden
        self._queue = queue
        self._reasons = reasons
        self._observer = observer
        self._max_retries = spec.max_retries
        limit = spec.rate_limit
        self._outage = RateLimit(min(limit.first, UNREACHED_RETRY), min(limit.longest, UNREACHED_RETRY), limit.jitter)
        # Errors in a row, of keys that have any; kept apart from the queue's failures, which conflicts and
        # Result(requeue=True) count as well. Not kept when nobody asks for it.
        self._errors: dict[Request, int] = {}
        # What was told in full of the last run of each key that failed: a retry that fails alike is told in short.
        self._told: dict[Request, object] = {}
        # Runs in a row that met something on its way out, of keys that did.
        self._going: dict[Request, int] = {}
        # Runs in a row that did not reach the server, of keys that have any, and the priority of the next.
        self._unreached: dict[Request, tuple[int, int]] = {}
        self._causes = Causes()
        # The keys that any of these know, and perhaps more: all others have nothing to forget.
        self._known: set[Request] = set()
        self._failed = anyio.Event()
        # For progress reports: runs that ended, and the slowest since somebody asked.
        self.runs = 0
        self.slowest: tuple[float, Request | None] = (0.0, None)

    def errors(self, request: Request) -> int:
        """Runs of the key that ended with an error since the last one that did not."""
        return self._errors.get(request, 0)

    def settle(
        self,
        context: Context,
        request: Request,
        priority: int,
        settlement: Settlement,
        error: BaseException | None,
        seconds: float,
        now: float | None = None,
    ) -> None:
        """Arrange the next run of `request`, count the finished one, and log it if it failed.

        Args:
            now: the time of the clock, for a caller who has just read it.
        """
        self.runs += 1
        if seconds > self.slowest[0]:
            self.slowest = (seconds, request)
        if self._in_scope is not None and not self._in_scope(request):
            self._let_go(context, request, settlement, error, seconds)
            return
        after = self._arrange(request, priority, settlement, error is not None, now)
        self._observer.finished(settlement.result, seconds)
        failure = settlement.failure
        if error is not None and failure is not None:
            self._known.add(request)
            if failure is not Failure.UNREACHED:
                self._unreached.pop(request, None)
            if failure is not Failure.GOING:
                self._going.pop(request, None)
            self._count(request, failure)
            self._report(context, request, failure, error, after)
            return
        if self._known and request in self._known:
            self._forget(request)
        if logger.isEnabledFor(logging.DEBUG):
            text = f", next run in {after:.3f} s" if settlement.next_run is not NONE else ""
            logger.debug("%s after %.3f s%s", settlement.result, seconds, text, extra={"fields": context.fields()})

    def _arrange(
        self, request: Request, priority: int, settlement: Settlement, failed: bool, now: float | None
    ) -> float:
        """Arrange the next run of a key, if there is one, and return the seconds until then."""
        queue, next_run, after = self._queue, settlement.next_run, settlement.after
        if settlement.priority is not None:
            priority = settlement.priority
        if next_run is AFTER:
            queue.forget(request)
            self._reasons.add_own(request, RETRY if failed else REQUEUE_AFTER)
            queue.add(request, priority, after, settlement.hold, now)
        elif next_run is NONE:
            queue.forget(request)
        elif next_run is NextRun.BACK_OFF:
            self._reasons.add_own(request, RETRY if failed else REQUEUE)
            return queue.add_rate_limited(request, priority=priority, now=now)
        else:
            return self._wait_for_server(request, priority, now)
        return after

    def _let_go(
        self, context: Context, request: Request, settlement: Settlement, error: BaseException | None, seconds: float
    ) -> None:
        """The controller has left the key during its run: whatever came of it, there is no next one."""
        self._observer.finished(settlement.result, seconds)
        self._queue.forget(request)
        self._forget(request)
        why = "" if error is None else f": {say(error)}"
        text = "%s after %.3f s, and not run again: its namespace is not in scope any more%s"
        logger.debug(text, settlement.result, seconds, why, extra={"fields": context.fields()})

    def _forget(self, request: Request) -> None:
        """What failed before has worked, or is somebody else's."""
        self._known.discard(request)
        self._causes.worked(request)
        for kept in self._kept():
            kept.pop(request, None)

    def drop(self, match: Callable[[Request], bool]) -> None:
        """Forget the keys that match."""
        self._known -= {request for request in self._known if match(request)}
        self._causes.drop(match)
        for kept in self._kept():
            for request in [request for request in kept if match(request)]:
                del kept[request]

    def _kept(self) -> tuple[dict[Request, Any], ...]:
        """What is remembered of the last runs of keys."""
        return self._errors, self._told, self._going, self._unreached

    @property
    def unreached(self) -> Iterable[Request]:
        """The keys whose last run did not reach the server."""
        return self._unreached.keys()

    def server_reached(self) -> None:
        """The server answers again: run the keys that it was not reached for, spread over 2 s."""
        running = self._queue.running()
        for request, (_, priority) in self._unreached.items():
            if request not in running:
                self._queue.add(request, priority=priority, after=WAKE_SECONDS * self._clock.random())

    def _wait_for_server(self, request: Request, priority: int, now: float | None) -> float:
        """Arrange the next try of a key that was not at fault, beside its own back-off; returns its delay."""
        times, _ = self._unreached.get(request, (0, 0))
        self._unreached[request] = times + 1, priority
        after = self._outage.delay(times, self._clock.random())
        self._reasons.add_own(request, RETRY)
        self._queue.add(request, priority=priority, after=after, now=now)
        return after

    def _count(self, request: Request, failure: Failure) -> None:
        if failure in COUNTED and self._max_retries is not None:
            self._errors[request] = self._errors.get(request, 0) + 1
        elif failure not in (Failure.CONFLICT, Failure.GOING, Failure.UNREACHED):
            self._errors.pop(request, None)

    def _report(self, context: Context, request: Request, failure: Failure, error: BaseException, after: float) -> None:
        if failure in (Failure.CONFLICT, Failure.GONE):
            self._observer.conflicted()
        elif failure is Failure.POSTPONED:
            self._observer.postponed()
        elif failure is not Failure.GOING:
            self._observer.failed(
                terminal=failure in (Failure.TERMINAL, Failure.GAVE_UP),
                timeout=isinstance(error, ReconcileTimeout),
                crashed=not isinstance(error, KopyliteError),
            )
        if failure is Failure.REJECTED:
            self._observer.object_rejected()
            level, text = self._reject(context, request, error), "object does not fit, waiting for its next change"
        else:
            level, text = self._line(request, failure, after)
        # The API's answer and our own errors say all in one line; only a foreign exception needs its traceback, once.
        message = printable(str(error)) if isinstance(error, ApiError | Retry) else say(error)
        if failure in _EVENTS:
            self._publish(context, request, _EVENTS[failure], f"{text}: {message}")
        place, trace = place_of(error), None
        where = f"; at {place}" if place else ""
        if level >= logging.INFO and failure is not Failure.REJECTED:  # that one is about its object
            cause = (
                failure,
                *(_outage(error) if failure is Failure.UNREACHED else _cause(error, message, where, request)),
            )
            line = Line(level, f"{text.partition(',')[0]}: {message}{where}")
            self._failed.set()
            if not self._causes.failed(cause, request, self._clock.monotonic(), line):
                level = logging.DEBUG
            elif not isinstance(error, KopyliteError) and failure not in (Failure.UNREACHED, Failure.POSTPONED):
                where, trace = "", error
        logger.log(level, "%s: %s%s", text, message, where, exc_info=trace, extra={"fields": context.fields()})
        if isinstance(error, Forbidden):
            self._on_forbidden(error)
        if not isinstance(error, ForgottenAwait):
            for forgotten in context.forgotten:
                logger.error("%s", forgotten, extra={"fields": context.fields()})

    def _publish(self, context: Context, request: Request, reason: str, note: str) -> None:
        """An Event on the object, for whoever looks there and not into the log: nothing else will happen to it."""
        obj = self._find(request)
        if obj is None:
            return
        # The repeats are one Event with a count: they cost nothing here.
        if self._is_news(request, (reason, note)) and not self._events.try_take(self._clock.monotonic()):
            del self._told[request]
            return
        context.event(obj, reason, note, type="Warning")

    async def report(self) -> None:
        """Say from time to time how often what was told before has happened since; until cancelled."""
        try:
            while True:
                if not self._causes:  # nothing to tell, and no timer for it
                    self._failed = anyio.Event()
                    await self._failed.wait()
                await self._clock.sleep(REPORT_SECONDS)
                self._say(self._causes.due(self._clock.monotonic()))
        finally:
            self._say(self._causes.due(self._clock.monotonic(), all_of_them=True))

    def _say(self, lines: Iterable[Line]) -> None:
        for line in lines:
            logger.log(line.level, "%s", line.text, extra={"fields": {"controller": self._name}})

    def _reject(self, context: Context, request: Request, error: BaseException) -> int:
        """Publish an Event about each object that does not fit, and return the level of the log line.

        The Event comes with every run, since the server forgets Events within an hour; the recorder bounds their rate.
        The line is an error once per change of the object: later runs of the key, whatever their reason, say nothing
        new about it.
        """
        misfits = list(_misfits(error))
        for misfit in misfits:
            if is_publishable(misfit.object):
                context.event(misfit.object, INVALID_OBJECT, str(misfit), type="Warning")
        seen = [(str(misfit), misfit.object and misfit.object.resource_version) for misfit in misfits]
        return logging.ERROR if self._is_news(request, seen) else logging.DEBUG

    def _is_news(self, request: Request, told: object) -> bool:
        """Whether the last failure of the key told something else."""
        known, self._told[request] = self._told.get(request), told
        return known != told

    def _line(self, request: Request, failure: Failure, after: float) -> tuple[int, str]:
        """Level and opening words of the log line of a failed run."""
        if failure is Failure.CONFLICT:
            conflicts = self._queue.failures(request)
            if conflicts < CONFLICTS_TO_WARN:
                return logging.DEBUG, f"conflict, next try in {after:.3f} s"
            return (
                logging.WARNING,
                f"conflict no. {conflicts} in a row, what it writes keeps changing (see {Trouble.CONFLICT})",
            )
        if failure is Failure.GONE:
            times = self._queue.failures(request)
            if times < CONFLICTS_TO_WARN:
                return logging.DEBUG, f"what it writes to is gone, next try in {after:.3f} s"
            return logging.ERROR, f"no. {times} in a row: what it writes to is not there, next try in {after:.3f} s"
        if failure is Failure.GOING:
            times = self._going[request] = self._going.get(request, 0) + 1
            if times % GOING_TO_WARN == 0:
                return (
                    logging.WARNING,
                    f"still on its way out, after {times} runs; look what holds it (see {Trouble.STUCK})",
                )
            return logging.DEBUG, f"on its way out, next try in {after:.0f} s"
        if failure is Failure.POSTPONED:
            return logging.INFO, f"not yet, next try in {after:.1f} s"
        if failure is Failure.TERMINAL:
            return logging.ERROR, "terminal error, waiting for the next event"
        if failure is Failure.GAVE_UP:
            return logging.ERROR, f"gave up after {self._max_retries} retries, waiting for the next event"
        if failure is Failure.UNREACHED:
            return logging.ERROR, f"the server was not reached, next try in {after:.3f} s or when it answers"
        return logging.ERROR, f"reconcile failed, next try in {after:.3f} s"


def _cause(error: BaseException, message: str, where: str, request: Request) -> tuple[Hashable, ...]:
    """What two failures have in common that are told as one.

    Of an answer of the API: what it is about and what was asked. Of our own errors: the text, whatever line met it.
    Of others: the line too.
    """
    if isinstance(error, ApiError):
        about = (str(error.details.get("kind")), str(error.details.get("group")), error.request.partition(" ")[0])
        return type(error).__name__, alike(error.message, request), *about
    return type(error).__name__, alike(message, request), "" if isinstance(error, KopyliteError) else where


def _outage(error: BaseException) -> tuple[Hashable, ...]:
    """As `_cause`, of what did not reach the server: one outage has as many texts as it has moments."""
    root = unreached(error)
    return ("" if isinstance(root, TransportError) else type(root).__name__,)


def _misfits(error: BaseException) -> Iterator[DecodeError]:
    """What did not fit, of an error that may be a group."""
    if isinstance(error, DecodeError):
        yield error
    elif isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _misfits(member)
