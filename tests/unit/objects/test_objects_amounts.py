"""Quantities: what is one, and its canonical text."""

from __future__ import annotations

import pytest

from kopylite.objects.amounts import BAD_QUANTITY, BAD_SUFFIX, _parse_short, canonical, parse_quantity, rounded_to_milli


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"), ("0.0", "0"), ("1000m", "1"), ("0.5", "500m"), ("1.5", "1500m"), ("1e3", "1e3"), ("12e6", "12e6"),
        ("1000", "1k"), ("1500", "1500"), ("1024Ki", "1Mi"), ("1.5Gi", "1536Mi"), ("1Gi", "1Gi"), ("1000Mi", "1000Mi"),
        ("0.5Ki", "512"), ("-1", "-1"), ("+2", "2"), ("1E", "1E"), ("100n", "100n"), (" 5 ", "5"), (".5", "500m"),
    ],
)  # fmt: skip
def test_the_canonical_text_is_the_servers(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1x", "1.2.3", "Ki", "1 Gi"])
def test_what_is_no_quantity_says_so_in_the_servers_words(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match") as caught:
        canonical(text)
    assert str(caught.value) == BAD_QUANTITY


def test_amounts_are_rounded_up() -> None:
    assert rounded_to_milli("100u") == "1m"
    assert canonical("0.1n") == "1n"


def test_values_compare_as_numbers() -> None:
    assert parse_quantity("1Gi").value > parse_quantity("1G").value


@pytest.mark.parametrize("text", ["1e" + "9" * 20, "1E-" + "9" * 20, "1kk"])
def test_a_suffix_that_is_none_is_told_apart(text: str) -> None:
    with pytest.raises(ValueError, match="suffix") as caught:
        parse_quantity(text)
    assert str(caught.value) == BAD_SUFFIX


def test_long_texts_are_not_remembered() -> None:
    parse_quantity("1")
    known = _parse_short.cache_info().currsize
    assert parse_quantity("0" * 1000 + "7").value == 7
    assert _parse_short.cache_info().currsize == known
