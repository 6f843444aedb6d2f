from __future__ import annotations

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
