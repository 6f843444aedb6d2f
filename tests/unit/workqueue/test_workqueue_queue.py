from __future__ import annotations

import asyncio
import enum
from typing import Any

import pytest

from kopylite.errors import QueueShutDown, UsageError
from kopylite.observers import QueueObserver
from kopylite.testing.clock import VirtualClock
from kopylite.workqueue import QueueStatistics, RateLimit, RateLimiter, WorkQueue
from tests.leftovers import Loops


class Notes(QueueObserver):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[str, float]] = []

    def taken(self, waited: float) -> None:
        self.notes.append(("taken", waited))

    def done(self, worked: float) -> None:
        self.notes.append(("done", worked))


def make(clock: VirtualClock, observer: QueueObserver | None = None) -> WorkQueue[str]:
    return WorkQueue(clock=clock, rate_limiter=RateLimiter(RateLimit(jitter=0)), observer=observer)


def test_an_idle_worker_is_woken_by_an_add() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(1.0)
            queue.add("a", priority=3)
        assert waiting.result() == ("a", 3)
        assert clock.monotonic() == 1.0

    clock.run(main)


def test_a_delayed_key_wakes_an_idle_worker_at_its_time_and_an_earlier_one_before_it() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        queue.add("late", after=10.0)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(1.0)
            queue.add("early", after=2.0)
        assert waiting.result() == ("early", 0)
        assert clock.monotonic() == 3.0
        assert await queue.get() == ("late", 0)
        assert clock.monotonic() == 10.0

    clock.run(main)


def test_every_idle_worker_is_woken_at_the_time_of_its_key() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def worker(queue: WorkQueue[str]) -> None:
        key, _ = await queue.get()
        woken.append((key, clock.monotonic()))

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(worker(queue))
            await asyncio.sleep(0)
            for key, after in (("a", 1.0), ("b", 2.0), ("c", 4.0)):
                queue.add(key, after=after)

    clock.run(main)
    assert woken == [("a", 1.0), ("b", 2.0), ("c", 4.0)]


def test_done_wakes_an_idle_worker_for_a_key_that_was_added_during_its_run() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        queue.add("a")
        await queue.get()
        queue.add("a")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(1.0)
            assert not waiting.done()
            queue.done("a")
        assert waiting.result() == ("a", 0)

    clock.run(main)


def test_a_wake_up_that_its_worker_cannot_use_goes_to_another() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(queue.get())
            second = group.create_task(queue.get())
            await asyncio.sleep(0)
            queue.add("a")
            first.cancel()
        assert first.cancelled()
        assert second.result() == ("a", 0)

    clock.run(main)


def test_a_cancelled_worker_is_no_longer_woken() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(0)
            waiting.cancel()
        queue.add("a")
        assert queue.get_nowait() == ("a", 0)

    clock.run(main)


def test_it_says_whether_there_is_a_key_to_take_what_is_due_included() -> None:
    clock = VirtualClock()
    queue = make(clock)
    queue.add("a", after=1.0)
    assert not queue.has_key(clock.monotonic())
    assert queue.has_key(clock.monotonic() + 1.0)
    assert queue.get_nowait(clock.monotonic() + 1.0) == ("a", 0)
    queue.add("a")  # it runs
    assert not queue.has_key(clock.monotonic() + 1.0)
    queue.shut_down()
    assert not queue.has_key(clock.monotonic() + 1.0)


def test_get_nowait_sees_what_is_due_without_any_timer() -> None:
    clock = VirtualClock()
    queue = make(clock)
    queue.add("a", after=1.0)
    assert queue.get_nowait() is None
    clock.advance(1.0)
    assert len(queue) == 1
    assert queue.get_nowait() == ("a", 0)


def test_failures_back_off_until_they_are_forgotten() -> None:
    queue = make(VirtualClock())
    assert [queue.add_rate_limited("a") for _ in range(3)] == [0.005, 0.01, 0.02]
    assert queue.failures("a") == 3
    queue.forget("a")
    assert queue.add_rate_limited("a") == 0.005


def test_shut_down_drops_what_is_to_come_and_ends_every_wait() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(ends(queue)) for _ in range(3)]
            await asyncio.sleep(0)
            queue.add("later", after=1.0)
            queue.shut_down()
        assert [task.result() for task in waiting] == [True] * 3
        queue.add("ignored")
        assert len(queue) == 0
        assert await ends(queue)

    async def ends(queue: WorkQueue[str]) -> bool:
        with pytest.raises(QueueShutDown):
            await queue.get()
        return True

    clock.run(main)


def test_the_observer_hears_of_every_step_with_its_time() -> None:
    clock = VirtualClock()
    notes = Notes()
    queue = make(clock, notes)
    queue.add("a", after=1.0)
    clock.advance(1.5)
    queue.get_nowait()
    clock.advance(2.0)
    queue.add("a")
    queue.done("a")
    assert notes.notes == [("taken", 0.5), ("done", 2.0)]
    assert (notes.retries, notes.adds) == (1, 2)


def test_statistics_tell_how_many_keys_are_where_and_for_how_long() -> None:
    clock = VirtualClock()
    queue = make(clock)
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add("d", priority=-100)
    queue.add_rate_limited("e")
    queue.add("f", after=50.0)
    queue.get_nowait()
    clock.advance(3.0)
    queue.get_nowait()
    clock.advance(1.0)
    found = queue.statistics()
    assert found.ready_by_priority == {0: 2, -100: 1}
    assert (found.ready, found.waiting, found.running, found.failing) == (3, 1, 2, 1)
    assert (found.longest_ready, found.longest_running, found.unfinished) == (4.0, 4.0, 5.0)
    assert queue.running() == {"a": 4.0, "b": 1.0}


