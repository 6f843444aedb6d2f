from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.controller import outcome
from kopylite.controller.outcome import NextRun, Settlement, settle_error, settle_result
from kopylite.errors import (
    AlreadyOwned,
    ApplyConflict,
    BeingDeleted,
    Conflict,
    ConnectionFailed,
    DecodeError,
    GatewayTimeout,
    InternalError,
    Invalid,
    KindNotFound,
    NamespaceNotFound,
    NamespaceTerminating,
    NameStillTaken,
    NotFound,
    ReconcileTimeout,
    RequestTimeout,
    ServerTimeout,
    ServiceUnavailable,
    StreamBroken,
    SubresourceNotFound,
    TerminalError,
)
from kopylite.reconcile import Result, Retry


def earlier_owner() -> AlreadyOwned:
    error = AlreadyOwned("by one of the same name")
    error.earlier = True
    return error


def caused_by(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("result", [None, Result(), Result(requeue_after=0), Result(priority=3)])
def test_nothing_asked_for_is_success(result: Result | None) -> None:
    assert settle_result(result) is outcome.SUCCESS


@pytest.mark.parametrize("after", [30, 30.0, timedelta(seconds=30)])
def test_requeue_after_comes_before_requeue_and_forgets_failures(after: float | timedelta) -> None:
    settled = settle_result(Result(requeue_after=after, requeue=True, priority=7))
    assert settled == Settlement("requeue_after", NextRun.AFTER, 30.0, 7)


def test_requeue_backs_off() -> None:
    assert settle_result(Result(requeue=True)) == Settlement("requeue", NextRun.BACK_OFF)


@pytest.mark.parametrize("result", [5, "later", True, {}])
def test_what_is_no_result_is_the_programs_mistake(result: object) -> None:
    with pytest.raises(TypeError, match="Result or None"):
        settle_result(result)


async def returns_a_number(ctx: object, request: object) -> int:
    return 30


def test_what_is_no_result_is_told_with_the_function_that_returned_it() -> None:
    line = returns_a_number.__code__.co_firstlineno
    with pytest.raises(TypeError) as caught:
        settle_result(30, returns_a_number)
    assert f"returns_a_number at {__file__}:{line} returned 30" in str(caught.value)
    assert "Result(requeue_after=30)" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TerminalError("no"), outcome.TERMINAL),
        (DecodeError("spec.replicas"), outcome.REJECTED),
        (Conflict("newer"), outcome.CONFLICT),
        (ReconcileTimeout("300 s"), outcome.TIMEOUT),
        (NotFound("gone"), outcome.REFUSED),
        (NotFound("gone", request="GET /api/v1/nodes/a"), outcome.REFUSED),
        (NamespaceNotFound("no such namespace", request="POST /api/v1/namespaces/a/pods"), outcome.GONE),
        (NotFound("gone since it was read", request="PATCH /api/v1/nodes/a/status"), outcome.GONE),
        (NotFound("gone since it was read", request="PUT /api/v1/nodes/a"), outcome.GONE),
        (NotFound("gone since it was read", request="POST /api/v1/namespaces/a/pods/b/eviction"), outcome.GONE),
        (KindNotFound("no CRD"), outcome.REFUSED),
        (SubresourceNotFound("no status"), outcome.REFUSED),
        (ApplyConflict("owned by kubectl"), outcome.REFUSED),
        (NamespaceTerminating("the namespace goes"), outcome.GOING),
        (NameStillTaken("its namesake goes"), outcome.GOING),
        (BeingDeleted("the object goes"), outcome.GOING),
        (earlier_owner(), outcome.GOING),
        (AlreadyOwned("by another"), outcome.REFUSED),
        (StreamBroken("reset"), outcome.UNREACHED),
        (ConnectionFailed("refused"), outcome.UNREACHED),
        (RequestTimeout("no answer"), outcome.UNREACHED),
        (ServiceUnavailable("starting"), outcome.UNREACHED),
        (GatewayTimeout("too slow"), outcome.UNREACHED),
        (ServerTimeout("no storage"), outcome.UNREACHED),
        (InternalError("a load balancer's page", code=502), outcome.UNREACHED),
        (InternalError("a webhook failed"), outcome.REFUSED),
        (caused_by(RuntimeError("no bucket"), StreamBroken("reset")), outcome.UNREACHED),
        (caused_by(RuntimeError("a"), caused_by(KeyError("b"), ConnectionFailed("c"))), outcome.UNREACHED),
        (caused_by(RuntimeError("no bucket"), OSError("of another service")), outcome.CRASHED),
        (caused_by(TerminalError("never"), ConnectionFailed("refused")), outcome.TERMINAL),
        (caused_by(ReconcileTimeout("300 s"), StreamBroken("cancelled")), outcome.TIMEOUT),
        (ValueError("bug"), outcome.CRASHED),
        (asyncio.CancelledError(), outcome.CRASHED),
        (SystemExit(1), outcome.CRASHED),
    ],
    ids=repr,
)
def test_the_kind_of_exception_decides(error: BaseException, expected: Settlement) -> None:
    assert settle_error(error) is expected


