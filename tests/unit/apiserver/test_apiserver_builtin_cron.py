"""Schedules: what can be used, and the parser's words for what cannot."""

from __future__ import annotations

import pytest

from kopylite.apiserver.builtin.cron import schedule_problem, time_zone_problem


@pytest.mark.parametrize(
    "schedule",
    ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@hourly", "@every 1h30m", "0 0 ? * 0", "5/10 * * * *"],
)
def test_good_schedules(schedule: str) -> None:
    assert schedule_problem(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("foo", "expected exactly 5 fields, found 1: [foo]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("TZ=UTC * * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        ("@never", "unrecognized descriptor: @never"),
    ],
)
def test_bad_schedules(schedule: str, problem: str) -> None:
    assert schedule_problem(schedule) == problem


def test_time_zones() -> None:
    assert time_zone_problem("Foo/Bar") == "unknown time zone Foo/Bar"
    assert "explicit time zone" in time_zone_problem("Local")
