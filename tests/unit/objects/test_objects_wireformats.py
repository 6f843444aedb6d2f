from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from kopylite.objects.wireformats import (
    format_duration,
    format_time,
    parse_duration,
    read_bytes,
    read_decimal,
    write_number,
)


@pytest.mark.parametrize(
    ("text", "microseconds", "canonical"),
    [
        ("0", 0, "0s"),
        ("1h30m", 5_400_000_000, "1h30m0s"),
        ("-1.5s", -1_500_000, "-1.5s"),
        ("+250ms", 250_000, "250ms"),
        ("1.5ms", 1500, "1.5ms"),
        ("7us", 7, "7µs"),
        ("7µs", 7, "7µs"),
        (".5s", 500_000, "500ms"),
        ("1.s", 1_000_000, "1s"),
        ("999ns", 0, "0s"),
        ("100h", 360_000_000_000, "100h0m0s"),
        ("1m", 60_000_000, "1m0s"),
    ],
)
def test_durations_are_read_and_printed_as_go_does(text: str, microseconds: int, canonical: str) -> None:
    assert parse_duration(text) == timedelta(microseconds=microseconds)
    assert format_duration(timedelta(microseconds=microseconds)) == canonical


@pytest.mark.parametrize("text", ["", "-", "1", "1d", "h", "1h ", "PT5S", "1h30", "1..5s", "--1s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


def test_times_are_utc_with_a_z() -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 120000, tzinfo=timezone(timedelta(hours=-5)))
    assert format_time(moment) == "2026-01-31T17:00:00.120000Z"
    assert format_time(moment, "seconds") == "2026-01-31T17:00:00Z"
    assert format_time(datetime(2026, 1, 31, tzinfo=UTC)) == "2026-01-31T00:00:00Z"


@pytest.mark.parametrize("text", ["!", "YQ", "a-_b", "YQ==\n!"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        read_bytes(text)


@pytest.mark.parametrize("value", [1.5, 1, True, "x", "1,5"])
def test_a_decimal_is_a_text(value: Any) -> None:
    with pytest.raises(ValueError, match="must be a"):
        read_decimal(value)


@pytest.mark.parametrize(("value", "written"), [(1.0, "1"), (-0.0, "0"), (1.5, "1.5"), (1e300, "1e+300"), (7, "7")])
def test_whole_floats_are_written_as_integers(value: float, written: str) -> None:
    assert repr(write_number(value)) == written
