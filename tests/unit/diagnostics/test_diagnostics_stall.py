from __future__ import annotations

import asyncio
import logging
import time

import anyio
import pytest

from kopylite.clock import SystemClock
from kopylite.diagnostics import StallWatch
from kopylite.diagnostics.stall import DEAD_SECONDS, HEARTBEAT_SECONDS


class HandClock(SystemClock):
    """A clock whose hand the test moves."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = 100.0

    def monotonic(self) -> float:
        return self.time


async def test_a_blocked_loop_is_reported_with_the_task_and_the_line(caplog: pytest.LogCaptureFixture) -> None:
    late = asyncio.Event()
    watch = StallWatch(
        warn_after=0.2,
        describe=lambda task: f"reconcile {task.get_name()}",
        on_lag=lambda lag: late.set() if lag > 0.3 else None,
    )

    async def blocking_reconcile() -> None:
        time.sleep(0.6)  # noqa: ASYNC251 -- the defect under test

    with caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run)
            await asyncio.sleep(0)
            group.start_soon(blocking_reconcile, name="default/a")
            with anyio.fail_after(5):
                await late.wait()
            group.cancel_scope.cancel()
    [line] = [r.getMessage() for r in caplog.records if "event loop blocked" in r.getMessage()]
    assert "reconcile default/a" in line
    assert __file__ in line
    assert "blocking_reconcile" in line


async def test_an_idle_loop_has_little_lag_and_passes_the_check() -> None:
    beaten = asyncio.Event()
    watch = StallWatch(on_lag=lambda lag: beaten.set())
    async with anyio.create_task_group() as group:
        group.start_soon(watch.run)
        with anyio.fail_after(5):
            await beaten.wait()
        assert watch.check() is None
        assert watch.statistics().longest < DEAD_SECONDS
        group.cancel_scope.cancel()


def test_a_loop_that_is_silent_too_long_fails_the_check() -> None:
    clock = HandClock()
    watch = StallWatch(clock=clock)
    clock.time += DEAD_SECONDS
    assert watch.check() is None
    clock.time += HEARTBEAT_SECONDS + 0.001
    problem = watch.check()
    assert problem is not None
    assert "blocked" in problem
