"""WorkQueue: the asyncio shell around QueueState. One timer, one future per idle worker, no task."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from kopylite.checks import LARGEST, require_count, require_number
from kopylite.clock import SYSTEM_CLOCK, TICK, Clock
from kopylite.errors import QueueShutDown, UsageError
from kopylite.observers import QueueObserver
from kopylite.workqueue.ratelimiters import RateLimiter
from kopylite.workqueue.state import QueueState

K = TypeVar("K", bound=Hashable)


class QueueStatistics(msgspec.Struct, frozen=True):
    """A queue at one moment. Times are ages in seconds.

    Attributes:
        ready: keys that could run now, those whose earlier run is not done included.
        ready_by_priority: the same, by priority.
        waiting: keys whose time has not come.
        running: keys handed out and not done.
        failing: keys with failures that are not forgotten.
        longest_ready: age of the ready key that waited longest; 0 without one.
        longest_running: age of the run that runs longest; 0 without one.
        unfinished: sum of the ages of all runs.
    """

    ready: int
    ready_by_priority: Mapping[int, int]
    waiting: int
    running: int
    failing: int
    longest_ready: float
    longest_running: float
    unfinished: float

    @classmethod
    def of_all(cls, several: Iterable[QueueStatistics]) -> QueueStatistics:
        """Of several queues together."""
        found = [*several]
        by_priority: dict[int, int] = {}
        for priority, number in (item for one in found for item in one.ready_by_priority.items()):
            by_priority[priority] = by_priority.get(priority, 0) + number
        return cls(
            ready=sum(one.ready for one in found),
            ready_by_priority=by_priority,
            waiting=sum(one.waiting for one in found),
            running=sum(one.running for one in found),
            failing=sum(one.failing for one in found),
            longest_ready=max((one.longest_ready for one in found), default=0.0),
            longest_running=max((one.longest_running for one in found), default=0.0),
            unfinished=sum(one.unfinished for one in found),
        )


class WorkQueue(Generic[K]):
    """Keeps each key once and hands it to one worker at a time; see `state.py` for the rules.

    Guarantees: a key that was added is handed out after the add, unless it is dropped or the queue is shut down; no key
    is handed out again before `done`; adds during a run make exactly one more run.

    Belongs to one event loop. Every method but get() returns at once. `now`, where a method takes it, is the time of
    the clock, for a caller who has just read it.

    Args:
        clock: time and randomness; its monotonic() must run at the speed of the event loop's time.
        rate_limiter: how long failed keys wait.
        observer: told about every key that is taken or done, and holds the counters.
    """

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        rate_limiter: RateLimiter[K] | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self._clock = clock
        self._limiter: RateLimiter[K] = RateLimiter() if rate_limiter is None else rate_limiter
        self._observer = observer or QueueObserver()
        # Forgets the failures of a key; a run to come stays.
        self.forget: Callable[[K], None] = self._limiter.forget
        self._state: QueueState[K] = QueueState()
        self._shut_down = False
        # One future per worker that waits in get(), in the order of their coming.
        self._idle: deque[asyncio.Future[None]] = deque()
        # Set only while somebody is idle: a busy worker looks at the heap itself before it takes the next key.
        # The deadline is kept beside it because a handle cannot be trusted to know it (uvloop).
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    def __len__(self) -> int:
        """Keys that could run now; see QueueStatistics.ready."""
        self._promote(self._clock.monotonic())
        return self._state.ready

    def add(self, key: K, priority: int = 0, after: float = 0.0, hold: bool = False, now: float | None = None) -> None:
        """Ask for a run of `key`, not before `after` seconds. Ignored once the queue is shut down.

        If a run is to come already, it comes at the earlier time and with the higher priority of both.

        Args:
            after: 1e9 seconds at most; a negative one counts as 0.
            hold: nor does anything else run it before; what is added meanwhile is merged into that run.

        Raises:
            UsageError: `after` is no number or too long, or `priority` no whole one. Nothing was added.
        """
        if self._shut_down:
            return
        if type(priority) is not int or (after and not (type(after) is float and 0 < after <= LARGEST)):
            _check(priority, after)  # a nan is true, too
        if now is None:
            now = self._clock.monotonic()
        if after > 0:
            self._observer.retries += 1
        if hold and after > 0:
            self._state.hold(key, now, priority=priority, after=after)
        elif self._state.add(key, now, priority, after):
            self._observer.adds += 1
            if self._idle:
                self._wake(1)
            return
        if self._idle:
            self._set_timer()

    def add_rate_limited(self, key: K, *, priority: int = 0, now: float | None = None) -> float:
        """Count a failure of `key`, add it after its back-off, and return that delay in seconds."""
        if now is None:
            now = self._clock.monotonic()
        delay = self._limiter.when(key, now, self._clock.random())
        self.add(key, priority=priority, after=delay, now=now)
        return delay

    def drop(self, match: Callable[[K], bool]) -> None:
        """Forget the keys that match, with their failures: they are not handed out before they are added again."""
        self._state.drop(match)
        self._limiter.drop(match)

    def failures(self, key: K) -> int:
        """Failures of `key` since it was last forgotten."""
        return self._limiter.failures(key)

    def get_nowait(self, now: float | None = None) -> tuple[K, int] | None:
        """The next key to run and its priority, or None when nothing is ready. Call done(key) afterwards.

        Raises:
            QueueShutDown: nothing more will come.
        """
        if self._shut_down:
            raise QueueShutDown("the work queue is shut down")
        if now is None:
            now = self._clock.monotonic()
        state = self._state
        if state.delays.earliest <= now:
            count = state.promote(now)
            self._observer.adds += count
            if self._idle:
                self._wake(count)
        taken = state.take(now)
        if taken is None:
            return None
        key, priority, waited = taken
        self._observer.taken(waited)
        return key, priority

    def has_key(self, now: float) -> bool:
        """Whether get_nowait() would return one."""
        self._promote(now)
        return self._state.takeable()

    async def get(self) -> tuple[K, int]:
        """As get_nowait(), but waits until there is something.

        Raises:
            QueueShutDown: nothing more will come.
        """
        while (item := self.get_nowait()) is None:
            waiter = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            self._set_timer()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._idle:
                    self._idle.remove(waiter)
                else:
                    self._wake(1)  # woken and cancelled in the same turn: the key is for somebody else
                raise
        return item

    def done(self, key: K, now: float | None = None, at_most: int | None = None) -> None:
        """The run of `key` ended. If it was added meanwhile, it is ready again, with this priority at most.

        Raises:
            KeyError: the key is not running.
        """
        worked, ready = self._state.done(key, self._clock.monotonic() if now is None else now, at_most)
        self._observer.done(worked)
        if ready and self._idle:
            self._wake(1)

    def shut_down(self) -> None:
        """Drop all runs to come, ignore further adds, and let every get() raise QueueShutDown. Final."""
        self._shut_down = True
        self._state.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def running(self) -> dict[K, float]:
        """The keys that run now, and for how many seconds."""
        now = self._clock.monotonic()
        return {key: now - since for key, since in self._state.running().items()}

    def statistics(self) -> QueueStatistics:
        """The queue as it is now."""
        now = self._clock.monotonic()
        self._promote(now)
        state = self._state
        ages = self.running().values()
        oldest = state.oldest_ready()
        return QueueStatistics(
            ready=state.ready,
            ready_by_priority=state.ready_by_priority(),
            waiting=state.waiting,
            running=len(ages),
            failing=len(self._limiter),
            longest_ready=0.0 if oldest is None else now - oldest,
            longest_running=max(ages, default=0.0),
            unfinished=sum(ages),
        )

    def _promote(self, now: float) -> None:
        """Make ready what is due."""
        if count := self._state.promote(now):
            self._observer.adds += count
            if self._idle:
                self._wake(count)

    def _wake(self, count: int) -> None:
        """Let up to `count` idle workers look for a key."""
        idle = self._idle
        while count and idle and self._state.takeable():
            waiter = idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

    def _set_timer(self) -> None:
        due = self._state.next_time()
        if due is None:
            return
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        delay = max(due - self._clock.monotonic(), TICK)
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._promote(self._clock.monotonic())
        if self._idle:
            self._set_timer()


def _check(priority: object, after: float) -> None:
    """One nan in a heap, and the order of all keys is lost."""
    if type(priority) is not int:
        require_count(priority, "the priority of a key", least=-(2**63), error=UsageError)
    if not isinstance(after, int | float) or not after < 0:
        require_number(after, "the delay of a key", zero=True, error=UsageError)
