from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from kopylite.clock import SystemClock
from kopylite.diagnostics import StallWatch
from kopylite.diagnostics.stall import DEAD_SECONDS, HEARTBEAT_SECONDS
from kopylite.reconcile import Context, Environment, Request

if TYPE_CHECKING:
    from kopylite.client import Client


class HandClock(SystemClock):
    """A clock whose hand the test moves."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = 100.0

    def monotonic(self) -> float:
        return self.time


class LateHeartbeat:
    """Set by the first heartbeat that comes more than 0.3 s late."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def __call__(self, lag: float) -> None:
        if lag > 0.3:
            self.event.set()


async def block(call: Callable[[], Coroutine[Any, Any, None]], caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    """The report about a task that runs `call`, named worker-1."""
    late = LateHeartbeat()
    watch = StallWatch(warn_after=0.2, on_lag=late)
    with caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run)
            await asyncio.sleep(0)
            group.start_soon(call, name="worker-1")
            with anyio.fail_after(5):
                await late.event.wait()
            group.cancel_scope.cancel()
    assert watch.statistics().longest > 0.3
    [record] = [r for r in caplog.records if "the event loop has been blocked" in r.getMessage()]
    return record


async def test_a_blocked_loop_is_reported_with_the_reconcile_and_the_line(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(ctx: Context, request: Request) -> None:
        time.sleep(0.6)  # noqa: ASYNC251 -- the defect under test

    async def worker() -> None:
        context = Context(Environment("shop", cast("Client", None)), Request("default", "a"), ("created",))
        await reconcile(context, context.request)

    record = await block(worker, caplog)
    line = record.getMessage()
    assert "the reconcile of default/a" in line
    assert f"{__file__}:" in line
    assert "in test_a_blocked_loop_is_reported_with_the_reconcile_and_the_line.<locals>.reconcile" in line
    assert record.__dict__["fields"]["controller"] == "shop"


async def test_a_blocked_loop_outside_of_a_reconcile_is_reported_with_the_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def blocking() -> None:
        time.sleep(0.6)  # noqa: ASYNC251 -- the defect under test

    record = await block(blocking, caplog)
    assert "by task worker-1 at" in record.getMessage()


async def test_a_library_is_not_blamed_but_whoever_calls_it(caplog: pytest.LogCaptureFixture) -> None:
    async def waiting() -> None:
        threading.Event().wait(0.6)

    record = await block(waiting, caplog)
    assert f"{__file__}:" in record.getMessage()
    assert "in a call of Condition.wait" in record.getMessage()


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
