from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from kopylite.errors import DecodeError
from kopylite.objects import Quantity, to_wire
from kopylite.objects.modelcodec import codec_of
from kopylite.objects.quantity import _MAX_TEXT, PATTERN


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("1", "1"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        (".5", "500m"),
        ("3.", "3"),
        ("-1.5", "-1500m"),
        ("+1", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("512", "512"),
        ("1.2Ki", "1228800m"),
        ("1000Ki", "1000Ki"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("12e6", "12e6"),
        ("1e-3", "1e-3"),
        ("100u", "100u"),
        ("0.0000000001", "1n"),
        ("9999999999E", "9223372036854775807"),
    ],
)
def test_the_canonical_form_is_the_servers(text: str, canonical: str) -> None:
    assert Quantity(text).canonical() == canonical


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "1Zi", "1e", "--1", "1.2.3", "Gi", "1e1.5", "1\n"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        Quantity(text)


@pytest.mark.parametrize("amount", [True, None, float("nan"), Decimal("sNaN"), []])
def test_what_is_no_number_is_refused_as_a_text_is(amount: Any) -> None:
    with pytest.raises(ValueError, match="a quantity is a text such as"):
        Quantity(amount)


def test_equal_amounts_are_equal_however_they_are_written() -> None:
    assert Quantity("1") == Quantity("1000m") == Quantity(1) == Quantity(Decimal("1.0"))
    assert len({Quantity("1Gi"), Quantity("1024Mi"), Quantity("1G")}) == 2
    assert Quantity("1Gi") > Quantity("1G")
    assert sorted([Quantity("2"), Quantity("100m"), Quantity("1")])[0] == Quantity("0.1")
    assert Quantity("1") != "1"


def test_amounts_can_be_added_and_scaled() -> None:
    assert str(Quantity("500m") + Quantity("1")) == "1500m"
    assert str(Quantity("1Gi") - Quantity("512Mi")) == "512Mi"
    assert str(Quantity("0") + Quantity("1Gi")) == "1Gi"
    assert str(Quantity("250m") * 4) == "1"
    assert str(-Quantity("1")) == "-1"
    assert not Quantity("0")


def test_the_text_is_kept_as_it_was_read() -> None:
    assert str(Quantity("1024Mi")) == "1024Mi"
    assert repr(Quantity("0.5")) == "Quantity('0.5')"


class Limits(BaseModel):
    cpu: Quantity = Quantity("1")


@pytest.mark.parametrize("value", ["1024Mi", "0.5", 2, 0])
def test_a_field_is_written_back_as_it_was_read(value: Any) -> None:
    raw = json.dumps({"cpu": value}).encode()
    assert json.dumps(to_wire(codec_of(Limits).decode(raw))) == json.dumps({"cpu": value})


@pytest.mark.parametrize("value", [1.5, True, "x", [], {}])
def test_a_field_takes_texts_and_whole_numbers_only(value: Any) -> None:
    with pytest.raises(DecodeError, match="cpu"):
        codec_of(Limits).decode(json.dumps({"cpu": value}).encode())


def test_python_may_pass_numbers() -> None:
    assert to_wire(Limits(cpu=1.5)) == {"cpu": "1500m"}
    with pytest.raises(ValidationError):
        Limits(cpu=[])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".0E000000", 0),
        ("0e1000000", 0),
        ("-1e-0000000001", Decimal("-0.1")),
        ("1e-1000000", Decimal("1e-9")),
        ("1E+1000000", 2**63 - 1),
        (f"0.{'0' * 400}1e401", 1),
        (f"0.{'0' * 400}1e+1000000", 2**63 - 1),
    ],
)
def test_every_exponent_that_the_pattern_allows_is_read(text: str, value: Decimal) -> None:
    assert re.match(PATTERN, text)
    assert Quantity(text).value == value
    assert TypeAdapter(Quantity).validate_json(json.dumps(text)).value == value


def test_a_text_may_be_as_long_as_it_may() -> None:
    assert Quantity("0" * (_MAX_TEXT - 1) + "7") == Quantity("7")
    with pytest.raises(ValueError, match=f"at most {_MAX_TEXT} characters, not {_MAX_TEXT + 1}"):
        Quantity("0" * _MAX_TEXT + "7")
