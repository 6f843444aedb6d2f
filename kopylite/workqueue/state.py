"""The work queue as a machine without time, tasks or I/O: time is an argument, nothing waits here.

What a key can be, and how it moves:

                     add after            due                      take
        (unknown) ────────────▶ waiting ───────▶ ready ─────────────────────▶ running
            │                                      ▲                             │
            └──────────────────────────────────────┘            done             │
                          add                  parked ◀──────── (unknown) ◀──────┘
                                                 add while running, or due while running;
                                                 done makes it ready

Rules:

- A key has at most one run to come: it is waiting, or ready, or parked, or none of them. Adding it again can bring
  that run forward and raise its priority, never put it off or lower it.
- A key that runs is not handed out before it is done. What is added meanwhile, however often, makes one more run. When
  it is done, that run may turn out to be less urgent than whoever added it thought.
- A delayed add to a key that is ready or parked is absorbed: the run to come starts after the add, so it sees all
  that the adder saw and decides itself when it wants to run again. (Keeping the time would give a second, superfluous
  run.) A delayed add to a key that only runs is kept, since that run began before it.
- A key that is held runs when its time has come and not before: what is added meanwhile is absorbed by that run. A
  hold that begins during a run puts off what was added during it, too.
- A key that is dropped has no run to come, until it is added again. Its run in progress goes on, and is done as usual.
- Higher priority first, equals in the order in which they became ready; but while several priorities are ready,
  each FAIR_SHARE-th take goes to the level whose first key has been ready for longest. So a key is handed out after
  at most FAIR_SHARE x (n + 1) takes, n being the keys that were ready before it: low priority is slow, and never
  starves. Raising the priority of a ready key puts it behind the keys of its new level.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kopylite.workqueue.delays import DelayHeap

K = TypeVar("K", bound=Hashable)

# Seven of eight for what is urgent: a fresh edit overtakes an initial list of any length, at 1/8 of its speed.
FAIR_SHARE = 8


class QueueState(Generic[K]):
    """See the rules of this module. No method may be called with an earlier `now` than one before it."""

    __slots__ = ("_held", "_levels", "_order", "_parked", "_priority", "_running", "_takes", "delays")

    def __init__(self) -> None:
        # Every key that has a run to come. It is in exactly one of delays, _levels and _parked.
        self._priority: dict[K, int] = {}
        self.delays: DelayHeap[K] = DelayHeap()
        # Those of delays that nothing may bring forward.
        self._held: set[K] = set()
        # priority -> its ready keys in the order of their readiness, with the time of it. No level is empty.
        # OrderedDict, because a dict that is emptied from its front gets slower with each pop.
        self._levels: dict[int, OrderedDict[K, float]] = {}
        # The negated priorities of _levels, sorted: the first is the highest.
        self._order: list[int] = []
        # Running keys that became ready meanwhile, with the time of it. Always a subset of _running.
        self._parked: dict[K, float] = {}
        # Keys that were taken and are not done, with the time of the take.
        self._running: dict[K, float] = {}
        self._takes = 0

    def add(self, key: K, now: float, priority: int = 0, after: float = 0.0) -> bool:
        """Ask for a run of `key`, not before `after` seconds. Returns whether it has become ready or parked."""
        old = self._priority.get(key)
        if old is None:
            self._priority[key] = priority
            if after > 0:
                self.delays.schedule(key, now + after)
                return False
            self._make_ready(key, priority, now)
            return True
        if priority > old:
            self._raise_priority(key, old, priority)
        due = self.delays.due_time(key)
        if due is None or key in self._held:
            return False
        if after > 0:
            if now + after < due:
                self.delays.schedule(key, now + after)
            return False
        self.delays.discard(key)
        self._make_ready(key, self._priority[key], now)
        return True

    def hold(self, key: K, now: float, *, priority: int = 0, after: float) -> None:
        """Ask for a run of `key` in `after` seconds, and for none before: a run to come is put off until then."""
        old = self._priority.get(key)
        if old is not None:
            priority = max(priority, old)
            self._parked.pop(key, None)
            self._leave_level(key, old)
        self._priority[key] = priority
        self.delays.schedule(key, now + after)
        self._held.add(key)

    def promote(self, now: float) -> int:
        """Make ready what is due. Returns how many keys became ready or parked."""
        due = self.delays.pop_due(now)
        held, priorities = self._held, self._priority
        for key, time in due:
            if held:
                held.discard(key)
            self._make_ready(key, priorities[key], time)
        return len(due)

    def take(self, now: float) -> tuple[K, int, float] | None:
        """Hand out the next key, which then is running; None when nothing is ready.

        Returns:
            The key, its priority, and for how many seconds it was ready.
        """
        order = self._order
        if not order:
            return None
        priority = -order[0]
        if len(order) > 1:
            self._takes += 1
            if self._takes % FAIR_SHARE == 0:
                priority = self._longest_ready()
        level = self._levels[priority]
        key, since = level.popitem(last=False)
        if not level:
            self._drop_level(priority)
        del self._priority[key]
        self._running[key] = now
        return key, priority, now - since

    def done(self, key: K, now: float, at_most: int | None = None) -> tuple[float, bool]:
        """The run of `key` ended. Returns for how long it ran, and whether the key is now ready again.

        Args:
            at_most: the priority of what was added to it meanwhile, if that was higher.

        Raises:
            KeyError: the key is not running: done() was called twice.
        """
        worked = now - self._running.pop(key)
        if not self._parked or (since := self._parked.pop(key, None)) is None:
            return worked, False
        if at_most is not None:
            self._priority[key] = min(self._priority[key], at_most)
        self._make_ready(key, self._priority[key], since)
        return worked, True

    def drop(self, match: Callable[[K], bool]) -> None:
        """Take back the run to come of each key that matches; those that run go on. Takes time for each key."""
        for key in [key for key in self._priority if match(key)]:
            self._leave_level(key, self._priority.pop(key))
            self.delays.discard(key)
            self._held.discard(key)
            self._parked.pop(key, None)

    def clear(self) -> None:
        """Take back every run to come."""
        self._priority.clear()
        self.delays.clear()
        self._held.clear()
        self._levels.clear()
        self._order.clear()
        self._parked.clear()

    def next_time(self) -> float | None:
        """When the next waiting key is due; None when none waits."""
        return self.delays.next_time()

    @property
    def ready(self) -> int:
        """Keys that could run now, the parked ones included."""
        return len(self._priority) - len(self.delays)

    @property
    def waiting(self) -> int:
        """Keys whose time has not come."""
        return len(self.delays)

    def takeable(self) -> bool:
        """Whether take() has something to hand out."""
        return bool(self._order)

    def ready_by_priority(self) -> dict[int, int]:
        """How many keys are ready or parked, by priority."""
        counts = {priority: len(level) for priority, level in self._levels.items()}
        for key in self._parked:
            priority = self._priority[key]
            counts[priority] = counts.get(priority, 0) + 1
        return counts

    def running(self) -> dict[K, float]:
        """The running keys and when each was taken."""
        return dict(self._running)

    def oldest_ready(self) -> float | None:
        """Since when the key has been ready that the next fair take would hand out; None when none is."""
        return next(iter(self._levels[self._longest_ready()].values())) if self._levels else None

    def _make_ready(self, key: K, priority: int, since: float) -> None:
        if key in self._running:
            self._parked[key] = since
            return
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = OrderedDict()
            insort(self._order, -priority)
        level[key] = since

    def _raise_priority(self, key: K, old: int, new: int) -> None:
        """A ready key goes to the end of its new level; its age is kept."""
        self._priority[key] = new
        since = self._leave_level(key, old)
        if since is not None:
            self._make_ready(key, new, since)

    def _leave_level(self, key: K, priority: int) -> float | None:
        """Take a key out of its level, and return since when it was ready; None if it was not in it."""
        level = self._levels.get(priority)
        if level is None or key not in level:
            return None
        since = level.pop(key)
        if not level:
            self._drop_level(priority)
        return since

    def _drop_level(self, priority: int) -> None:
        del self._levels[priority]
        del self._order[bisect_left(self._order, -priority)]

    def _longest_ready(self) -> int:
        """The priority whose first key has been ready for longest; of equals the highest."""
        return min(self._levels, key=lambda p: (next(iter(self._levels[p].values())), -p))
