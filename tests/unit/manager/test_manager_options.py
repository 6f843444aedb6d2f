"""How an App is run, and what is refused before anything is."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kopylite.errors import UsageError
from kopylite.manager import Options


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 0}, {"workers": 10**9}, {"workers": True}, {"workers": 1.5}, {"workers": "8"},
        {"grace_period": -1}, {"grace_period": math.nan}, {"grace_period": math.inf}, {"grace_period": "30s"},
        {"connect_timeout": -0.1}, {"connect_timeout": None},
        {"freeze_garbage": 1}, {"freeze_garbage": None},
        {"shards": -1}, {"shards": True}, {"shards": "two"}, {"shards": 10**9},
        {"leader_election": "yes"}, {"leader_election": 0},
        {"webhook_manage": "no"},
        {"webhook_url": "http://hooks.example.com"}, {"webhook_url": "hooks.example.com"},
        {"lease_duration": 0}, {"lease_duration": 10, "renew_deadline": 10}, {"renew_deadline": 1, "retry_period": 1},
        {"namespaces": ("",)}, {"namespaces": "shop"}, {"namespaces": ("shop",), "namespaces_labelled": "a=b"},
        {"namespaces_labelled": "a in"},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_where_it_is_written(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        Options(**options)
    assert any(name.removesuffix("_labelled").replace("_", " ").split()[0] in str(raised.value) for name in options)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"workers": 1}, {"grace_period": 0}, {"connect_timeout": 0.0}, {"shards": 0}, {"shards": 2},
        {"leader_election": False}, {"freeze_garbage": True}, {"webhook_url": "https://hooks.example.com:9443"},
        {"lease_name": "shop"}, {"lease_duration": 3, "renew_deadline": 2, "retry_period": 0.1},
        {"namespaces": ("shop", "team-*")}, {"namespaces_labelled": {"tier": "prod"}},
    ],
)  # fmt: skip
def test_what_does_is_kept_as_it_is(options: dict[str, Any]) -> None:
    made = Options(**options)
    assert all(getattr(made, name) == value for name, value in options.items())


def test_the_scope_is_all_namespaces_unless_some_are_named() -> None:
    assert not Options().scope.limited
    assert Options(namespaces=("shop",)).scope.limited
    assert Options(namespaces_labelled={"tier": "prod"}).scope.limited
