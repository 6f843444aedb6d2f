"""What a finished run means for its key. Pure: a run's result or exception goes in, a Settlement comes out.

    outcome                      failures    next run              result          log
    ──────────────────────────────────────────────────────────────────────────────────────────────────
    TerminalError                forgotten   none                  error           error, one line
    Retry(…, after=…)            forgotten   then                  requeue_after   info, one line
    DecodeError                  forgotten   slow                  error           error, once per change
    on its way out (see GOING)   forgotten   in 30 s               requeue_after   debug; a warning every 10 min
    Conflict (not of an apply)   + 1         after its back-off    requeue         debug; a warning when it repeats
    write to what is gone        + 1         after its back-off    requeue         debug; an error when it repeats
    server not reached           as before   within 30 s           error           error, once for all keys
    max_retries used up          forgotten   none                  error           error, says that it gives up
    other exception              + 1         after its back-off    error           error; foreign ones with traceback
    Result(requeue_after=…)      forgotten   then                  requeue_after   none
    Result(requeue=True)         + 1         after its back-off    requeue         none
    None, Result()               forgotten   none                  success         none

Read from the top; the first line that fits counts. "None" means: at the next event. "Write to what is gone" is a
404 to a write, where object or namespace are missing; a kind or a sub-resource that is not served is any other
exception. "Server not reached": see `unreached`; it is no fault of the key, so its runs back off for themselves, end as
soon as the server answers again, and use up no retries. `max_retries` counts the writes to what is gone, timeouts and
the other exceptions.
"""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from kopylite.boundary import defined_at, name_of, show
from kopylite.checks import LARGEST
from kopylite.errors import (
    AlreadyOwned,
    ApiError,
    ApplyConflict,
    BeingDeleted,
    Conflict,
    DecodeError,
    GatewayTimeout,
    KopyliteError,
    NamespaceNotFound,
    NamespaceTerminating,
    NameStillTaken,
    NotFound,
    ReconcileTimeout,
    ServerTimeout,
    ServiceUnavailable,
    TerminalError,
    TransportError,
)
from kopylite.reconcile.request import Result, Retry

# An object that does not fit its model will not fit it a moment later. Its own change comes as an event; this is
# for the change of something else that the reconcile decoded and nobody watches.
REJECTED_RETRY = 600.0
# What is on its way out ends by itself, and its end comes as an event to whoever watches it. This is for the others.
GOING_RETRY = 30.0
# As long as a watch waits at most before it tries again. The workers bound how many keys try at once.
UNREACHED_RETRY = 30.0
_GOING = (NamespaceTerminating, NameStillTaken, BeingDeleted)
# kube-apiserver's ServerTimeout says that its storage is not reached; 502 to 504 come from what stands in front of it,
# too.
_UNREACHED = (TransportError, ServerTimeout, ServiceUnavailable, GatewayTimeout)
_BAD_GATEWAY = 502


class NextRun(Enum):
    """When the key runs again, if no event comes before."""

    NONE = auto()
    AFTER = auto()
    BACK_OFF = auto()
    REACHED = auto()


# A class of members finds each of them by its metaclass, which costs as much as a call; each run asks for these.
NONE, AFTER = NextRun.NONE, NextRun.AFTER


class Failure(Enum):
    """Why a run did not do its work; says how it is counted and logged."""

    CONFLICT = auto()
    GONE = auto()
    GOING = auto()
    UNREACHED = auto()
    REJECTED = auto()
    TERMINAL = auto()
    POSTPONED = auto()
    GAVE_UP = auto()
    TIMEOUT = auto()
    REFUSED = auto()
    CRASHED = auto()


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """What to do with a key whose run ended.

    Attributes:
        result: the label of the run in `controller_runtime_reconcile_total`.
        next_run: NONE and AFTER also forget the key's failures, BACK_OFF adds one. REACHED leaves them as they are: the
            key runs again when the server answers, and tries within 30 s.
        after: seconds, for AFTER.
        priority: of the next run; None keeps the one of this run.
        hold: for AFTER: nothing runs the key before.
        failure: None when the run did what it had to.
    """

    result: str
    next_run: NextRun = NextRun.NONE
    after: float = 0.0
    priority: int | None = None
    hold: bool = False
    failure: Failure | None = None


SUCCESS = Settlement("success")
CONFLICT = Settlement("requeue", NextRun.BACK_OFF, failure=Failure.CONFLICT)
GONE = Settlement("requeue", NextRun.BACK_OFF, failure=Failure.GONE)
GOING = Settlement("requeue_after", NextRun.AFTER, GOING_RETRY, failure=Failure.GOING)
UNREACHED = Settlement("error", NextRun.REACHED, failure=Failure.UNREACHED)
REJECTED = Settlement("error", NextRun.AFTER, REJECTED_RETRY, failure=Failure.REJECTED)
TERMINAL = Settlement("error", failure=Failure.TERMINAL)
GAVE_UP = Settlement("error", failure=Failure.GAVE_UP)
TIMEOUT = Settlement("error", NextRun.BACK_OFF, failure=Failure.TIMEOUT)
REFUSED = Settlement("error", NextRun.BACK_OFF, failure=Failure.REFUSED)
CRASHED = Settlement("error", NextRun.BACK_OFF, failure=Failure.CRASHED)

