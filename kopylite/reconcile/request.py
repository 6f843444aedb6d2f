"""Request, Result and Retry: what goes into a reconcile and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Self

import msgspec

from kopylite.boundary import show
from kopylite.checks import LARGEST
from kopylite.errors import KopyliteError, UsageError
from kopylite.objects import HasKey, ObjectKey, named_key


class Request(ObjectKey):
    """The key of the object to reconcile: namespace and name, and nothing else.

    It does not say which event came, or how many: read the present state and act on that.
    """

    __slots__ = ()

    @classmethod
    def of(cls, obj: HasKey) -> Self:
        """The Request for an object, or for anything with a namespace and a name.

        Raises:
            UsageError: it has none.
        """
        key = named_key(obj)
        if key is None:
            raise UsageError(f"this has no namespace and name: {show(obj)}; give a Request, or an object")
        return cls(*key)

    @classmethod
    def all_of(cls, found: object) -> list[Self]:
        """The Requests for what a map or periodic function returned.

        Raises:
            UsageError: it is no iterable of such objects; one object or None is none, either.
        """
        one = isinstance(found, str | ObjectKey) or isinstance(getattr(found, "name", None), str)
        if one or not isinstance(found, Iterable):
            raise UsageError(
                f"it has to return all keys to reconcile, as in [Request(namespace, name)], and [] for none, "
                f"not {show(found)}"
            )
        return [cls.of(key) for key in found]


class Result(msgspec.Struct, frozen=True):  # made three times as fast as a frozen dataclass, at the end of each run
    """How a reconcile that did not fail wants to go on. `Result()` and None mean: done.

    Args:
        requeue_after: run again after this many seconds (or a timedelta), failures forgotten. 0: no. More than 32 years
            count as 32 years.
        requeue: run again soon, with the rate limiter's growing delay (first 5 ms).
        priority: of the next run; None keeps the one of this run.
        hold: until then nothing else runs it either, not even a change or the deletion of the object: events are merged
            and wait. Without it, `requeue_after` is "at most": an event runs the key at once, and the result of that
            run says how to go on. A restart forgets it.

    Raises:
        UsageError: requeue_after is no finite number and no timedelta, or lies in the past (a deadline that has passed
            means: act now); requeue or hold is no bool, priority no whole number, or hold comes without requeue_after.
    """

    requeue_after: float | timedelta = 0
    requeue: bool = False
    priority: int | None = None
    hold: bool = False

    def __post_init__(self) -> None:
        after = self.requeue_after
        plain = self.requeue is False and self.priority is None and self.hold is False
        if plain and (type(after) is float or type(after) is int) and 0 <= after <= LARGEST:
            return  # as nearly all are
        if not isinstance(after, int | float | timedelta):
            raise UsageError(f"Result(requeue_after={show(after)}): give seconds as a number, or a timedelta")
        if isinstance(after, bool) or (isinstance(after, float) and not math.isfinite(after)):
            raise UsageError(f"Result(requeue_after={after}): give a finite number of seconds, or a timedelta")
        if self.delay < 0:
            raise UsageError(
                f"Result(requeue_after={show(after)}): that time has passed, so act now; or use max(1, ...)"
            )
        if type(self.requeue) is not bool:
            raise UsageError(f"Result(requeue={show(self.requeue)}): True or False; a delay is requeue_after=")
        if self.priority is not None and (type(self.priority) is bool or not isinstance(self.priority, int)):
            raise UsageError(f"Result(priority={show(self.priority)}): give a whole number, or None")
        if type(self.hold) is not bool or (self.hold and not self.delay):
            raise UsageError(
                f"Result(hold={show(self.hold)}): True needs a time, as in Result(requeue_after=30, hold=True)"
            )

    @property
    def delay(self) -> float:
        """requeue_after in seconds, 32 years at most."""
        after = self.requeue_after
        return min(after.total_seconds() if isinstance(after, timedelta) else after, LARGEST)


class Retry(KopyliteError):
    """Raise it where something is not there yet, however deep in helpers: the key runs again after `after` seconds.

    It is no failure: one line at INFO, no traceback, failures are forgotten, and `max_retries` does not count it. So it
    is the way of an exception to say `Result(requeue_after=..., hold=True)`.

    Args:
        message: what it waits for, for the log.
        after: seconds, or a timedelta, above 0.
        hold: until then no event runs the key either; False: an event runs it at once.

    Raises:
        UsageError: `after` is no such time, or `hold` no bool.
    """

    def __init__(self, message: str, *, after: float | timedelta, hold: bool = True) -> None:
        super().__init__(message)
        self.result = Result(requeue_after=after, hold=hold)
        if not self.result.delay:
            raise UsageError(
                f"Retry(after={show(after)}): give a time above 0; to run again soon: Result(requeue=True)"
            )

    def __reduce__(self) -> tuple[Callable[..., Retry], tuple[str, float, bool]]:
        return _retry, (str(self), self.result.delay, self.result.hold)


def _retry(message: str, after: float, hold: bool) -> Retry:
    return Retry(message, after=after, hold=hold)
