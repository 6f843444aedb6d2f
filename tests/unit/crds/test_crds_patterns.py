from __future__ import annotations

import pytest

from kopylite.crds.patterns import re2_problem


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        r"^\d{1,3}(\.\d{1,3}){3}$",
        r"^(?i)x$",
        r"(?P<name>a)(?:b)",
        r"a{2,1000}",
        r"[(?=]",
        r"\(\?=",
        r"a*?b+?",
        r"[\]+]+",
        r"\\d",
    ],
)
def test_what_the_server_can_read_passes(pattern: str) -> None:
    assert re2_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?=a)", "look-around"),
        ("(?!a)b", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        ("(?P<x>a)(?P=x)", "back-reference"),
        ("(?>a)", "atomic"),
        ("a++", "possessive"),
        ("a{2}+", "possessive"),
        ("(a)?(?(1)b|c)", "conditional"),
        ("a(?#note)", "comment"),
        (r"a\Z", "escape"),
        ("a{1001}", "more than 1000"),
        ("a{1,2000}", "more than 1000"),
    ],
)
def test_what_the_server_cannot_read_is_named(pattern: str, problem: str) -> None:
    assert problem in (re2_problem(pattern) or "")
