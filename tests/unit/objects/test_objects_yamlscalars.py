"""Plain scalars as Go reads them: Python is asked where the two agree, and examples of Go's where they do not."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.objects.yamlscalars import in_json, key_text, number, plain_value, reads_back, tagged_value

WHOLE = st.integers(-(2**63), 2**64 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(WHOLE)
def test_whole_numbers_are_read_in_each_base(value: int) -> None:
    assert plain_value(str(value)) == value
    sign, size = "-" * (value < 0), abs(value)
    if value < 2**63:
        assert plain_value(f"{sign}0x{size:x}") == value
        assert plain_value(f"{sign}0b{size:b}") == value
        assert plain_value(f"{sign}0o{size:o}") == value
        assert plain_value(f"{sign}0{size:o}") == value, "an old octal"


@given(FINITE)
def test_floats_are_read_as_python_writes_them(value: float) -> None:
    assert plain_value(repr(value)) == value


@pytest.mark.parametrize("text", ["y", "Yes", "on", "TRUE", "n", "No", "OFF", "false"])
def test_the_words_of_yaml_1_1_are_booleans(text: str) -> None:
    assert plain_value(text) is (text.lower() in ("y", "yes", "on", "true"))


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_nothing_is_null(text: str) -> None:
    assert plain_value(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1_000", 1000), ("+7", 7), ("-0x_1f", -31), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("0b-101", -5),
        ("0b+101", 5), (".inf", math.inf), ("-.Inf", -math.inf), ("08", 8.0), ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 1.8446744073709552e19), ("+9223372036854775808", 9.223372036854775808e18),
    ],
)  # fmt: skip
def test_numbers_of_go(text: str, value: float) -> None:
    found = plain_value(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    ["yEs", "nULL", "1.2.3", "1e999", ".", "-", "+", "1h", "0x", "0xg", "tomorrow", "-.5.", "12:30", "2026-01-01"],
)
def test_what_is_none_of_these_is_a_text(text: str) -> None:
    assert plain_value(text) == text
    assert reads_back(text)


def test_what_would_be_read_as_something_else_does_not_read_back() -> None:
    assert not any(map(reads_back, ["1", "0x1f", "yes", "", "~", ".nan", "1e3"]))


@given(st.text())
def test_any_text_is_read_as_a_scalar(text: str) -> None:
    assert isinstance(plain_value(text), str | int | float | bool | None)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("int", "7", 7), ("float", "7", 7), ("bool", "on", True), ("null", "~", None),
        ("timestamp", "2026-01-01", "2026-01-01"), ("binary", "aGk=\n", "hi"), ("str", "7", "7"), ("set", "7", "7"),
    ],
)  # fmt: skip
def test_a_tag_says_what_a_text_is(tag: str, text: str, value: Any) -> None:
    assert tagged_value(f"tag:yaml.org,2002:{tag}", text) == value
    assert tagged_value(f"!{tag}", text) == text, "one that is not YAML's own"


@pytest.mark.parametrize(("tag", "text"), [("int", "1.5"), ("int", "x"), ("bool", "1"), ("null", "0"), ("binary", "?")])
def test_a_text_that_is_not_what_its_tag_says_is_an_error(tag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"!!{tag}"):
        tagged_value(f"tag:yaml.org,2002:{tag}", text)


@given(WHOLE | FINITE)
def test_a_number_keeps_its_value_on_its_way_through_json(value: int | float) -> None:
    found = in_json(value)
    assert float(found) == float(value)
    assert found == value or isinstance(value, float) or not -(2**63) <= value < 2**63, "no digit is lost"
    assert in_json(found) == found
    assert number(json.dumps(found)) == found


def test_whole_floats_arrive_as_integers_up_to_their_limit() -> None:
    assert (type(in_json(3.0)), type(in_json(1e18)), type(in_json(1e19)), type(in_json(1e21))) == (
        int,
        int,
        float,
        float,
    )
    assert type(in_json(2**63)) is float
    assert in_json(9.2e18) == 9_200_000_000_000_000_000
    assert type(number("1.0")) is int


@pytest.mark.parametrize(("value", "name"), [(math.nan, "NaN"), (math.inf, r"\+Inf"), (-math.inf, "-Inf")])
def test_json_has_no_such_number(value: float, name: str) -> None:
    with pytest.raises(ValueError, match=f"unsupported value: {name}"):
        in_json(value)


def test_a_number_beyond_every_float_is_an_error() -> None:
    with pytest.raises(ValueError, match="too large"):
        number("1e999")
    assert number("9" * 30) == 1e30


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), (7, "7"), (-7, "-7"), (0.1, "0.1"), (1e10, "1e+10"), (1e-5, "1e-05"),
        (123456.0, "123456"), (1.23456789e8, "1.2345679e+08"),
        (math.nan, ".nan"), (math.inf, ".inf"), (-1e300, "-.inf"),
    ],
)  # fmt: skip
def test_keys_that_are_no_texts_are_written_out(value: float, text: str) -> None:
    assert key_text(value) == text


@pytest.mark.parametrize(("value", "why"), [(None, "null"), (2**63, "63 bits")])
def test_what_cannot_be_a_key(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        key_text(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+9223372036854775807", 2**63 - 1), ("0b-" + "1" * 63, -(2**63) + 1), ("0b-" + "1" * 64, "0b-" + "1" * 64),
        ("0b" + "1" * 64, 2**64 - 1), ("0b" + "1" * 65, "0b" + "1" * 65),
    ],
)  # fmt: skip
def test_integers_end_where_gos_do(text: str, value: Any) -> None:
    found = plain_value(text)
    assert (type(found), found) == (type(value), value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_key_is_told_from_all_others_of_32_bits(value: float) -> None:
    assert struct.unpack("f", struct.pack("f", float(key_text(value))))[0] == value
