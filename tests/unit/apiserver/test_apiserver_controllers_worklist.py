from __future__ import annotations

import asyncio
import logging

import anyio
import pytest

from kopylite.apiserver.controllers.worklist import LONGEST_PAUSE, WorkList
from kopylite.errors import Conflict
from kopylite.testing import VirtualClock
from tests.leftovers import Loops


class Worker:
    """Notes when it is called, and fails as told."""

    def __init__(self, clock: VirtualClock, failures: dict[str, list[Exception]]) -> None:
        self.clock = clock
        self.failures = failures
        self.calls: list[tuple[str, float]] = []

    async def work(self, key: str) -> None:
        self.calls.append((key, round(self.clock.monotonic(), 3)))
        if self.failures.get(key):
            raise self.failures[key].pop()


def run(seconds: float, *keys: str, failures: dict[str, list[Exception]] | None = None) -> list[tuple[str, float]]:
    """What happens within some virtual time."""
    clock = VirtualClock()
    worker = Worker(clock, failures or {})

    async def main() -> None:
        work: WorkList[str] = WorkList("test", worker.work)
        for key in keys:
            work.add(key)
        with anyio.move_on_after(seconds):
            await work.run()

    clock.run(main)
    return worker.calls


def test_keys_are_worked_off_once_in_the_order_of_their_arrival() -> None:
    assert run(1, "b", "a", "b", "c") == [("b", 0), ("a", 0), ("c", 0)]


def test_what_fails_comes_back_after_a_growing_pause_and_stops_nobody() -> None:
    calls = run(1, "bad", "good", failures={"bad": [Conflict("no")] * 3})
    assert calls == [("bad", 0), ("good", 0), ("bad", 0.005), ("bad", 0.015), ("bad", 0.035)]


def test_the_pause_has_a_limit() -> None:
    times = [time for _, time in run(200, "bad", failures={"bad": [Conflict("no")] * 99})]
    assert times[-1] - times[-2] == LONGEST_PAUSE


def test_a_key_that_is_to_come_later_comes_once_and_not_after_the_end() -> None:
    """The leftovers fixture notices a timer that is left."""
    clock = VirtualClock()
    worker = Worker(clock, {})

    async def main() -> None:
        work: WorkList[str] = WorkList("test", worker.work)
        work.add_later("a", 3)
        work.add_later("a", 5)
        work.add("a")
        with anyio.move_on_after(4):
            await work.run()
        work.add_later("a", 1)
        await anyio.sleep(2)

    clock.run(main)
    assert worker.calls == [("a", 0), ("a", 3)]


def test_a_fault_is_told_with_its_traceback_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        calls = run(1, "bad", failures={"bad": [KeyError("oops")]})
    assert [key for key, _ in calls] == ["bad", "bad"]
    assert "oops" in caplog.text


async def test_a_key_that_comes_while_it_is_worked_on_is_looked_at_again() -> None:
    calls: list[str] = []
    twice = asyncio.Event()

    async def again_once(key: str) -> None:
        calls.append(key)
        if len(calls) == 1:
            work.add(key)
        else:
            twice.set()

    work: WorkList[str] = WorkList("test", again_once)
    work.add("a")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(work.run())
        await twice.wait()
        running.cancel()
    assert calls == ["a", "a"]


def test_what_waits_for_its_pause_is_let_go_at_the_end(watched_loops: Loops) -> None:
    assert run(0.02, "bad", "worse", failures={"bad": [Conflict("no")] * 99, "worse": [KeyError("oops")] * 99})
    assert watched_loops.taken() == []
