"""The guard around everything that calls a function of the user."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import os
import types
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context as Variables
from contextvars import ContextVar, copy_context
from typing import Any, Generic, ParamSpec, TypeVar

import anyio
import msgspec

from kopylite.boundary.policies import GuardPolicy
from kopylite.boundary.words import members_of, say, show

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("kopylite.calls")

# One cause is told once, with its traceback, and then as a number after so many seconds each time.
REMINDER_SECONDS = 60.0

# Of Python's own modules; sysconfig, which says it too, takes milliseconds of each start.
_PYTHONS = f"{os.path.dirname(os.__file__)}{os.sep}"


class Patience:
    """How long what was cancelled is waited for; for ever, unless somebody sets `over`.

    Attributes:
        over: what does not heed its cancellation is left alone where it waits, and never resumed.
    """

    def __init__(self) -> None:
        self.over = False

    def leave(self, run: Callable[..., Any], steps: Any) -> None:
        """Let go of a coroutine: closed if it lets itself be closed, else kept as it is."""
        try:
            run(steps.close)
        except BaseException:
            _never_freed(steps)


def _never_freed(one: object) -> None:
    """Keep something beyond the end of the interpreter.

    A coroutine that does not let itself be closed: Python would try it once more when it is freed, and complain.
    """
    import ctypes  # at its first use: hardly any process has such a coroutine

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


PATIENCE: ContextVar[Patience | None] = ContextVar("kopylite_patience", default=None)
"""Of whoever runs the present task."""


class CallFailed(Exception):
    """A function of the user raised, or took too long. Its `error` is what it raised, or a TimeoutError."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(say(error))


class ActiveCall(msgspec.Struct, frozen=True):
    """A call in progress: of what, about what, since how many seconds."""

    what: str
    name: str
    subject: str
    seconds: float


def ends_process(error: BaseException) -> bool:
    """Whether an exception that came out of a function of the user is meant for the process, not for the call."""
    if isinstance(error, BaseExceptionGroup):
        return any(isinstance(member, KeyboardInterrupt) for member in members_of(error))
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def cancelled_from_outside() -> bool:
    """Asked about a CancelledError that came out of a function of the user: whether somebody wants the task to end.

    If not, it is the user's code that raised it, say by awaiting a future that was cancelled, and it is taken back.
    A task of the runtime that ended then would be missing from then on, and nobody would be told.
    """
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
    return False


