"""patch_clocks: the time of the whole process is a VirtualClock's, for code that does not ask kopylite for it."""

from __future__ import annotations

import datetime as datetimes
import random
import time
from typing import Any

from kopylite.clock import SystemClock
from kopylite.testing.clock import VirtualClock

_REAL = datetimes.datetime


def patch_clocks(clock: VirtualClock, seed: int) -> None:
    """Have `time`, `datetime` and `random` follow a clock and a seed. For a process that ends soon: nothing is undone.

    What was imported by `from time import ...` before goes on with the real time.
    """
    random.seed(seed)
    time.time = lambda: clock.now().timestamp()
    time.time_ns = lambda: int(clock.now().timestamp() * 1e9)
    time.monotonic = time.perf_counter = clock.monotonic
    time.monotonic_ns = time.perf_counter_ns = lambda: int(clock.monotonic() * 1e9)
    SystemClock.monotonic = staticmethod(clock.monotonic)  # it holds on to time's own
    time.sleep = lambda seconds: clock.advance(float(seconds))

    class Metaclass(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, _REAL)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, _REAL)

    class datetime(_REAL, metaclass=Metaclass):
        """The standard library's, at the time of a VirtualClock."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            now = clock.now()
            return now.astimezone(tz) if tz is not None else now.replace(tzinfo=None)

        @classmethod
        def utcnow(cls) -> Any:
            return clock.now().replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return handler(_REAL)

    datetimes.datetime = datetime  # type: ignore[misc]
