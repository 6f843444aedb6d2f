"""What is promised for each kind of user's function that fails."""

from __future__ import annotations

import msgspec
import pytest

from kopylite.boundary import policies
from kopylite.boundary.policies import GuardPolicy

POLICIES = {name: value for name, value in vars(policies).items() if isinstance(value, GuardPolicy)}
AGAIN = {"MAP", "PERIODIC", "CHANNEL", "TASK"}


def test_what_loses_something_when_it_is_left_is_called_again_and_nothing_else_is() -> None:
    assert {name for name, policy in POLICIES.items() if policy.first_retry is not None} == AGAIN


@pytest.mark.parametrize("name", sorted(AGAIN))
def test_the_pauses_begin_short_and_end_at_a_minute(name: str) -> None:
    policy = POLICIES[name]
    assert policy.first_retry is not None
    assert 0 < policy.first_retry <= 1.0
    assert policy.longest_retry == 60.0


def test_every_kind_has_a_word_of_its_own_and_says_what_follows() -> None:
    words = [policy.what for policy in POLICIES.values()]
    assert len(set(words)) == len(words) == 9
    assert all(policy.then and not policy.then.endswith((".", " ")) for policy in POLICIES.values())
    assert "/webhook" in policies.WEBHOOK.then, "the page that helps"


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        policies.MAP.what = "x"  # type: ignore[misc]
    assert msgspec.structs.replace(policies.MAP, first_retry=None) != policies.MAP
