"""VirtualClock: time that passes only when the test says so, or when everybody waits for it."""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from queue import Queue
from types import FrameType
from typing import Any, TypeVar

import anyio

from kopylite.reconcile.threads import UNBEGUN

T = TypeVar("T")

# An arbitrary moment; the same in every run.
START = datetime(2026, 1, 1, tzinfo=UTC)

# Consecutive multiples of the golden ratio, cut to their fraction, are the most evenly spread sequence there is.
GOLDEN_RATIO = 0.6180339887498949

# How long a thread may take to begin what it was given, in real seconds.
THREAD_SECONDS = 0.0005
# Threads of which nobody knows what they were given.
_POOLS = ("ThreadPoolExecutor", "asyncio_")
# The innermost Python frame of a thread that waits for somebody else is in one of these files.
_RESTING = ("/threading.py", "/queue.py", "/selectors.py")
# Functions that run what a pool's thread was given: kopylite's, the standard library's.
_JOBS = frozenset({"_Job.run", "_WorkItem.run"})


class VirtualClock:
    """A Clock for tests: deterministic, and as fast as the code under test.

    By itself it stands still until `advance()`. `run()` gives an event loop that obeys it: timers, `sleep` and
    timeouts of asyncio and anyio follow this clock, and when nothing can go on before the next timer, the clock jumps
    there. So hours of back-off pass in milliseconds, always in the same order.

    The clock does not jump while a thread is at work that was begun since the loop was: it takes no virtual time.
    Not for code that waits for another process: timeouts that guard it fire at once.

    Args:
        seed: another one gives other random numbers and uuids.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seconds = 0.0
        self._uuids = 0
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Go on with the random numbers and uuids of another seed."""
        self._seed = seed
        self._numbers = seed * 7919

    def monotonic(self) -> float:
        return self._seconds

    def elapsed(self) -> float:
        return self._seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self._seconds)

    def random(self) -> float:
        self._numbers += 1
        return self._numbers * GOLDEN_RATIO % 1.0

    def uuid(self) -> str:
        self._uuids += 1
        return str(uuid.UUID(int=(self._seed << 64) + self._uuids, version=4))

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Let time pass. Timers of a loop of `run()` that fall into it fire in the loop's next turn."""
        if seconds < 0:
            raise ValueError(f"time does not go back ({seconds} s)")
        self._seconds += seconds

    def reach(self, moment: float) -> None:
        """Let time pass until it is exactly `moment`, which a sum of pauses may miss by a rounding error."""
        self._seconds = max(self._seconds, moment)

    def run(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run an async function to its end, as asyncio.run() does, in the time of this clock.

        Raises:
            Stuck: everything waits, and there is no timer to wait for.
        """

        async def awaited() -> T:
            return await main()

        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(self)) as runner:
            return runner.run(awaited())


class Stuck(AssertionError):
    """In virtual time, every task waits for something that no timer will bring."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a VirtualClock. Made by VirtualClock.run()."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_JumpingSelector(clock, self._next_timer))
        self._clock = clock

    def _next_timer(self) -> float:
        """When the next timer is due: of those that the loop's resolution makes one, the latest.

        Who is woken and finds that its time has not come would wait again, for no time at all: for ever.
        """
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        latest = timers[0].when()
        limit = latest + self._clock_resolution  # type: ignore[attr-defined]
        places = [0]  # of a heap
        while places:
            place = places.pop()
            if place < len(timers) and (when := timers[place].when()) < limit:
                latest = max(latest, when)
                places += (2 * place + 1, 2 * place + 2)
        return latest

    def time(self) -> float:
        return self._clock.monotonic()


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for time: looks once at the sockets, and if nothing is there, lets the clock jump."""

    def __init__(self, clock: VirtualClock, next_timer: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._next_timer = next_timer
        # They do nothing for this loop: servers of other tests, say.
        self._others = frozenset(threading.enumerate())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[Any] = super().select(0)
        if not ready and timeout != 0 and (own := [t for t in threading.enumerate() if t not in self._others]):
            ready = self._await_threads(own)
        if not ready and timeout is None:
            # The loop's own wake-up socket is always there; more than it means that real I/O may still come.
            if len(self.get_map()) <= 1:
                raise Stuck("everything waits, and no timer is set")
            return super().select(None)
        if not ready and timeout:
            self._clock.reach(self._next_timer())
        return ready

    def _await_threads(self, own: Sequence[threading.Thread]) -> list[tuple[selectors.SelectorKey, int]]:
        """Give the loop's own threads the time to do what they were asked for, as long as they are at work."""
        pools = any(thread.name.startswith(_POOLS) for thread in own)
        while True:
            frames = sys._current_frames()
            working = bool(UNBEGUN) or any(_has_work(thread, frames) for thread in own)
            ready: list[Any] = super().select(THREAD_SECONDS if pools or working else 0)
            if ready or not working:
                return ready


def _has_work(thread: threading.Thread, frames: Mapping[int, FrameType]) -> bool:
    """Whether a thread was given something that it has not done. anyio's tell; others are looked at."""
    if isinstance(queue := getattr(thread, "queue", None), Queue):
        return queue.unfinished_tasks > 0
    frame = frames.get(thread.ident or 0)
    return frame is not None and _at_work(frame)


def _at_work(frame: FrameType) -> bool:
    """Whether a thread of a pool is busy, and not waiting for its next job or for an event loop."""
    if frame.f_code.co_filename.endswith(_RESTING):
        return False
    caller: FrameType | None = frame
    while caller is not None:
        code = caller.f_code
        if caller is not frame and code.co_qualname in _JOBS:
            return True
        caller = caller.f_back
    return False
