"""The object as it is read and written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given

from kopylite.errors import StreamBroken
from kopylite.leaderelection.lease import MOST_TRANSITIONS, Lease, absent, micro_time
from tests.hostile import hostile

SPEC = {"strategy": "OldestEmulationVersion", "preferredHolder": "x", "leaseTransitions": 4, "acquireTime": "t"}


def lease(spec: Any, **metadata: Any) -> Lease:
    return Lease.of(json.dumps({"metadata": {"name": "a", "resourceVersion": "7", **metadata}, "spec": spec}).encode())


def test_what_others_keep_in_a_lease_stays() -> None:
    found = lease(SPEC, labels={"by": "hand"}).labelled({"of": "us"})
    wish = found.written(holder="one", duration=3, acquired="t", renewed="u", transitions=5)
    assert wish.wire["spec"] == SPEC | {
        "holderIdentity": "one", "leaseDurationSeconds": 3, "acquireTime": "t", "renewTime": "u", "leaseTransitions": 5,
    }  # fmt: skip
    assert wish.wire["metadata"]["labels"] == {"by": "hand", "of": "us"}
    assert (wish.version, wish.holder, wish.transitions) == ("7", "one", 5)


def test_labels_that_a_lease_has_are_not_set_again_and_others_are_added() -> None:
    found = lease(SPEC, labels={"by": "hand", "of": "us"})
    assert found.labelled({}) is found
    assert found.labelled({"of": "us"}) is found
    assert found.labelled({"of": "them"}).wire["metadata"]["labels"] == {"by": "hand", "of": "them"}
    for broken in ({}, {"labels": None}, {"labels": "x"}):
        assert lease(SPEC, **broken).labelled({"of": "us"}).wire["metadata"]["labels"] == {"of": "us"}
    assert lease(SPEC, labels="x").labelled({}).wire["metadata"]["labels"] == "x"
    assert found.wire["metadata"]["labels"] == {"by": "hand", "of": "us"}, "what was read stays as it was"


def test_labels_and_such_are_no_news_and_all_else_is() -> None:
    one = lease(SPEC)
    assert one.record == lease(SPEC | {"strategy": "other"}, labels={"a": "b"}, resourceVersion="9").record
    for news in ("holderIdentity", "acquireTime", "renewTime"):
        assert one.record != lease(SPEC | {news: "other"}).record
    for news in ("leaseDurationSeconds", "leaseTransitions"):
        assert one.record != lease(SPEC | {news: 77}).record


def test_given_back_is_not_the_same_as_taken_away() -> None:
    given_back = {"leaseDurationSeconds": 1, "acquireTime": "t", "renewTime": "t"}
    assert lease(given_back).released
    assert not lease(given_back | {"leaseDurationSeconds": 15}).released, "somebody took the holder out"
    assert not lease(given_back | {"holderIdentity": "one"}).released
    assert lease(None).unused
    assert not lease(given_back).unused


def test_one_that_does_not_exist_is_created_and_transitions_do_not_overflow() -> None:
    wish = absent("a", "b").written(holder="one", duration=3, acquired="", renewed="", transitions=MOST_TRANSITIONS + 1)
    assert (wish.version, wish.transitions) == ("", MOST_TRANSITIONS)


def test_times_have_six_digits() -> None:
    assert micro_time(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00.000000Z"


WHOLE = {
    "metadata": {"name": "a", "resourceVersion": "7", "labels": {"a": "b"}},
    "spec": SPEC | {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "u"},
}


@given(hostile(WHOLE))
def test_any_bytes_are_a_lease_that_can_be_written_back_or_told_of(body: bytes) -> None:
    try:
        found = Lease.of(body)
    except StreamBroken:
        return
    assert found.version
    assert isinstance(found.holder, str)
    assert found.duration >= 0
    hash(found.record)
    found.labelled({"of": "us"}).written(holder="x", duration=1, acquired="", renewed="", transitions=1)
