"""Who of several idle workers is woken, for what, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from kopylite.errors import QueueShutDown
from kopylite.observers import QueueObserver
from kopylite.testing import VirtualClock
from kopylite.workqueue import WorkQueue


async def worker(queue: WorkQueue[str]) -> None:
    with suppress(QueueShutDown):
        await queue.get()


def test_one_key_wakes_one_worker_however_it_comes() -> None:
    clock, idle = VirtualClock(), list[int]()

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(clock=clock)
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker(queue)) for _ in range(9)]
            await asyncio.sleep(0)
            queue.add("a")
            idle.append(len(queue._idle))
            await asyncio.sleep(0)
            queue.add("a")
            queue.done("a")
            idle.append(len(queue._idle))
            await asyncio.sleep(0)
            queue.add("b", after=1.0)
            await asyncio.sleep(1.5)
            idle.append(len(queue._idle))
            queue.add("c")
            workers[3].cancel()
            await asyncio.sleep(0)
            idle.append(len(queue._idle))
            queue.shut_down()

    clock.run(main)
    assert idle == [8, 7, 6, 4], "the last one was woken instead of another that was cancelled meanwhile"


@pytest.mark.parametrize("look", [WorkQueue.get_nowait, WorkQueue.has_key])
def test_what_is_due_is_found_counted_and_wakes_as_many_workers(
    look: Callable[[WorkQueue[str], float], object],
) -> None:
    clock, observer = VirtualClock(), QueueObserver()

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(clock=clock, observer=observer)
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(worker(queue))
            await asyncio.sleep(0)
            due = clock.monotonic() + 1.0
            for key in "ab":
                queue.add(key, after=1.0)
            assert look(queue, due), "it is exactly the time"
            assert (observer.adds, len(queue._idle)) == (2, 1)
            queue.shut_down()

    clock.run(main)


def test_a_delay_that_nobody_holds_is_brought_forward_and_what_is_held_at_once_is_counted_at_once() -> None:
    observer = QueueObserver()
    queue: WorkQueue[str] = WorkQueue(clock=VirtualClock(), observer=observer)
    queue.add("a", after=5.0)
    assert (queue.get_nowait(), observer.adds) == (None, 0)
    queue.add("a")
    assert (queue.get_nowait(), observer.adds) == (("a", 0), 1)
    queue.add("b", hold=True)
    assert observer.adds == 2


def test_a_back_off_counts_from_the_time_that_it_is_told() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=VirtualClock())
    delay = queue.add_rate_limited("a", now=100.0)
    assert queue.get_nowait(100.0 + 0.9 * delay) is None
    assert queue.get_nowait(100.0 + 1.1 * delay) == ("a", 0)
