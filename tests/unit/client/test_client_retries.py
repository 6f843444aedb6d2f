from __future__ import annotations

import itertools

import pytest

from kopylite.client.retries import MAX_FAILURES, MAX_WAITS, Retries, retry_after
from kopylite.errors import ConnectionFailed, RequestTimeout, StreamBroken
from kopylite.testing.clock import VirtualClock

WAIT = {"Retry-After": "1"}


def test_the_wait_comes_from_header_or_body() -> None:
    assert retry_after({"Retry-After": "7"}) == 7
    assert retry_after({}, b'{"kind":"Status","details":{"retryAfterSeconds":3}}') == 3
    assert retry_after({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}) is None
    assert retry_after({}, b"<html>") is None
    assert retry_after({}, b'{"details":null}') is None
    assert retry_after({}, b'{"details"') is None


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_refusal_that_asks_to_wait_is_sent_again_whatever_the_verb(method: str, status: int) -> None:
    delay = Retries(method, 30, VirtualClock()).after_answer(status, WAIT, b"")
    assert delay is not None
    assert 1 <= delay <= 1.1


def test_without_a_wait_or_with_another_status_an_answer_stands() -> None:
    retries = Retries("GET", 30, VirtualClock())
    assert retries.after_answer(503, {}, b"<html>") is None
    assert retries.after_answer(409, WAIT, b"") is None
    assert retries.after_answer(404, WAIT, b"") is None


def test_waits_are_counted() -> None:
    retries = Retries("POST", 1e6, VirtualClock())
    delays = [retries.after_answer(429, WAIT, b"") for _ in range(MAX_WAITS + 1)]
    assert None not in delays[:MAX_WAITS]
    assert delays[-1] is None


def test_a_wait_of_nothing_is_still_a_pause() -> None:
    delay = Retries("GET", 30, VirtualClock()).after_answer(429, {"Retry-After": "0"}, b"")
    assert delay is not None
    assert delay > 0


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    clock = VirtualClock()
    retries = Retries("GET", 10, clock)
    assert retries.after_answer(429, {"Retry-After": "11"}, b"") is None
    clock.advance(9.5)
    assert retries.after_answer(429, WAIT, b"") is None
    assert retries.remaining() == pytest.approx(0.5)
    clock.advance(5)
    assert retries.remaining() > 0  # 0 would mean: no limit


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "PUT", "DELETE"])
def test_a_refused_connection_is_tried_again_with_growing_delays(method: str) -> None:
    retries = Retries(method, 30, VirtualClock())
    delays = [retries.after_failure(ConnectionFailed("")) for _ in range(MAX_FAILURES + 1)]
    assert delays[-1] is None
    assert all(a is not None and b is not None and a < b for a, b in itertools.pairwise(delays[:-1]))


def test_a_broken_connection_is_tried_again_for_reads_only() -> None:
    assert Retries("GET", 30, VirtualClock()).after_failure(StreamBroken("")) is not None
    for method in ("POST", "PATCH", "PUT", "DELETE"):
        assert Retries(method, 30, VirtualClock()).after_failure(StreamBroken("")) is None
    assert Retries("GET", 30, VirtualClock()).after_failure(RequestTimeout("")) is None


def test_new_credentials_are_tried_once() -> None:
    retries = Retries("GET", 30, VirtualClock())
    assert retries.after_unauthorized()
    assert not retries.after_unauthorized()
