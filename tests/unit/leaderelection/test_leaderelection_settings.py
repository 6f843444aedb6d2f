"""The times of an election are checked when they are given."""

from __future__ import annotations

import pytest

from kopylite.errors import UsageError
from kopylite.leaderelection.settings import LeaseSettings


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"lease_duration": 10, "renew_deadline": 10}, "has to be more than renew_deadline"),
        ({"renew_deadline": 2, "retry_period": 2}, "more than 1.2 times retry_period"),
        ({"lease_duration": 30.5}, "whole seconds"),
        ({"retry_period": 0}, "retry_period must be above 0"),
        ({"lease_duration": float("nan")}, "lease_duration"),
        ({"name": ""}, "needs the name of its Lease"),
        ({"namespace": ""}, "needs the namespace of its Lease"),
    ],
)
def test_what_cannot_work_is_refused(times: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        LeaseSettings(**({"name": "a", "namespace": "default"} | times))  # type: ignore[arg-type]


def test_a_leader_has_two_tries_before_its_deadline_each_of_a_second_at_least() -> None:
    assert LeaseSettings(name="a", namespace="b").request_timeout == 5
    assert LeaseSettings(name="a", namespace="b", renew_deadline=1.5, retry_period=0.2).request_timeout == 1
    assert str(LeaseSettings(name="a", namespace="b")) == "b/a"


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a-", "a..b", "a b", "a\nb", "ä", "a" * 254])
def test_a_lease_has_a_name_that_an_object_may_have(name: str) -> None:
    with pytest.raises(UsageError, match=r"^lease name '.*lease_name \(--lease-name\)"):
        LeaseSettings(name=name, namespace="b")
    with pytest.raises(UsageError, match=r"^lease namespace '"):
        LeaseSettings(name="a", namespace=name)
    with pytest.raises(UsageError, match=r"^lease namespace 'a\.b'"):
        LeaseSettings(name="a.b", namespace="a.b")