# Which member of a group of exceptions decides, the last one first: what a retry may help comes before what it cannot.
_GRAVITY = [
    Failure.TERMINAL, Failure.POSTPONED, Failure.REJECTED, Failure.GOING, Failure.UNREACHED, Failure.CONFLICT,
    Failure.GONE, Failure.REFUSED, Failure.TIMEOUT, Failure.CRASHED,
]  # fmt: skip
COUNTED = frozenset({Failure.GONE, Failure.REFUSED, Failure.TIMEOUT, Failure.CRASHED})
"""What `max_retries` counts."""


def settle_result(result: object, function: object = None) -> Settlement:
    """What a value means that the reconcile `function` returned.

    Raises:
        TypeError: it is neither None nor a Result; settle it as any other error.
    """
    if result is None:
        return SUCCESS
    if not isinstance(result, Result):
        place = defined_at(function)
        whose = f"{name_of(function)} at {place} returned {show(result)}" if place else f"not {show(result)}"
        raise TypeError(f"a reconcile returns a Result or None, as in Result(requeue_after=30); {whose}")
    after = result.requeue_after
    if type(after) is not float or after > LARGEST:
        after = float(result.delay)
    if after > 0:
        return Settlement("requeue_after", AFTER, after, result.priority, result.hold)
    if result.requeue:
        return Settlement("requeue", NextRun.BACK_OFF, 0.0, result.priority)
    return SUCCESS


def settle_error(error: BaseException, errors: int = 0, max_retries: int | None = None) -> Settlement:
    """What a raised exception means.

    A TerminalError or a Retry may stand anywhere in a chain of `raise … from …`; the first counts. A group, as task
    groups raise it, means what the gravest of its members means: it is terminal only if all of them are, and of several
    Retries the longest counts.

    Args:
        error: what the run raised.
        errors: runs of the key that ended with an error since the last one that did not, this one not counted.
        max_retries: how often a key is run again after errors; None: without limit.
    """
    try:
        settlement = _settle_one(error)
    except RecursionError:  # groups in groups in groups
        settlement = CRASHED
    counts = settlement.failure in COUNTED
    return GAVE_UP if counts and max_retries is not None and errors >= max_retries else settlement


def _settle_one(error: BaseException) -> Settlement:
    asked = _asked_for(error)
    if isinstance(asked, Retry):
        return msgspec.structs.replace(settle_result(asked.result), failure=Failure.POSTPONED)
    if asked is not None:
        return TERMINAL
    if isinstance(error, BaseExceptionGroup):
        return max(map(_settle_one, error.exceptions), key=_gravity)
    if isinstance(error, DecodeError):
        return REJECTED
    if isinstance(error, _GOING) or (isinstance(error, AlreadyOwned) and error.earlier):
        return GOING
    if isinstance(error, Conflict) and not isinstance(error, ApplyConflict):
        return CONFLICT
    if _wrote_to_the_gone(error):
        return GONE
    if isinstance(error, ReconcileTimeout):
        return TIMEOUT
    if unreached(error) is not None:
        return UNREACHED
    return REFUSED if isinstance(error, KopyliteError) else CRASHED


def unreached(error: BaseException) -> BaseException | None:
    """Why the server was not reached, if nothing but the way to it, or the server as a whole, failed.

    That is a TransportError, a 502, 503 or 504, or a ServerTimeout; what was raised `from` one; a group of only such.
    Walks without recursion, since a group may be as deep as it likes.
    """
    found: BaseException | None = None
    left, done = [error], set[int]()
    while left:
        one: BaseException | None = left.pop()
        chain: set[int] = set()
        while not _is_unreached(one):
            if one is None or id(one) in chain:
                return None  # the end of a chain, or a circle
            if id(one) in done:
                break
            chain.add(id(one))
            if isinstance(one, BaseExceptionGroup):
                left += one.exceptions[::-1]
                break
            one = one.__cause__
        else:
            found = found or one
        done |= chain
    return found


def _is_unreached(error: BaseException | None) -> bool:
    return isinstance(error, _UNREACHED) or (isinstance(error, ApiError) and error.code == _BAD_GATEWAY)


def _wrote_to_the_gone(error: BaseException) -> bool:
    """A change of an object that was deleted since it was read, or the creation of one in a namespace that was."""
    if isinstance(error, NamespaceNotFound):
        return True
    return isinstance(error, NotFound) and error.request.startswith(("PUT ", "PATCH ", "POST "))


def _gravity(settlement: Settlement) -> tuple[int, float]:
    assert settlement.failure is not None, "of an error"
    return _GRAVITY.index(settlement.failure), settlement.after


def _asked_for(error: BaseException) -> TerminalError | Retry | None:
    """What user code has said on purpose about the next run, if it did."""
    cause: BaseException | None = error
    seen: set[int] = set()  # a chain may be a circle
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, TerminalError | Retry):
            return cause
        seen.add(id(cause))
        cause = cause.__cause__
    return None
