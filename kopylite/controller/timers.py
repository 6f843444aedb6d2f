"""Timers: when each object's time has come. Pure.

The schedule of an object is fixed by its creation: `start_after` seconds later its function runs for the first time,
then every `every` seconds, all of it moved by up to `jitter * every`, by its uid. So there is nothing to be remembered:
a restart or another leader goes on with the same schedule, runs do not drift, however long they take, and objects that
were made at once do not come at once. A time at which nobody worked is left out, but for the first one of an object
that is new.
"""

from __future__ import annotations

from datetime import datetime
from math import floor

import msgspec

from kopylite.checks import require_number, require_seconds
from kopylite.errors import RegistrationError
from kopylite.objects.shard import fnv1a64
from kopylite.reconcile.request import Request

# The first time of an object counts as missed only after so many seconds: creation times are whole seconds, and the
# news of an object takes a moment.
NEW_SECONDS = 30.0
_SPACE = 2**64
# Objects that are gone and not yet forgotten; a sweep for fewer is not worth it.
SWEEP_SLACK = 64


class Timer(msgspec.Struct, frozen=True):
    """How often the function of a timer runs for each object. Times are in seconds.

    Raises:
        RegistrationError: one is out of its range.
    """

    every: float
    start_after: float = 0.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        require_seconds(self.every, "timer: every")
        require_seconds(self.start_after, "timer: start_after", zero=True)
        require_number(self.jitter, "timer: jitter", zero=True)
        if self.jitter > 1:
            raise RegistrationError(
                f"timer: jitter is a part of `every`, from 0 to 1, not {self.jitter!r}; 0.1 moves it by up to 10 %"
            )

    def first(self, created: float, uid: str) -> float:
        """The first time of an object."""
        return created + self.start_after + fnv1a64(uid) / _SPACE * self.jitter * self.every

    def after(self, created: float, uid: str, now: float) -> float:
        """Its next time after now."""
        first = self.first(created, uid)
        if first > now:
            return first
        following = first + (floor((now - first) / self.every) + 1) * self.every
        return following if following > now else following + self.every


class TimedObject(msgspec.Struct, frozen=True):
    """What a schedule depends on: which object it is, and since when there is one (seconds since 1970)."""

    uid: str
    created: float


def seconds_of(timestamp: str, now: float) -> float:
    """A creationTimestamp in seconds since 1970; `now` for what is none."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return now


class DueTimes(msgspec.Struct):
    """The next time of each object that one controller knows."""

    timer: Timer
    # By key: which object, its creation as it counts here, and the time.
    _due: dict[Request, tuple[TimedObject, float]] = msgspec.field(default_factory=dict)
    _sweep_at: int = SWEEP_SLACK

    def __len__(self) -> int:
        return len(self._due)

    def due(self, request: Request, found: TimedObject, now: float) -> float:
        """The time of the next run; not after `now`: it is due.

        What was due for longer than `every` was not worked on: it goes on as if it were seen for the first time.
        """
        known, due = self._due.get(request, (None, 0.0))
        if known is not None and known.uid == found.uid and due > now - self.timer.every:
            return due
        # Where the server's clock is ahead, a new object is made in the future.
        found = TimedObject(found.uid, min(found.created, now))
        first = self.timer.first(found.created, found.uid)
        due = first if first <= now <= first + min(NEW_SECONDS, self.timer.every) else self._after(found, now)
        self._keep(request, found, due, now)
        return due

    def done(self, request: Request, found: TimedObject, now: float) -> float:
        """The run is over that was due. Returns the time of the next one."""
        known, _ = self._due.get(request, (found, 0.0))  # a run that took very long may have been swept away
        found = known if known.uid == found.uid else found
        due = self._after(found, now)
        self._keep(request, found, due, now)
        return due

    def forget(self, request: Request) -> None:
        """The object is gone."""
        self._due.pop(request, None)

    def _after(self, found: TimedObject, now: float) -> float:
        return self.timer.after(found.created, found.uid, now)

    def _keep(self, request: Request, found: TimedObject, due: float, now: float) -> None:
        self._due[request] = found, due
        if len(self._due) > self._sweep_at:
            lost = now - self.timer.every
            self._due = {one: kept for one, kept in self._due.items() if kept[1] > lost}
            self._sweep_at = 2 * len(self._due) + SWEEP_SLACK
