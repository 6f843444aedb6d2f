"""docs/promises.md names tests and commands that there are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.explore.machines import MACHINES

ROOT = Path(__file__).parent.parent.parent
CODE = re.findall(r"`([^`]+)`", (ROOT / "docs" / "promises.md").read_text())


def test_each_test_and_file_of_a_promise_is_there() -> None:
    named = [text for text in CODE if text.startswith("tests/")]
    assert len(named) > 15
    assert [text for text in named if not (ROOT / text).exists()] == []
    short = [text for text in CODE if re.fullmatch(r"test_\w+\.py", text)]
    assert [text for text in short if not list((ROOT / "tests").rglob(text))] == []


def test_each_command_of_a_promise_is_one() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    made = [match[1] for text in CODE if (match := re.search(r"\bmake ([a-z-]+)", text))]
    assert made
    assert set(made) <= set(targets)
    explored = [text.removeprefix("python -m tests.explore ") for text in CODE if "tests.explore " in text]
    names = [name for text in explored for name in (re.findall(r'"([^"]+)"', text) or text.split())]
    assert set(names) == set(MACHINES), "all are promised something"
