"""When a process that has ended by itself is begun again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kopylite.supervision.restarts import FIRST_PAUSE, GIVE_UP, LONGEST_PAUSE, STEADY, Restarts


def test_the_pause_doubles_and_a_process_that_never_works_for_long_is_given_up() -> None:
    restarts = Restarts()
    assert [restarts.ended(0.1) for _ in range(GIVE_UP)] == [1.0, 2.0, 4.0, 8.0, None]
    assert restarts.total == GIVE_UP - 1


def test_after_a_steady_run_it_counts_from_the_beginning() -> None:
    restarts = Restarts()
    for _ in range(GIVE_UP - 1):
        restarts.ended(0.1)
    assert restarts.ended(STEADY) == FIRST_PAUSE
    assert restarts.ended(0.1) == 2 * FIRST_PAUSE


def test_one_that_could_not_be_begun_is_no_end_and_is_tried_for_ever() -> None:
    restarts = Restarts()
    pauses = [restarts.refused() for _ in range(2000)]
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert set(pauses[6:]) == {LONGEST_PAUSE}
    assert restarts.ended(0.1) == FIRST_PAUSE
    assert restarts.refused() == FIRST_PAUSE, "it was begun meanwhile"


@given(st.lists(st.floats(0, 10 * STEADY), max_size=40))
def test_pauses_are_bounded_and_only_ends_in_a_row_are_given_up(runs: list[float]) -> None:
    restarts = Restarts()
    for i, ran in enumerate(runs):
        pause = restarts.ended(ran)
        if pause is None:
            assert i + 1 >= GIVE_UP
            assert all(run < STEADY for run in runs[i - GIVE_UP + 2 : i + 1])
            return
        assert FIRST_PAUSE <= pause <= LONGEST_PAUSE
    assert restarts.total == len(runs)
