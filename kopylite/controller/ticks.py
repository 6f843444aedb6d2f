"""Ticks: runs the function of a timer when the time of an object has come."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from kopylite.clock import Clock
from kopylite.controller.spec import Reconcile
from kopylite.controller.timers import DueTimes, TimedObject, Timer, seconds_of
from kopylite.objects import Unstructured
from kopylite.reconcile.context import Context
from kopylite.reconcile.request import Request, Result
from kopylite.triggers import LOW_PRIORITY


class Ticks:
    """Stands between the workers of one controller and its function.

    What comes before its time waits in the queue until then, where each key is once; what comes for an object that is
    gone is dropped. A run that failed, or asked for another one itself, has that one first.

    Args:
        timer: how often.
        find: the object of a key, with its uid and creationTimestamp; None: there is none.
        clock: of the wall.
    """

    def __init__(self, timer: Timer, find: Callable[[Request], Unstructured | None], clock: Clock) -> None:
        self.schedule = DueTimes(timer)
        self._find = find
        self._clock = clock

    def around(self, function: Reconcile) -> Reconcile:
        """The function, which runs only when it is time."""

        @wraps(function)
        async def tick(ctx: Context, request: Request) -> Result | None:
            obj, now = self._find(request), self._now()
            if obj is None:
                self.schedule.forget(request)
                return None
            found = TimedObject(obj.uid, seconds_of(str(obj["metadata"].get("creationTimestamp")), now))
            if (due := self.schedule.due(request, found, now)) > now:
                return _at(due - now)
            result = await function(ctx, request)
            if result is not None and (not isinstance(result, Result) or result.requeue or result.delay):
                return result  # what it asks for comes first
            now = self._now()
            return _at(self.schedule.done(request, found, now) - now)

        return tick

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _at(seconds: float) -> Result:
    return Result(requeue_after=seconds, priority=LOW_PRIORITY)
