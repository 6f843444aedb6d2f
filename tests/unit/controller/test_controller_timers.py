from __future__ import annotations

import itertools
import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.controller import Timer
from kopylite.controller.timers import SWEEP_SLACK, DueTimes, TimedObject, seconds_of
from kopylite.errors import RegistrationError
from kopylite.reconcile import Request

A = Request("default", "a")
TIMES = st.floats(0, 1e9)
TIMERS = st.builds(Timer, every=st.floats(0.1, 1e6), start_after=st.floats(0, 1e6), jitter=st.floats(0, 1))


@given(TIMERS, TIMES, st.text(max_size=20), TIMES)
def test_the_next_time_is_after_now_and_no_later_than_one_period_and_on_the_grid(
    timer: Timer, created: float, uid: str, now: float
) -> None:
    first, due = timer.first(created, uid), timer.after(created, uid, now)
    assert created + timer.start_after <= first <= created + timer.start_after + timer.jitter * timer.every + 1e-3
    assert due > now
    assert due == first or due <= now + timer.every + 1e-3
    periods = (due - first) / timer.every
    assert periods == pytest.approx(round(periods), abs=1e-3)


def test_where_rounding_would_make_the_next_time_this_one_it_is_the_one_after() -> None:
    now, every = 146466.59317329043, 1 / 3
    assert Timer(every=every, jitter=0.0).after(1000.9265066237858, "u", now) == pytest.approx(now + every)


@given(TIMERS, st.lists(st.floats(0.0, 3.0), max_size=30))
def test_runs_that_take_long_do_not_move_the_schedule_and_none_comes_twice(timer: Timer, lengths: list[float]) -> None:
    schedule, found, now = DueTimes(timer), TimedObject("u", 1000.0), 1000.5
    runs: list[float] = []
    for length in lengths:
        due = schedule.due(A, found, now)
        now = max(now, due)
        assert schedule.due(A, found, now) == due, "asking changes nothing"
        runs.append(due)
        now += length * timer.every
        schedule.done(A, found, now)
    assert runs == sorted(set(runs))
    again = DueTimes(timer)  # another leader
    if runs and now > timer.first(1000.0, "u") + 30.0:
        assert again.due(A, found, now) == pytest.approx(schedule.due(A, found, now))


def test_objects_that_were_made_at_once_are_spread_and_a_start_among_old_ones_runs_none_at_once() -> None:
    timer, now = Timer(every=100.0, jitter=1.0), 1e9
    schedule = DueTimes(timer)
    uids = [str(UUID(int=random.Random(i).getrandbits(128))) for i in range(1000)]
    due = [schedule.due(Request("n", uid), TimedObject(uid, now - 5000.0), now) - now for uid in uids]
    assert min(due) > 0
    assert all(50 < sum(first <= one < first + 10 for one in due) < 150 for first in range(0, 100, 10))


def test_a_new_object_has_its_first_run_at_once_or_after_its_delay_and_a_new_one_of_its_name_too() -> None:
    schedule = DueTimes(Timer(every=60.0, jitter=0.0))
    assert schedule.due(A, TimedObject("u", 1000.0), 1001.5) == 1000.0
    assert schedule.done(A, TimedObject("u", 1000.0), 1002.0) == 1060.0
    assert schedule.due(A, TimedObject("other", 1005.0), 1006.0) == 1005.0
    assert DueTimes(Timer(every=60.0, start_after=10.0, jitter=0.0)).due(A, TimedObject("u", 1000.0), 1001.0) == 1010.0
    assert DueTimes(Timer(every=60.0, jitter=0.0)).due(A, TimedObject("u", 1000.0), 1045.0) == 1060.0, "not news"


def test_where_the_servers_clock_is_ahead_a_new_object_has_its_runs_all_the_same() -> None:
    timer, now, found = Timer(every=60.0, jitter=0.5), 1000.0, TimedObject("u", 1300.0)
    schedule = DueTimes(timer)
    runs = []
    for _ in range(5):
        now = schedule.due(A, found, now)
        runs.append(now)
        assert schedule.done(A, found, now) > now
    assert 1000.0 <= runs[0] <= 1030.0
    assert [later - earlier for earlier, later in itertools.pairwise(runs)] == pytest.approx([60.0] * 4)
    assert DueTimes(timer).done(A, TimedObject("v", 900.0), 1000.0) > 1000.0, "it was swept away meanwhile"


def test_nothing_is_kept_of_objects_that_are_gone_or_out_of_sight() -> None:
    schedule = DueTimes(Timer(every=10.0))
    for i in range(10 * SWEEP_SLACK):
        schedule.due(Request("n", str(i)), TimedObject(str(i), float(i)), float(i))
    assert len(schedule) < 2 * SWEEP_SLACK
    for i in range(10 * SWEEP_SLACK):
        schedule.due(Request("n", str(i)), TimedObject(str(i), 1e6), 1e6)
    assert len(schedule) == 10 * SWEEP_SLACK, "all of these are still to come"
    schedule.due(A, TimedObject("u", 1e6), 1e6)
    schedule.forget(A)
    schedule.forget(A)
    assert A not in schedule._due


def test_times_are_read_and_what_is_none_is_now() -> None:
    assert seconds_of("1970-01-01T00:01:00Z", 5.0) == 60.0
    assert [seconds_of(text, 5.0) for text in ("", "None", "yesterday", "9" * 40)] == [5.0] * 4


@pytest.mark.parametrize(
    "options",
    [
        {"every": 0},
        {"every": -1},
        {"every": "60"},
        {"every": 1, "start_after": -1},
        {"every": 1, "jitter": 1.5},
        {"every": 1, "jitter": -0.1},
        {"every": 1, "jitter": "0.1"},
    ],
)
def test_what_is_no_timer_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match="timer: "):
        Timer(**options)
