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


def lease(version: int = 1, **spec: Any) -> Lease:
    return stored({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}, version)


def held(by: str, seconds: int = 15, **spec: Any) -> Lease:
    return lease(holderIdentity=by, leaseDurationSeconds=seconds, acquireTime="x", renewTime="x", **spec)


def given_back() -> Lease:
    return lease(holderIdentity="", leaseDurationSeconds=1, acquireTime="x", renewTime="x")


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


def test_nothing_is_claimed_before_a_look_nor_what_is_held_before_it_has_run_out() -> None:
    candidate = Candidate("me", SETTINGS)
    assert not candidate.may_claim(1e9)
    candidate.saw(held("other"), 100.0)
    assert not candidate.may_claim(114.9)
    assert candidate.may_claim(115.0)
    candidate.saw(held("other"), 115.0)
    assert candidate.may_claim(115.0), "it is as it was, so nobody has renewed it"


NEW = [
    (lease(), 0.0),  # as manifests bring it
    (given_back(), 0.0),
    (held("other"), 15.0),
    (held("other", 40), 40.0),
    (held("other", 1), 15.0),  # whatever it says, one like us has this time
    (held(""), 15.0),  # somebody took its holder out
    (None, 0.0),  # is made by a claim that names nobody
]


@pytest.mark.parametrize(("found", "seconds"), NEW)
def test_how_long_a_lease_is_left_alone_when_it_is_seen_first(found: Lease | None, seconds: float) -> None:
    candidate = Candidate("me", SETTINGS)
    candidate.saw(found, 100.0)
    assert candidate.free_at == 100.0 + seconds


CHANGED = [
    (held("other", 40), held("third"), 40.0),  # who led by what was there before, may not know yet
    (held("other", 40), held(""), 40.0),
    (held("other", 40), lease(), 40.0),
    (lease(), held("third", 30), 30.0),
    (held("other", 40), given_back(), 0.0),  # by its holder, who has stopped
    (lease(), None, 4.0),  # a leader makes it anew at its next renewal
    (held("", 20), lease(), 10.0),  # what was left alone until 110 still is
    (given_back(), lease(), 0.0),
]


@pytest.mark.parametrize(("before", "after", "seconds"), CHANGED)
def test_how_long_a_lease_that_has_changed_is_left_alone(before: Lease, after: Lease | None, seconds: float) -> None:
    candidate = Candidate("me", SETTINGS)
    candidate.saw(before, 90.0)
    candidate.saw(after, 100.0)
    assert candidate.free_at == 100.0 + seconds


def test_a_claim_says_who_since_when_and_after_how_many_others() -> None:
    candidate, stamp = Candidate("me", SETTINGS), "2026-01-01T00:00:00.000000Z"
    candidate.saw(held("other", leaseTransitions=3), 0.0)
    assert candidate.claim(20.0, START).record == ("me", 15, stamp, stamp, 4)
    candidate.saw(lease(), 20.0)
    assert candidate.claim(20.0, START).record == ("me", 15, stamp, stamp, 0), "nobody had it before"
    candidate.saw(held("me", leaseTransitions=3), 20.0)
    assert candidate.claim(40.0, START).record == ("me", 15, "x", stamp, 3), "a renewal"
    candidate.saw(lease(holderIdentity="me"), 40.0)
    assert candidate.claim(60.0, START).record == ("me", 15, stamp, stamp, 0), "edited by hand"


def test_where_there_is_no_lease_a_claim_names_nobody_and_a_leader_makes_its_own_anew() -> None:
    candidate = Candidate("me", SETTINGS)
    candidate.saw(None, 0.0)
    claim = candidate.claim(0.0, START)
    assert (claim.holder, claim.version, claim.wire["metadata"]) == ("", "", {"name": "a", "namespace": "b"})
    candidate.sends(claim)
    assert not candidate.unsettled, "nobody leads by it"
    assert not candidate.wrote(claim, stored(claim.wire, 1), 0.0, 0.1)
    assert candidate.free_at == 15.1
    first = leader()
    first.saw(None, 5.0)
    assert not first.deposed
    claim = first.claim(5.0, START)
    assert (claim.holder, claim.version) == ("me", "")
    first.sends(claim)
    assert not first.wrote(claim, stored(claim.wire, 3), 11.0, 11.1), (
        "that prolongs nothing: who knows when it was made"
    )


def test_a_leader_leads_until_its_deadline_and_is_deposed_by_any_other_name() -> None:
    candidate = leader()
    assert candidate.leads(9.99)
    assert not candidate.leads(10.0)
    assert not candidate.deposed
    deposed = leader()
    deposed.saw(held("other"), 1.0)
    assert deposed.deposed
    assert deposed.release(START) is None
    assert not deposed.may_claim(1.0)
    candidate.stopped()
    assert not candidate.leads(1.0)
    assert candidate.may_claim(1.0), "the Lease names us still, and nobody else can lead by it"


def test_what_was_sent_without_an_answer_is_ones_own_and_what_was_refused_is_not() -> None:
    candidate = Candidate("me", SETTINGS)
    candidate.saw(lease(), 0.0)
    wish = candidate.claim(0.0, START)
    candidate.sends(wish)
    candidate.saw(stored(wish.wire, 2), 5.0)
    assert (candidate.unsettled, candidate.may_claim(5.0)) == (True, True)
    candidate.refused(wish)
    assert (candidate.unsettled, candidate.may_claim(5.0)) == (False, False), "then it is of another one of our name"
    candidate.refused(wish)  # one that is remembered no more


def test_what_a_server_stores_otherwise_than_it_was_told_is_nobodys_own() -> None:
    candidate = Candidate("me", SETTINGS)
    candidate.saw(lease(), 0.0)
    wish = candidate.claim(0.0, START)
    candidate.sends(wish)
    changed = {**wish.wire, "spec": {**wish.wire["spec"], "renewTime": "2026-01-01T00:00:00Z"}}
    assert not candidate.wrote(wish, stored(changed, 2), 0.0, 0.1)
    assert not candidate.may_claim(0.1)


@pytest.mark.parametrize(
    ("now", "random", "pause"), [(0.0, 0.0, 2.0), (0.0, 0.5, 3.2), (14.0, 0.9, 1.0), (15.0, 0.5, 3.2)]
)
def test_the_next_look_comes_after_one_to_two_periods_or_when_the_lease_becomes_free(
    now: float, random: float, pause: float
) -> None:
    candidate = Candidate("me", SETTINGS)
    candidate.saw(held("other"), 0.0)
    assert candidate.look_in(now, random) == pytest.approx(pause)


def test_each_write_has_another_time_than_the_one_before_also_when_the_clock_stands_still() -> None:
    candidate = leader()
    known = candidate.known
    assert known is not None
    stamps = {known.renewed, candidate.claim(1.0, START).renewed}
    assert len(stamps) == 2
    assert candidate.claim(1.0, START + timedelta(seconds=1)).renewed == "2026-01-01T00:00:01.000000Z"
