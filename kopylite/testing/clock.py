"""VirtualClock: time that passes only when the test says so, or when everybody waits for it."""

from __future__ import annotations

import asyncio
import selectors
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import anyio

T = TypeVar("T")

# An arbitrary moment; the same in every run.
START = datetime(2026, 1, 1, tzinfo=UTC)

# Consecutive multiples of the golden ratio, cut to their fraction, are the most evenly spread sequence there is.
GOLDEN_RATIO = 0.6180339887498949


class VirtualClock:
    """A Clock for tests: deterministic, and as fast as the code under test.

    By itself it stands still until `advance()`. `run()` gives an event loop that obeys it: timers, `sleep` and
    timeouts of asyncio and anyio follow this clock, and when nothing can go on before the next timer, the clock jumps
    there. So hours of back-off pass in milliseconds, always in the same order.

    Not for code that waits for a thread or another process: what they do takes no virtual time, so timeouts that
    guard them fire at once.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._numbers = 0
        self._uuids = 0

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
        return str(uuid.UUID(int=self._uuids, version=4))

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Let time pass. Timers of a loop of `run()` that fall into it fire in the loop's next turn."""
        if seconds < 0:
            raise ValueError(f"time does not go back ({seconds} s)")
        self._seconds += seconds

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
        super().__init__(_JumpingSelector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.monotonic()


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for time: looks once at the sockets, and if nothing is there, lets the clock jump."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[Any] = super().select(0)
        if not ready and timeout is None:
            # The loop's own wake-up socket is always there; more than it means that real I/O may still come.
            if len(self.get_map()) <= 1:
                raise Stuck("everything waits, and no timer is set")
            return super().select(None)
        if not ready and timeout:
            self._clock.advance(timeout)
        return ready
