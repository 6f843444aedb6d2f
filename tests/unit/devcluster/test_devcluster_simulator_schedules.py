"""Cron schedules beside a slow search of every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kopylite.apiserver.builtin.cron import schedule_problem
from kopylite.devcluster.simulator.schedules import Schedule

NOON = datetime(2024, 2, 28, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("* * * * *", "2024-02-28T12:01:00"),
        ("*/15 * * * *", "2024-02-28T12:15:00"),
        ("0 0 * * *", "2024-02-29T00:00:00"),
        ("@hourly", "2024-02-28T13:00:00"),
        ("@every 90s", "2024-02-28T12:02:00"),
        ("0 0 29 2 *", "2024-02-29T00:00:00"),
        ("0 0 29 FEB ?", "2024-02-29T00:00:00"),
        ("30 9 * * mon-fri", "2024-02-29T09:30:00"),
        ("0 0 1 * sun", "2024-03-01T00:00:00"),
        ("0 12 28 2 *", "2025-02-28T12:00:00"),
        ("5/20 12 * * *", "2024-02-28T12:05:00"),
    ],
)
def test_the_next_time(text: str, due: str) -> None:
    assert schedule_problem(text) == ""
    assert Schedule.parse(text).after(NOON) == datetime.fromisoformat(due).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["59 23 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_what_never_comes_is_none(text: str) -> None:
    assert Schedule.parse(text).after(NOON) is None


def test_it_looks_as_far_as_to_the_end_of_the_fifth_year() -> None:
    sunday = datetime(2034, 12, 31, tzinfo=UTC)
    assert Schedule.parse("0 0 31 12 */7").after(datetime(2029, 1, 2, tzinfo=UTC)) == sunday
    assert Schedule.parse("0 0 31 12 */7").after(datetime(2028, 12, 31, 1, tzinfo=UTC)) is None


FIELD = st.sampled_from(["*", "*/7", "3", "1-5", "2,4", "1-6/2"])


@given(st.tuples(FIELD, FIELD, FIELD, FIELD, FIELD), st.integers(0, 60 * 24 * 40))
@example(("*", "*", "3", "2,4", "*/7"), 0)
def test_it_is_the_first_minute_that_fits(fields: tuple[str, ...], later: int) -> None:
    schedule, begin = Schedule.parse(" ".join(fields)), NOON + timedelta(minutes=later)
    found = schedule.after(begin)
    if found is None:  # the third of a month that is a Sunday, and in April
        days = (begin + timedelta(days=offset) for offset in range(1, 5 * 366))
        assert not any(fits(schedule, day.replace(hour=3, minute=3)) for day in days)
        return
    assert found > begin
    assert fits(schedule, found)
    minute = begin.replace(second=0) + timedelta(minutes=1)
    for _ in range(3000):
        if minute >= found:
            break
        assert not fits(schedule, minute)
        minute += timedelta(minutes=1)


def fits(schedule: Schedule, moment: datetime) -> bool:
    days = moment.day in schedule.days, moment.isoweekday() % 7 in schedule.weekdays
    on = all(days) if schedule.any_day else any(days)
    in_month = moment.month in schedule.months
    return moment.minute in schedule.minutes and moment.hour in schedule.hours and in_month and on
