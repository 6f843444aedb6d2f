"""Programs count on names and signatures: none changes unseen, and a difference says what it asks for."""

from __future__ import annotations

import re

import pytest

from tests.publicapi import LIST, compare, differences, public_api, read_list, write_list


def test_the_public_api_is_what_the_list_says() -> None:
    told = differences(read_list(LIST.read_text()), public_api())
    breaking, fine = [[d.text for d in told if d.breaking is which] for which in (True, False)]
    assert not breaking, "\n".join([*breaking, "docs/releases.md has the way; then `make api` writes the list anew"])
    assert not fine, "\n".join([*fine, "if that is meant, `make api` writes the list anew; CHANGELOG.md is to have it"])


def test_the_list_reads_back_as_it_was_written() -> None:
    found = public_api()
    assert read_list(write_list(found)) == found
    assert not [line for line in LIST.read_text().splitlines() if re.search(r" at 0x|<\w+ ", line)]


def test_a_name_that_is_gone_needs_a_deprecation() -> None:
    [told] = differences({"kopylite.App.timer": "(self) -> None"}, {})
    assert told.breaking
    assert told.text.startswith("removed kopylite.App.timer: needs a deprecation")


def test_a_name_that_is_new_breaks_nobody() -> None:
    [told] = differences({}, {"kopylite.App.timer": "(self) -> None"})
    assert not told.breaking


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("(a, b=1)", "(a)", "parameter b is gone"),
        ("(a)", "(a, b)", "new parameter b has no default"),
        ("(a)", "(a, *, b)", "new parameter b has no default"),
        ("(a, b=1)", "(a, b)", "b must be given now"),
        ("(a, b)", "(b, a)", "a is not the argument no. 1 any more"),
        ("(a, b)", "(a, *, b)", "b is not the argument no. 2 any more"),
        ("(a)", " async (a)", "it is to be awaited"),
        (" async (a)", "(a)", "it is not to be awaited any more"),
        ("(a, **options)", "(a)", "parameter *options is gone"),
        (" property -> int", "(self) -> int", "if a program can notice it"),
        (": int", " property -> int", "if a program can notice it"),
        (": int", ": str", "if a program can notice it"),
    ],
)
def test_a_call_that_was_right_and_is_wrong_now_is_breaking(before: str, after: str, reason: str) -> None:
    breaking, text = compare("kopylite.f", before, after)
    assert breaking
    assert reason in text
    assert f"listed: kopylite.f{before}" in text
    assert f"now:    kopylite.f{after}" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(a)", "(a, b=1)"),
        ("(a)", "(a, *, b=1)"),
        ("(a, *, b)", "(a, *, c=2, b)"),
        ("(a, *, b)", "(a, b)"),
        ("(a, b)", "(a, b=None)"),
        ("(a: int = 1)", "(a: int | str = 1)"),
        ("(a)", "(a, **options)"),
        (" property -> int", ": int"),
    ],
)
def test_a_change_that_no_right_call_notices_is_none(before: str, after: str) -> None:
    assert not compare("kopylite.f", before, after)[0]
