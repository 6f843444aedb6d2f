"""Which labels fulfil which requirements, as Kubernetes' own matcher has it."""

from __future__ import annotations

import pytest

from kopylite.objects.selectors import Requirement, Selector


def matches(operator: str, value: str | None, *values: str) -> bool:
    labels = {"other": "x"} | ({"a": value} if value is not None else {})
    return Requirement("a", operator, frozenset(values)).matches(labels)


@pytest.mark.parametrize("operator", ["=", "in"])
def test_a_missing_label_equals_nothing_and_is_in_no_set(operator: str) -> None:
    assert matches(operator, "x", "x")
    assert not matches(operator, "y", "x")
    assert not matches(operator, None, "x")
    assert not matches(operator, None, "")
    assert matches(operator, "", "")


@pytest.mark.parametrize("operator", ["!=", "notin"])
def test_so_it_fulfils_what_excludes_something(operator: str) -> None:
    assert matches(operator, "y", "x")
    assert matches(operator, None, "x")
    assert not matches(operator, "x", "x")


def test_a_label_that_is_empty_is_there() -> None:
    assert matches("exists", "")
    assert not matches("exists", None)
    assert matches("!", None)
    assert not matches("!", "")


@pytest.mark.parametrize(
    ("value", "bound", "above", "below"),
    [
        ("5", "4", True, False), ("4", "4", False, False), ("3", "4", False, True),
        ("-5", "-4", False, True), ("+5", "4", True, False), ("010", "9", True, False),
        ("9223372036854775807", "9223372036854775806", True, False),
        # None of these is a number to the server.
        (None, "4", False, False), ("", "4", False, False), ("five", "4", False, False), ("5.0", "4", False, False),
        ("1_000", "4", False, False), (" 5", "4", False, False), ("\N{ARABIC-INDIC DIGIT FIVE}", "4", False, False),
        ("9223372036854775808", "4", False, False), ("-9223372036854775809", "4", False, False),
        ("9" * 100_000, "4", False, False), ("5", "9" * 100_000, False, False), ("5\n", "4", False, False),
    ],
)  # fmt: skip
def test_numbers_are_compared_as_the_server_does(value: str | None, bound: str, above: bool, below: bool) -> None:
    assert matches(">", value, bound) is above
    assert matches("<", value, bound) is below


def test_all_requirements_must_hold_and_none_are_fulfilled_by_everything() -> None:
    both = Selector([Requirement("a", "exists"), Requirement("b", "=", frozenset("x"))])
    assert both
    assert both.matches({"a": "1", "b": "x"})
    assert not both.matches({"a": "1"})
    assert not both.matches({"b": "x"})
    assert not both.matches(None)
    assert not Selector()
    assert Selector().matches(None)


def test_the_one_value_that_is_asked_for_is_known_and_no_other() -> None:
    one = Selector([Requirement("a", "in", frozenset("x")), Requirement("a", "=", frozenset("y"))])
    assert one.exact("a") == "y"
    assert one.exact("b") is None
    assert Selector([Requirement("a", "!=", frozenset("x"))]).exact("a") is None
