"""What a candidate knows after its writes; that there are never two leaders is played in tests/properties."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kopylite.leaderelection import Candidate, Lease, LeaseSettings

SETTINGS = LeaseSettings(name="a", namespace="b", lease_duration=15, renew_deadline=10, retry_period=2)
START = datetime(2026, 1, 1, tzinfo=UTC)


def stored(wire: Any, version: int) -> Lease:
    return Lease.of(json.dumps({**wire, "metadata": {**wire["metadata"], "resourceVersion": str(version)}}).encode())


def leader() -> Candidate:
    """It leads since second 0."""
    candidate = Candidate("me", SETTINGS)
    free = {"metadata": {"name": "a", "namespace": "b"}, "spec": {}}
    candidate.saw(stored(free, 1), 0.0)
    wish = candidate.claim(0.0, START)
    candidate.sends(wish)
    assert candidate.wrote(wish, stored(wish.wire, 2), 0.0, 0.1)
    return candidate


def test_an_answered_write_settles_those_before_it_that_had_no_answer() -> None:
    candidate = leader()
    candidate.sends(candidate.claim(2.0, START + timedelta(seconds=2)))  # and its answer is lost
    given_back = candidate.release(START + timedelta(seconds=3))
    assert given_back is not None
    candidate.sends(given_back)
    assert candidate.unsettled
    assert not candidate.wrote(given_back, stored(given_back.wire, 3), 3.0, 3.1)
    assert not candidate.unsettled, "whatever was on its way had the version of before"


@pytest.mark.parametrize(("now", "pause"), [(1.0, 2.0), (6.0, 2.0), (8.0, 1.0), (9.0, 0.5)])
def test_after_a_renewal_that_failed_the_next_one_comes_sooner_as_the_deadline_comes_near(
    now: float, pause: float
) -> None:
    assert leader().renew_in(now, 0.5, failed=True) == pause


@pytest.mark.parametrize(
    ("now", "random", "pause"), [(0.0, 0.0, 1.8), (0.0, 1.0, 2.2), (0.5, 0.5, 1.5), (3.0, 0.0, 0.0)]
)
def test_a_renewal_comes_a_period_after_the_last_one_was_sent_more_or_less(
    now: float, random: float, pause: float
) -> None:
    assert leader().renew_in(now, random, failed=False) == pytest.approx(pause)
