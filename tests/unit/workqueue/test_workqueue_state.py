"""Single rules of QueueState; tests/properties/test_queue_model.py has the histories."""

from __future__ import annotations

import pytest

from kopylite.workqueue.state import FAIR_SHARE, QueueState


def keys_taken(state: QueueState[str], count: int, now: float = 0.0) -> list[str]:
    taken = [state.take(now) for _ in range(count)]
    return [item[0] for item in taken if item is not None]


def test_a_key_added_twice_runs_once() -> None:
    state: QueueState[str] = QueueState()
    assert state.add("a", 0.0)
    assert not state.add("a", 1.0)
    assert keys_taken(state, 2) == ["a"]


def test_adds_during_a_run_make_one_more_run_after_it() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0)
    state.take(0.0)
    state.add("a", 1.0)
    state.add("a", 2.0)
    assert state.ready == 1
    assert state.take(2.0) is None
    assert state.done("a", 3.0) == (3.0, True)
    taken = state.take(5.0)
    assert taken is not None
    assert taken[2] == 4.0
    assert state.done("a", 6.0) == (1.0, False)


def test_an_immediate_add_brings_a_delayed_one_forward_and_leaves_no_second_run() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0, after=10.0)
    assert state.add("a", 1.0)
    assert keys_taken(state, 1) == ["a"]
    state.done("a", 1.0)
    assert state.next_time() is None


def test_of_two_delays_the_earlier_time_counts() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0, after=10.0)
    state.add("a", 1.0, after=2.0)
    state.add("a", 1.0, after=20.0)
    assert state.next_time() == 3.0
    assert state.promote(2.9) == 0
    assert state.promote(3.0) == 1


def test_a_delayed_add_is_absorbed_by_a_run_to_come_but_kept_beside_a_run_that_began_before_it() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0)
    state.add("a", 0.0, after=5.0)
    assert state.next_time() is None
    state.take(0.0)
    state.add("a", 1.0, after=5.0)
    state.done("a", 2.0)
    assert state.next_time() == 6.0


def test_a_key_that_is_due_while_it_runs_is_not_handed_out_before_it_is_done() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0)
    state.take(0.0)
    state.add("a", 0.0, after=1.0)
    assert state.promote(2.0) == 1
    assert state.take(2.0) is None
    assert state.done("a", 3.0) == (3.0, True)
    assert keys_taken(state, 1, 3.0) == ["a"]


def test_the_higher_priority_of_two_adds_counts_and_equals_keep_their_order() -> None:
    state: QueueState[str] = QueueState()
    for key in "abc":
        state.add(key, 0.0, priority=-100)
    state.add("c", 0.0, priority=0)
    state.add("a", 0.0, priority=-200)
    assert keys_taken(state, 3) == ["c", "a", "b"]


def test_low_priority_gets_each_eighth_take_and_never_starves() -> None:
    state: QueueState[str] = QueueState()
    for number in range(3):
        state.add(f"low {number}", 0.0, priority=-100)
    taken: list[str] = []
    for moment in range(1, 30):
        state.add(f"fresh {moment}", float(moment))
        state.add(f"fresh too {moment}", float(moment))
        taken += keys_taken(state, 1, float(moment))
    assert [index for index, key in enumerate(taken, 1) if key.startswith("low")] == [
        FAIR_SHARE,
        2 * FAIR_SHARE,
        3 * FAIR_SHARE,
    ]


def test_done_of_a_key_that_does_not_run_is_an_error() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0)
    with pytest.raises(KeyError):
        state.done("a", 0.0)


def test_a_held_key_runs_at_its_time_and_not_before_however_often_it_is_added() -> None:
    state: QueueState[str] = QueueState()
    state.add("a", 0.0)
    state.take(0.0)
    state.add("a", 1.0)
    state.hold("a", 2.0, after=10.0)
    assert state.done("a", 2.0) == (2.0, False), "what came during the run is put off too"
    assert not state.add("a", 3.0, priority=7)
    assert not state.add("a", 3.0, after=1.0)
    assert state.promote(11.9) == 0
    assert state.promote(12.0) == 1
    taken = state.take(12.0)
    assert taken is not None
    assert taken[1] == 7
    state.done("a", 12.0)
    assert state.add("a", 13.0), "a hold ends with its run"


def test_what_was_parked_or_held_is_forgotten_by_clear() -> None:
    state: QueueState[str] = QueueState()
    for key in "ab":
        state.add(key, 0.0)
    assert keys_taken(state, 2) == ["a", "b"]
    state.add("a", 1.0)
    state.hold("b", 1.0, after=10.0)
    state.add("c", 1.0, priority=5)
    state.clear()
    assert state.take(1.0) is None
    assert state.done("a", 2.0) == (2.0, False)
    assert state.done("b", 2.0) == (2.0, False)
    assert not state.add("b", 3.0, after=5.0)
    assert state.add("b", 4.0), "nothing holds it any more"
    assert keys_taken(state, 2, 4.0) == ["b"]


def test_what_was_added_during_a_run_may_turn_out_to_be_less_urgent_and_never_more() -> None:
    state: QueueState[str] = QueueState()
    for key, asked, at_most, expected in (("a", 10, 5, 5), ("b", 3, 5, 3), ("c", 10, None, 10)):
        state.add(key, 0.0)
        state.take(0.0)
        state.add(key, 1.0, priority=asked)
        assert state.done(key, 2.0, at_most) == (2.0, True)
        assert state.ready_by_priority() == {expected: 1}
        assert state.take(2.0) == (key, expected, 1.0)
        assert state.done(key, 3.0, at_most) == (1.0, False)
