"""The only reader of time and randomness. Everything else takes a Clock, so tests can hold the hands."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol

import anyio

# What the event loop's timers can tell apart, in seconds: nothing is set to wait for less.
TICK = 0.001


# Linux alone tells it; elsewhere a suspended machine counts as one whose clock is slow.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Time and randomness as an argument."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back. Equals the event loop's time()."""

    def elapsed(self) -> float:
        """As `monotonic`, and goes on while the machine is asleep: for what others measure meanwhile."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC. For time stamps only, never for measuring."""

    def random(self) -> float:
        """A number in [0, 1), evenly distributed."""

    def uuid(self) -> str:
        """A random UUID in its usual text form."""

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable; at once when `seconds` is not positive."""


class SystemClock:
    """The real one."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)  # without a step between: a reconcile asks eight times

    def elapsed(self) -> float:
        return time.clock_gettime(_BOOTTIME) if _BOOTTIME is not None else time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def random(self) -> float:
        return random.random()  # jitter and names, nothing secret

    def uuid(self) -> str:
        return str(uuid.uuid4())

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))


SYSTEM_CLOCK: Clock = SystemClock()