def test_a_terminal_error_counts_anywhere_in_the_chain() -> None:
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = ValueError("middle")
    wrapped.__cause__.__cause__ = TerminalError("inner")
    assert settle_error(wrapped) is outcome.TERMINAL


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([Conflict("a"), Conflict("b")], outcome.CONFLICT),
        ([Conflict("a"), Invalid("b")], outcome.REFUSED),
        ([Invalid("b"), KeyError("c")], outcome.CRASHED),
        ([TerminalError("a"), TerminalError("b")], outcome.TERMINAL),
        ([TerminalError("a"), Conflict("b")], outcome.CONFLICT),
        ([ExceptionGroup("inner", [Conflict("a")])], outcome.CONFLICT),
        ([ConnectionFailed("a"), StreamBroken("b")], outcome.UNREACHED),
        ([ConnectionFailed("a"), ExceptionGroup("inner", [GatewayTimeout("b")])], outcome.UNREACHED),
        ([ConnectionFailed("a"), Conflict("b")], outcome.CONFLICT),
        ([ConnectionFailed("a"), KeyError("b")], outcome.CRASHED),
        ([ConnectionFailed("a"), TerminalError("b")], outcome.UNREACHED),
        ([Retry("a", after=3), KeyError("b")], outcome.CRASHED),
        ([Retry("a", after=3), Conflict("b")], outcome.CONFLICT),
    ],
    ids=repr,
)
def test_a_group_means_what_its_gravest_member_means(members: list[Exception], expected: Settlement) -> None:
    assert settle_error(ExceptionGroup("parallel writes", members)) is expected


@pytest.mark.parametrize(
    "error",
    [
        Retry("no Kafka", after=timedelta(seconds=30)),
        caused_by(RuntimeError("outer"), Retry("no Kafka", after=30)),
        caused_by(Retry("no Kafka", after=30), TerminalError("of a library")),
        ExceptionGroup("parallel", [TerminalError("a"), Retry("short", after=1), Retry("no Kafka", after=30)]),
    ],
    ids=repr,
)
def test_a_retry_means_its_time_wherever_it_stands(error: Exception) -> None:
    settled = settle_error(error, 5, 0)
    assert (settled.result, settled.next_run, settled.after, settled.hold) == (
        "requeue_after",
        outcome.NextRun.AFTER,
        30,
        True,
    )


def test_a_terminal_error_because_of_a_retry_is_terminal() -> None:
    assert settle_error(caused_by(TerminalError("never"), Retry("no Kafka", after=30))) is outcome.TERMINAL


@given(st.integers(0, 100), st.integers(0, 100))
def test_retries_end_exactly_after_max_retries_errors_in_a_row(errors: int, limit: int) -> None:
    settled = settle_error(ValueError(), errors, limit)
    assert settled is (outcome.GAVE_UP if errors >= limit else outcome.CRASHED)


def test_a_write_to_what_is_gone_is_quiet_and_counts_all_the_same() -> None:
    gone = NotFound("gone", request="PATCH /api/v1/nodes/a")
    assert settle_error(gone, 2, 3) is outcome.GONE
    assert settle_error(gone, 3, 3) is outcome.GAVE_UP


@pytest.mark.parametrize(
    "error", [Conflict("a"), DecodeError("b"), TerminalError("c"), NamespaceTerminating("d"), StreamBroken("e")]
)
def test_what_is_no_ordinary_error_uses_up_no_retries(error: Exception) -> None:
    assert settle_error(error, 100, 3) == settle_error(error)


def test_only_back_off_keeps_failures_and_only_failures_are_not_success() -> None:
    for settled in (outcome.TERMINAL, outcome.GAVE_UP, outcome.SUCCESS):
        assert settled.next_run is NextRun.NONE
    for settled in (outcome.CONFLICT, outcome.GONE, outcome.TIMEOUT, outcome.REFUSED, outcome.CRASHED):
        assert settled.next_run is NextRun.BACK_OFF
    assert outcome.REJECTED.next_run is NextRun.AFTER
    assert outcome.REJECTED.after > 60


def test_why_the_server_was_not_reached_is_found_in_any_shape_of_error() -> None:
    """Shared members cost once, a circle ends, and depth is no matter."""
    root = ConnectionFailed("refused")
    middle = caused_by(RuntimeError("middle"), root)
    both = ExceptionGroup("both", [caused_by(KeyError("a"), middle), caused_by(ValueError("b"), middle)])
    assert outcome.unreached(both) is root
    for mixed in ([ValueError("a fault"), root], [root, ValueError("a fault")]):
        assert outcome.unreached(ExceptionGroup("mixed", mixed)) is None
    assert outcome.unreached(ExceptionGroup("the first", [root, ConnectionFailed("reset")])) is root
    for _ in range(60):
        both = ExceptionGroup("twice", [both, both])
    assert outcome.unreached(both) is root
    deep: Exception = root
    for _ in range(100_000):
        deep = caused_by(RuntimeError(), deep)
    assert outcome.unreached(deep) is root
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    assert outcome.unreached(ExceptionGroup("circle", [root, first])) is None
    assert settle_error(first) is outcome.CRASHED
    while deep.__cause__ is not None:  # Python frees a chain by recursion
        cause, deep.__cause__ = deep.__cause__, None
        deep = cast("Exception", cause)
