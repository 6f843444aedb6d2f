from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.backoff import (
    LONGEST_DELAY,
    LONGEST_KIND_DELAY,
    LONGEST_RETRY_AFTER,
    at_least,
    delay,
    kind_delay,
)

chances = st.floats(0, 1, exclude_max=True)


def test_delays_double_from_under_a_second_to_half_a_minute() -> None:
    assert [delay(failures, 0.0) for failures in range(8)] == [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]


@given(st.integers(0, 2000), chances)
def test_a_delay_is_never_zero_and_never_above_the_cap(failures: int, chance: float) -> None:
    assert 0 < delay(failures, chance) <= LONGEST_DELAY


def test_retry_after_is_a_lower_bound_within_reason() -> None:
    assert at_least(0.4, 20.0) == 20.0
    assert at_least(30.0, 20.0) == 30.0
    assert at_least(0.4, None) == 0.4
    assert at_least(0.4, 86_400.0) == LONGEST_RETRY_AFTER


@given(st.floats(0, 1e6), chances)
def test_a_missing_kind_is_looked_for_within_a_second_or_a_fifth_of_its_absence(missing: float, chance: float) -> None:
    assert 0.75 <= kind_delay(missing, chance) <= min(LONGEST_KIND_DELAY, max(1.0, missing / 5))


def test_a_kind_that_stays_away_is_not_hammered() -> None:
    passed, asked = 0.0, 0
    for chance in itertools.cycle([0.0, 0.5, 0.9]):
        passed += kind_delay(passed, chance)
        asked += 1
        if passed > 3600:
            break
    assert asked < 3600 / (LONGEST_KIND_DELAY * 0.75) + 25
