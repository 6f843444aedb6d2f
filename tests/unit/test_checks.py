"""Options are refused where they are written, by their names."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kopylite.checks import (
    LARGEST,
    MOST_SHARDS,
    MOST_WORKERS,
    require_count,
    require_flag,
    require_number,
    require_seconds,
    require_shards,
    require_text,
    require_workers,
)
from kopylite.errors import RegistrationError, UsageError


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("not even that")


class Long:
    def __repr__(self) -> str:
        return "x" * 10_000


ODD = [None, "5", b"5", [5], True, math.nan, Unspeakable(), Long(), object]


@pytest.mark.parametrize("check", [require_count, require_seconds, require_number, require_shards])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_number_is_refused_with_the_name_of_the_option_in_few_words(
    check: Callable[..., None], odd: Any
) -> None:
    with pytest.raises(RegistrationError) as raised:
        check(odd, "workers")
    assert str(raised.value).startswith("workers ")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (require_count, (0, 1, 10**30), (-1, 1.0, math.inf)),
        (lambda value, option: require_count(value, option, least=1), (1, 2), (0, -5)),
        (require_seconds, (0.001, 1, LARGEST), (0, -1, math.inf, -math.inf, LARGEST * 1.01, 10**400)),
        (lambda value, option: require_seconds(value, option, zero=True), (0, 0.0, 5), (-0.001, math.nan)),
        (require_number, (0.5, 3), (0, -3)),
        (require_shards, (0, 1, MOST_SHARDS), (-1, MOST_SHARDS + 1, 2.0)),
        (require_workers, (1, MOST_WORKERS), (0, MOST_WORKERS + 1, 10**400)),
        (require_text, ("", "a"), (None, b"a", 5)),
        (require_flag, (True, False), (None, 0, 1, "true")),
    ],
)
def test_the_ends_of_each_range(check: Callable[[Any, str], None], good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    for value in good:
        check(value, "it")
    for value in bad:
        with pytest.raises(RegistrationError):
            check(value, "it")


def test_a_timedelta_is_refused_with_what_to_write_instead() -> None:
    with pytest.raises(RegistrationError, match="timeout is a number of seconds, not a timedelta; write 90"):
        require_seconds(timedelta(minutes=1.5), "timeout")


def test_the_error_is_the_one_that_is_asked_for() -> None:
    with pytest.raises(UsageError) as raised:
        require_count(0, "workers", least=1, error=UsageError)
    assert type(raised.value) is UsageError
