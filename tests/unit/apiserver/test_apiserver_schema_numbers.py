"""Numbers in objects without types are written as Go writes them."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.schema.numbers import to_go_numbers


def converted(value: Any) -> Any:
    to_go_numbers(value)
    return value


def test_whole_floats_lose_their_point() -> None:
    assert json.dumps(converted({"a": 1.0, "b": [100.0, {"c": -2.0}], "d": 1.5})) == (
        '{"a": 1, "b": [100, {"c": -2}], "d": 1.5}'
    )


def test_integers_beyond_64_bits_lose_their_last_digits_as_floats_do() -> None:
    assert converted([12345678901234567890, 2**63 - 1, -(2**63)]) == [12345678901234567000, 2**63 - 1, -(2**63)]


def test_what_go_writes_with_an_exponent_stays_a_float() -> None:
    assert isinstance(converted([1e21])[0], float)


def test_booleans_and_texts_stay() -> None:
    assert json.dumps(converted([True, None, "1.0"])) == '[true, null, "1.0"]'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_value_of_a_float_does_not_change(number: float) -> None:
    assert math.isclose(float(converted([number])[0]), number, rel_tol=0, abs_tol=0)