@pytest.mark.parametrize(
    "odd",
    [
        *({"after": after} for after in (float("nan"), float("inf"), 1e300, 10**400, True, "5")),
        *({"priority": priority} for priority in (float("nan"), 1.0, True, None, "high")),
    ],
)
def test_an_odd_number_is_refused_before_it_can_spoil_the_order(odd: dict[str, Any]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        with pytest.raises(UsageError, match="of a key"):
            queue.add("odd", **odd)
        queue.add("late", after=2.0)
        queue.add("soon", after=1.0)
        queue.add("now", after=-1.0)
        assert [(await queue.get())[0] for _ in range(3)] == ["now", "soon", "late"]
        assert clock.monotonic() == pytest.approx(2.0)

    clock.run(main)


def test_a_held_key_comes_at_its_time_whatever_is_added_meanwhile() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(0)
            queue.add("a", after=0.5, hold=True)
            queue.add("a", priority=7)
        assert waiting.result() == ("a", 7)
        assert clock.monotonic() == 0.5

    clock.run(main)


def test_a_hold_without_a_delay_holds_nothing() -> None:
    queue = make(VirtualClock())
    queue.add("a", hold=True)
    assert queue.get_nowait() == ("a", 0)


def test_an_earlier_key_takes_the_timer_of_a_later_one_and_the_end_leaves_none(watched_loops: Loops) -> None:
    clock = VirtualClock()

    async def main() -> list[Any]:
        queue = make(clock)
        queue.add("late", after=10.0)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(1.0)
            queue.add("early", after=2.0)
        assert waiting.result() == ("early", 0)
        queue.shut_down()
        return list(queue._idle)

    assert clock.run(main) == []
    assert watched_loops.taken() == []


def test_a_worker_that_gave_up_waiting_is_forgotten() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(0)
            assert len(queue._idle) == 1
            waiting.cancel()
        assert not queue._idle

    clock.run(main)


def test_shut_down_forgets_every_run_to_come() -> None:
    queue = make(VirtualClock())
    for key, after in (("ready", 0.0), ("waiting", 5.0)):
        queue.add(key, after=after)
    queue.shut_down()
    now = queue.statistics()
    assert (now.ready, now.waiting, now.ready_by_priority) == (0, 0, {})
    assert queue._timer is None


def test_statistics_of_an_empty_queue_are_zeros_and_ages_count_from_the_event() -> None:
    clock = VirtualClock()
    queue = make(clock)
    now = queue.statistics()
    assert (now.longest_ready, now.longest_running, now.unfinished) == (0.0, 0.0, 0.0)
    clock.advance(97.0)
    queue.add("a")
    clock.advance(3.0)
    assert queue.statistics().longest_ready == 3.0


def test_a_delay_of_a_key_is_told_and_none_is_not() -> None:
    notes = Notes()
    queue = make(VirtualClock(), notes)
    queue.add("a", after=-1.0)
    assert notes.retries == 0
    queue.add("b", after=0.25)
    assert notes.retries == 1


def test_a_held_key_wakes_a_worker_that_was_idle_before_it_came() -> None:
    clock = VirtualClock()

    async def main() -> None:
        queue = make(clock)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(queue.get())
            await asyncio.sleep(1.0)
            queue.add("a", after=2.0, hold=True)
        assert waiting.result() == ("a", 0)
        assert clock.monotonic() == 3.0

    clock.run(main)


class Level(enum.IntEnum):
    HIGH = 10


def test_a_priority_may_be_a_named_number_and_no_delay_is_no_delay() -> None:
    notes = Notes()
    queue = make(VirtualClock(), notes)
    queue.add("a", priority=Level.HIGH)
    queue.add("b", after=-1.0)
    assert notes.adds == 2
    assert queue.get_nowait() == ("a", 10)


def test_statistics_of_several_queues_are_their_sums_and_their_longest_ages() -> None:
    clock = VirtualClock()
    queues = [make(clock), make(clock)]
    for number, queue in enumerate(queues, 1):
        for key in range(number):
            queue.add(f"running {key}", priority=9)
            queue.get_nowait()
            queue.add(f"ready {key}", priority=5)
            queue.add(f"late {key}", after=100.0)
            queue.add_rate_limited(f"failed {key}")
        clock.advance(10.0)
    assert QueueStatistics.of_all(queue.statistics() for queue in queues) == QueueStatistics(
        ready=6,
        ready_by_priority={5: 3, 0: 3},
        waiting=3,
        running=3,
        failing=3,
        longest_ready=20.0,
        longest_running=20.0,
        unfinished=40.0,
    )
    nothing = QueueStatistics.of_all([])
    assert (nothing.longest_ready, nothing.longest_running, nothing.unfinished) == (0.0, 0.0, 0.0)


async def test_dropped_keys_are_not_handed_out_and_their_failures_are_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue(rate_limiter=RateLimiter(RateLimit(first=60.0)))
    for name in ("a1", "a2", "b1"):
        queue.add(name)
    assert queue.get_nowait() == ("a1", 0)
    queue.add("a1")
    queue.add("a3", after=100.0)
    queue.add_rate_limited("a4")
    queue.add_rate_limited("b4")
    queue.drop(lambda name: name.startswith("a"))
    now = queue.statistics()
    assert (now.ready, now.waiting, now.running, now.failing) == (1, 1, 1, 1)
    queue.done("a1")
    assert [queue.get_nowait(), queue.get_nowait()] == [("b1", 0), None]
    queue.add("a2")
    assert queue.get_nowait() == ("a2", 0)
    queue.shut_down()
