from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kopylite.objects.times import Duration, MicroTime, Time

zones = st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)
durations = st.timedeltas(timedelta(days=-90_000), timedelta(days=90_000))


def written(kind: Any, value: Any) -> Any:
    return json.loads(TypeAdapter(kind).dump_json(value))


def read(kind: Any, text: Any) -> Any:
    return TypeAdapter(kind).validate_python(text)


@given(moments)
def test_a_time_has_whole_seconds_in_utc_and_is_cut_not_rounded(moment: datetime) -> None:
    text = written(Time, moment)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    assert read(Time, text) == moment.replace(microsecond=0)


@given(moments)
def test_a_micro_time_has_six_digits_and_loses_nothing(moment: datetime) -> None:
    text = written(MicroTime, moment)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", text)
    assert read(MicroTime, text) == moment


@given(durations)
def test_a_duration_reads_back_as_it_was(duration: timedelta) -> None:
    text = written(Duration, duration)
    assert isinstance(text, str)
    assert read(Duration, text) == duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m0s", 5400), ("1.5h", 5400), ("-2s", -2), ("0", 0), ("250ms", 0.25)]
)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert read(Duration, text) == timedelta(seconds=seconds)


def test_a_duration_is_written_as_go_writes_it() -> None:
    assert written(Duration, timedelta(hours=1, minutes=30)) == "1h30m0s"


@pytest.mark.parametrize("text", ["", "1 hour", "h", "PT1H", "1h "])
def test_what_go_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        read(Duration, text)


@pytest.mark.parametrize("kind", [Time, MicroTime, Duration])
def test_no_value_stays_none(kind: Any) -> None:
    assert written(kind | None, None) is None


def test_python_keeps_the_value_and_only_json_the_text() -> None:
    moment = datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)
    assert TypeAdapter(Time).dump_python(moment) == moment