def in_fresh_context(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
    """Await `function(...)` in a copy of the present context: the context variables that it sets end with it."""
    variables = copy_context()
    return in_context(variables, variables.run(function, *args, **kwargs))


@types.coroutine
def in_context(variables: Variables, awaitable: Awaitable[T]) -> Generator[Any, Any, T]:
    """Await something with other context variables than those of the present task.

    A task would do the same at twenty times the cost. This drives the coroutine by hand, as `await` does, but each of
    its steps inside the context. So it can leave one that swallows its cancellation: see Patience.
    """
    run = variables.run
    if type(awaitable) is types.CoroutineType:
        steps: Any = awaitable
    elif hasattr(awaitable, "__await__"):
        steps = awaitable.__await__()
    else:
        raise TypeError(f"it has to be an async function, but returned {show(awaitable)}")
    closing = False
    try:
        waits_for = run(steps.send, None)
        while True:
            try:
                answer = yield waits_for
            except GeneratorExit:
                closing = True
                run(steps.close)
                raise
            except BaseException as error:
                patience = PATIENCE.get()
                if patience is not None and patience.over:
                    patience.leave(run, steps)
                    raise
                waits_for = run(steps.throw, error)
            else:
                waits_for = run(steps.send, answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    except GeneratorExit as error:
        if closing:
            raise
        raise RuntimeError("it raised GeneratorExit, which is Python's own way to close a coroutine") from error


class Guard(Generic[P, T]):
    """One function of the user that is not a reconcile: calls it, and sees to it that a failure stays its own.

    Args:
        policy: what a failure means.
        function: the user's.
        name: of the function, for logs and metrics.
        now: a monotonic clock.
        timeout: seconds after which an awaited call is cancelled and counts as failed; None: never.
        observe: told of each call that ended: "success", "error" or "timeout".
        fields: of the log lines.
    """

    def __init__(
        self,
        policy: GuardPolicy,
        function: Callable[P, Any],
        *,
        name: str = "",
        now: Callable[[], float],
        timeout: float | None = None,
        observe: Callable[[str], None] = lambda result: None,
        fields: dict[str, object] | None = None,
    ) -> None:
        self.policy = policy
        self.name = name or name_of(function)
        self._function = function
        self._now = now
        self._timeout = timeout
        self._observe = observe
        self._fields = fields or {}
        # By a serial number: since when, about what.
        self._active: dict[int, tuple[float, str]] = {}
        self._serial = 0
        # By cause: when it was told, and how often it came since.
        self._told: dict[tuple[str, str], list[float]] = {}

    def active(self, longer_than: float = 0.0) -> list[ActiveCall]:
        """The calls in progress that are older than some seconds, the oldest first."""
        now = self._now()
        calls = [ActiveCall(self.policy.what, self.name, about, now - began) for began, about in self._active.values()]
        return [call for call in calls if call.seconds >= longer_than]

    def call(self, subject: Callable[[], str], otherwise: T, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a plain function; where it fails, say so and return `otherwise`.

        Args:
            subject: what the call is about, asked only for the log.
        """
        try:
            result: T = self._function(*args, **kwargs)
        except BaseException as error:
            if ends_process(error):
                raise
            self._observe("error")
            self.report(error, subject())
            return otherwise
        return result

    async def run(self, subject: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await the function in a context of its own.

        Raises:
            CallFailed: it raised, or did not end in time. Say so with `report`.
        """
        self._serial = serial = self._serial + 1
        self._active[serial] = self._now(), subject
        failure: BaseException | None = None
        result: Any = None
        try:
            with anyio.move_on_after(self._timeout) as scope:
                try:
                    result = await in_fresh_context(self._function, *args, **kwargs)
                except asyncio.CancelledError as error:
                    if cancelled_from_outside():
                        raise
                    failure = error
                except BaseException as error:
                    if ends_process(error):
                        raise
                    failure = error
        finally:
            del self._active[serial]
        if scope.cancelled_caught or (scope.cancel_called and failure is not None):
            self._observe("timeout")
            raise CallFailed(TimeoutError(f"cancelled after {self._timeout:g} s")) from failure
        self._observe("success" if failure is None else "error")
        if failure is not None:
            raise CallFailed(failure) from failure
        if self._told:
            self._told.clear()
        return result  # type: ignore[no-any-return]

    def report(self, error: BaseException, subject: str, delay: float | None = None) -> None:
        """Log a failure: the first of each cause with its traceback, its like as a number once a minute.

        Args:
            error: what the function raised, or the CallFailed.
            subject: what the call was about.
            delay: seconds until it is called again.
        """
        if isinstance(error, CallFailed):
            error = error.error
        cause, now = (type(error).__qualname__, place_of(error)), self._now()
        told = self._told.get(cause)
        if told is not None and now - told[0] < REMINDER_SECONDS:
            told[1] += 1
            return
        more = f", and {told[1]:.0f} times more like this" if told is not None and told[1] else ""
        self._told[cause] = [now, 0]
        where = f"; at {cause[1]}" if cause[1] else ""
        then = self.policy.then if delay is None else f"{self.policy.then} in {delay:.1f} s"
        logger.error(
            "%s %s failed on %s: %s%s%s; %s",
            *(self.policy.what, self.name, subject, say(error), where, more, then),
            exc_info=error if told is None and not isinstance(error, TimeoutError) else None,
            extra={"fields": self._fields},
        )


def name_of(function: object) -> str:
    """A function's name, for people."""
    return str(getattr(function, "__name__", type(function).__name__))


def defined_at(function: object) -> str:
    """Where a function was written, "FILE:LINE"; "" where that is not known."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if isinstance(code, types.CodeType) else ""


def place_of(error: BaseException) -> str:
    """Where the user's code met an exception, "FILE:LINE in FUNCTION"; "" if it did not.

    Not the line of a library that it called, unless all are libraries': an operator that is installed as a package.
    """
    users = librarys = ""
    beyond = False
    trace = error.__traceback__
    while trace is not None:
        frame, code = trace.tb_frame, trace.tb_frame.f_code
        place = f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"
        if str(frame.f_globals.get("__name__")).startswith("kopylite."):
            beyond = bool(users or librarys)
        elif not is_library(code.co_filename):
            users = place
        elif not beyond:
            librarys = place
        trace = trace.tb_next
    return users or librarys


def is_library(filename: str) -> bool:
    """Whether a source file is Python's own, or one that was installed."""
    return any(part in filename for part in ("site-packages", "dist-packages")) or filename.startswith(_PYTHONS)
