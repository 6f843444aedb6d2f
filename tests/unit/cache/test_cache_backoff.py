from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.backoff import HEALTHY_AFTER, LONGEST_DELAY, LONGEST_RETRY_AFTER, Backoff


def test_delays_double_from_under_a_second_to_half_a_minute() -> None:
    backoff = Backoff()
    delays = [backoff.failed(0.0, 0.0) for _ in range(8)]
    assert delays == [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]


@given(st.integers(0, 2000), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_zero_and_never_above_the_cap(failures: int, chance: float) -> None:
    backoff = Backoff()
    backoff.failures = failures
    assert 0 < backoff.failed(0.0, chance) <= LONGEST_DELAY


def test_one_success_does_not_reset_it_but_a_healthy_period_does() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.failed(0.0, 0.0)
    backoff.healthy(0.0)
    assert backoff.failed(HEALTHY_AFTER - 1, 0.0) > 5
    backoff.healthy(100.0)
    backoff.healthy(100.0 + HEALTHY_AFTER)  # again healthy: the first moment counts
    assert backoff.failed(100.0 + HEALTHY_AFTER, 0.0) < 1


def test_retry_after_is_a_lower_bound_within_reason() -> None:
    assert Backoff().failed(0.0, 0.0, at_least=20.0) == 20.0
    assert Backoff().failed(0.0, 0.0, at_least=86_400.0) == LONGEST_RETRY_AFTER
