from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kopylite.errors import UsageError
from kopylite.reconcile import Result


def test_a_delay_is_seconds_or_a_timedelta() -> None:
    assert Result(requeue_after=1.5).delay == Result(requeue_after=timedelta(milliseconds=1500)).delay == 1.5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("30s", "seconds as a number"), (-1, "has passed"), (timedelta(seconds=-1), "has passed"), (None, "a timedelta")],
)
def test_a_delay_that_would_silently_mean_never_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Result(requeue_after=wrong)
