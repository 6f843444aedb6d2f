from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kopylite.workqueue.delays import SWEEP_SLACK, DelayHeap


def test_keys_come_out_by_time_and_equal_times_by_arrival() -> None:
    heap: DelayHeap[str] = DelayHeap()
    for key, time in (("late", 3.0), ("first", 1.0), ("second", 1.0)):
        heap.schedule(key, time)
    assert heap.next_time() == 1.0
    assert heap.pop_due(3.0) == [("first", 1.0), ("second", 1.0), ("late", 3.0)]
    assert not heap


def test_a_key_that_was_moved_comes_out_once_and_at_its_new_time() -> None:
    heap: DelayHeap[str] = DelayHeap()
    heap.schedule("a", 1.0)
    heap.schedule("a", 5.0)
    assert heap.pop_due(4.0) == []
    assert heap.due_time("a") == heap.next_time() == 5.0
    assert heap.pop_due(5.0) == [("a", 5.0)]


def test_a_discarded_key_does_not_come_out() -> None:
    heap: DelayHeap[str] = DelayHeap()
    heap.schedule("a", 1.0)
    heap.discard("a")
    heap.discard("never there")
    assert heap.next_time() is None
    assert heap.pop_due(9.0) == []


def test_a_key_that_comes_back_for_the_same_time_takes_its_place_behind_the_others() -> None:
    heap: DelayHeap[str] = DelayHeap()
    heap.schedule("a", 1.0)
    heap.schedule("b", 1.0)
    heap.discard("a")
    heap.schedule("a", 1.0)
    assert heap.pop_due(1.0) == [("b", 1.0), ("a", 1.0)]


def test_a_key_that_is_moved_for_ever_does_not_fill_the_memory() -> None:
    heap: DelayHeap[str] = DelayHeap()
    heap.schedule("still", 0.5)
    for time in range(10_000):
        heap.schedule("restless", float(10_000 - time))
    assert len(heap._heap) <= 2 * len(heap) + SWEEP_SLACK + 1
    assert heap.pop_due(1.0) == [("still", 0.5), ("restless", 1.0)]


def test_a_heap_forgets_what_was_moved_and_keeps_the_order_of_the_rest() -> None:
    heap: DelayHeap[int] = DelayHeap()
    for key in range(100, 0, -1):
        heap.schedule(key, float(key))
    largest = 0
    for turn in range(10 * SWEEP_SLACK):
        heap.schedule(1 + turn % 100, 1000.0 - turn % 100)
        largest = max(largest, len(heap._heap))
    assert 200 + SWEEP_SLACK - 1 <= largest <= 200 + SWEEP_SLACK + 1
    assert [key for key, _ in heap.pop_due(2000.0)] == list(range(100, 0, -1))
    assert not heap._heap


def test_what_is_cleared_is_let_go_and_the_heap_can_be_used_again() -> None:
    heap: DelayHeap[str] = DelayHeap()
    heap.schedule("a", 1.0)
    heap.clear()
    assert not heap._heap
    assert (len(heap), heap.next_time(), heap.earliest) == (0, None, math.inf)
    heap.schedule("b", 2.0)
    assert heap.pop_due(9.0) == [("b", 2.0)]


def test_a_heap_that_was_swept_is_one_whatever_the_order_of_its_keys() -> None:
    heap: DelayHeap[int] = DelayHeap()
    for key in range(50):
        heap.schedule(key, 1000.0 - key)
    for _ in range(51 + SWEEP_SLACK):  # the last one is one too many: all are put into a new heap
        heap.schedule(7, 2000.0)
    assert [key for key, _ in heap.pop_due(1000.0)] == [key for key in range(49, -1, -1) if key != 7]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9) | st.none())), st.integers(0, 9))
def test_times_in_any_order_come_out_in_theirs(steps: list[tuple[int, int | None]], now: int) -> None:
    heap: DelayHeap[int] = DelayHeap()
    known: dict[int, tuple[int, int]] = {}
    for number, (key, time) in enumerate(steps):
        if time is None:
            heap.discard(key)
            known.pop(key, None)
        else:
            heap.schedule(key, float(time))
            known[key] = time, number
    for moment in (now, 9):
        times = [time for time, _ in known.values()]
        assert heap.next_time() == min(times, default=None)
        assert heap.earliest <= min(times, default=math.inf)
        due = sorted(key for key in known if known[key][0] <= moment)
        due.sort(key=lambda key: known[key])
        assert heap.pop_due(float(moment)) == [(key, known.pop(key)[0]) for key in due]
    assert not heap
    assert heap.earliest > 9.0
