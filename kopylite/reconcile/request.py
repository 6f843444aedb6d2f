"""Request and Result: what goes into a reconcile and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from kopylite.errors import UsageError
from kopylite.objects import HasKey, ObjectKey


class Request(ObjectKey):
    """The key of the object to reconcile: namespace and name, and nothing else.

    It does not say which event came, or how many: read the present state and act on that.
    """

    __slots__ = ()

    @classmethod
    def of(cls, obj: HasKey) -> Self:
        """The Request for an object, or for anything with a namespace and a name."""
        return cls(obj.namespace or "", obj.name)


@dataclass(frozen=True, slots=True)
class Result:
    """How a reconcile that did not fail wants to go on. `Result()` and None mean: done.

    Args:
        requeue_after: run again after this many seconds (or a timedelta), failures forgotten. 0: no.
        requeue: run again soon, with the rate limiter's growing delay (first 5 ms).
        priority: of the next run; None keeps the one of this run.

    Raises:
        UsageError: requeue_after is no time, or lies in the past. A deadline that has passed means: act now.
    """

    requeue_after: float | timedelta = 0
    requeue: bool = False
    priority: int | None = None

    def __post_init__(self) -> None:
        after = self.requeue_after
        if not isinstance(after, int | float | timedelta):
            raise UsageError(f"Result(requeue_after={after!r}): give seconds as a number, or a timedelta")
        if self.delay < 0:
            raise UsageError(f"Result(requeue_after={after!r}): that time has passed, so act now; or use max(1, ...)")

    @property
    def delay(self) -> float:
        """requeue_after in seconds."""
        after = self.requeue_after
        return after.total_seconds() if isinstance(after, timedelta) else after
