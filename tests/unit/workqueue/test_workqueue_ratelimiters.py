from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.errors import RegistrationError
from kopylite.workqueue import RateLimit, RateLimiter
from kopylite.workqueue.ratelimiters import SWEEP_SLACK, TokenBucket


def test_delays_double_from_5_ms_to_1000_s_as_in_client_go() -> None:
    delays = [RateLimit(jitter=0).delay(failures, 0.5) for failures in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17] < 1000.0
    assert delays[18:] == [1000.0, 1000.0]


@given(st.integers(0, 10**9), st.floats(0, 1, exclude_max=True), st.floats(0, 0.5))
def test_jitter_only_shortens_and_never_below_the_delay_before(failures: int, random: float, jitter: float) -> None:
    limit = RateLimit(jitter=jitter)
    full = RateLimit(jitter=0).delay(failures, 0.0)
    assert full * (1 - jitter) - 1e-12 <= limit.delay(failures, random) <= full <= 1000.0
    before = RateLimit(jitter=0).delay(failures - 1, 0.0) if failures else 0.0
    assert limit.delay(failures, random) >= before - 1e-9 or full == before


def test_failures_are_counted_per_key_until_they_are_forgotten() -> None:
    limiter: RateLimiter[str] = RateLimiter(RateLimit(jitter=0))
    assert [limiter.when("a", 0.0, 0.0) for _ in range(3)] == [0.005, 0.01, 0.02]
    assert limiter.when("b", 0.0, 0.0) == 0.005
    assert (limiter.failures("a"), limiter.failures("b"), limiter.failures("c"), len(limiter)) == (3, 1, 0, 2)
    limiter.forget("a")
    limiter.forget("c")
    assert limiter.when("a", 0.0, 0.0) == 0.005


def test_the_bucket_holds_back_all_keys_together_and_the_longer_delay_wins() -> None:
    limiter: RateLimiter[int] = RateLimiter(RateLimit(jitter=0, per_second=10, burst=2))
    delays = [limiter.when(key, 0.0, 0.0) for key in range(4)]
    assert delays == pytest.approx([0.005, 0.005, 0.1, 0.2])
    assert limiter.when(9, 100.0, 0.0) == 0.005


@given(st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_a_bucket_never_lets_more_through_than_its_rate_and_burst(pauses: list[float]) -> None:
    bucket, now, due = TokenBucket(5.0, 3), 0.0, []
    for pause in pauses:
        now += pause
        due.append(now + bucket.reserve(now))
    assert all(later >= earlier for earlier, later in pairwise(due))
    for first in range(len(due)):
        for last in range(first, len(due)):
            assert last - first + 1 <= 3 + 5.0 * (due[last] - due[first]) + 1e-6


def test_try_take_refuses_without_promising_a_token() -> None:
    bucket = TokenBucket(1.0, 1)
    assert bucket.try_take(0.0)
    assert not bucket.try_take(0.5)
    assert bucket.try_take(1.0)


def test_a_bucket_fills_at_its_rate_from_the_last_look_on_and_never_above_its_burst() -> None:
    bucket = TokenBucket(4.0, 2)
    assert [bucket.try_take(100.0) for _ in range(3)] == [True, True, False]
    assert [bucket.try_take(time) for time in (100.125, 100.25, 100.375, 100.5)] == [False, True, False, True]
    assert [bucket.try_take(200.0) for _ in range(3)] == [True, True, False]
    assert [bucket.reserve(200.0) for _ in range(2)] == [0.25, 0.5]


def test_what_is_over_is_swept_from_the_keys_that_hold_a_token() -> None:
    limiter: RateLimiter[int] = RateLimiter(RateLimit(jitter=0, per_second=1e6, burst=1))
    largest = 0
    for key in range(10 * SWEEP_SLACK):
        limiter.when(key, float(key), 0.0)
        limiter.forget(key)
        largest = max(largest, len(limiter._due))
    assert SWEEP_SLACK <= largest <= SWEEP_SLACK + 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("first", value) for value in (0, -1, float("nan"), float("inf"), True, "5ms", None, 1001, 10**400)),
        *(("longest", value) for value in (0, float("nan"), float("inf"), 1e300, 10**400, "1h")),
        *(("jitter", value) for value in (0.6, -0.1, float("nan"), "a bit")),
        *(("per_second", value) for value in (0, -1, float("nan"), float("inf"), True, "10")),
        *(("burst", value) for value in (0, 1.5, float("nan"), True, "100", None)),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(RegistrationError, match=f"^RateLimit: {name}"):
        RateLimit(**{name: value})


def test_a_key_that_fails_at_each_of_its_events_takes_no_more_than_its_share_of_the_bucket() -> None:
    limiter: RateLimiter[str] = RateLimiter(RateLimit(jitter=0, per_second=1, burst=1))
    for event in range(600):  # ten a second, each of which runs the key at once, and fails
        limiter.when("noisy", event * 0.1, 0.0)
    assert limiter.when("quiet", 60.0, 0.0) <= 2.0


def test_a_key_that_fails_every_other_time_takes_no_more_either_and_leaves_nothing_behind() -> None:
    limiter: RateLimiter[str] = RateLimiter(RateLimit(jitter=0, per_second=1, burst=1))
    for event in range(600):
        limiter.when("noisy", event * 0.1, 0.0)
        limiter.forget("noisy")
    assert limiter.when("quiet", 60.0, 0.0) <= 2.0
    for number in range(1000):
        limiter.when(f"once-{number}", 10_000.0 * number, 0.0)
        limiter.forget(f"once-{number}")
    assert len(limiter._due) < 200


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 0.5)), min_size=1, max_size=60))
def test_retries_that_run_keep_to_the_rate_whatever_events_come_between(failures: list[tuple[int, float]]) -> None:
    limiter: RateLimiter[int] = RateLimiter(RateLimit(first=0.001, longest=0.001, jitter=0, per_second=5, burst=3))
    now, due = 0.0, dict[int, float]()
    runs: list[float] = []
    for key, pause in failures:
        now += pause
        if due.get(key, now) < now:
            runs.append(due.pop(key))
        due[key] = now + limiter.when(key, now, 0.0)
    times = sorted([*runs, *due.values()])
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert last - first + 1 <= 3 + 5.0 * (times[last] - times[first]) + 1 + 1e-6
