from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from typing import Any

import pytest

from kopylite.errors import UsageError
from kopylite.objects import ObjectKey, Unstructured
from kopylite.reconcile import Request, Result, Retry


def test_a_delay_is_seconds_or_a_timedelta() -> None:
    assert Result(requeue_after=1.5).delay == Result(requeue_after=timedelta(milliseconds=1500)).delay == 1.5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("30s", "seconds as a number"),
        (-1, "has passed"),
        (timedelta(seconds=-1), "has passed"),
        (timedelta.min, "has passed"),
        (None, "a timedelta"),
        (float("nan"), "a finite number"),
        (float("inf"), "a finite number"),
        (-float("inf"), "a finite number"),
        (True, "a finite number"),
    ],
)
def test_a_delay_that_would_silently_mean_never_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Result(requeue_after=wrong)


@pytest.mark.parametrize("huge", [1e300, 10**400, timedelta.max])
def test_a_delay_of_centuries_counts_as_32_years(huge: Any) -> None:
    assert Result(requeue_after=huge).delay == 1e9


@pytest.mark.parametrize(
    "wrong", [{"requeue": "no"}, {"requeue": 5}, {"priority": 1.5}, {"priority": True}, {"hold": True}, {"hold": 1}]
)
def test_the_other_fields_are_checked_as_well(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Result(**wrong)


@pytest.mark.parametrize("wrong", ["a", None, 5, ("ns", "a"), Result()])
def test_what_has_no_namespace_and_name_makes_no_request(wrong: Any) -> None:
    with pytest.raises(UsageError, match="no namespace and name"):
        Request.of(wrong)


@pytest.mark.parametrize("wrong", [None, 5, "ns/a", Request("ns", "a"), Unstructured(metadata={"name": "a"}), Result()])
def test_a_function_that_names_keys_returns_a_list_of_them(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"as in \[Request\(namespace, name\)\], and \[\] for none, not "):
        Request.all_of(wrong)
    assert (
        Request.all_of(iter([ObjectKey("ns", "a")])) == Request.all_of({Request("ns", "a"): 1}) == [Request("ns", "a")]
    )
    assert Request.all_of(()) == []


@pytest.mark.parametrize("wrong", [0, -1, True, "10", float("nan"), timedelta(0), None])
def test_a_retry_without_a_time_is_refused_where_it_is_raised(wrong: Any) -> None:
    with pytest.raises(UsageError, match="after"):
        Retry("no Kafka", after=wrong)


def test_a_retry_survives_copies_and_processes() -> None:
    error = pickle.loads(pickle.dumps(copy.copy(Retry("no Kafka", after=timedelta(seconds=5), hold=False))))
    assert (str(error), error.result) == ("no Kafka", Result(requeue_after=5.0))
