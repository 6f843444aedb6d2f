"""Every message that has a page leads to it, every page is led to, and the pages quote what the program says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from kopylite.troubleshooting import DOCS, Trouble

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "troubleshooting"
# Nothing in the program can say this; the index does.
WITHOUT_A_MESSAGE = {"memory"}
# Shorter parts of a text could be anybody's.
SHORTEST = 12


def sources() -> Iterator[Path]:
    return (path for path in (ROOT / "kopylite").rglob("*.py") if path.name != "troubleshooting.py")


def test_every_page_is_that_of_a_message_or_says_why_not() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert pages == {trouble.value for trouble in Trouble} | WITHOUT_A_MESSAGE


def test_every_page_is_linked_from_a_message() -> None:
    used = {name for path in sources() for name in re.findall(r"\bTrouble\.([A-Z_]+)\b", path.read_text())}
    assert used == {trouble.name for trouble in Trouble}


def test_the_index_leads_to_every_page() -> None:
    index = (PAGES / "index.md").read_text()
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(re.findall(r"\]\(([\w-]+)\.md\)", index))


def test_addresses_begin_as_those_of_the_project_and_nobody_else_knows_them() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Documentation"] == f"{DOCS}/index.md"
    assert str(Trouble.CONFLICT) == f"{DOCS}/troubleshooting/conflict.md"
    assert not [path for path in sources() if f"{DOCS}/troubleshooting" in path.read_text()]


def words_of_the_program() -> set[str]:
    """Every constant part of a text of one line, cut where something is put in; docstrings are none."""
    found: set[str] = set()
    for path in sources():
        if "apiserver" not in path.parts:
            for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text()):
                found.update(part.strip() for part in re.split(r"%[\w.]+|\\n|\{[^{}]*\}", text))
    return {part for part in found if len(part) >= SHORTEST}


def quotes() -> Iterator[tuple[str, str]]:
    for page in sorted(PAGES.glob("*.md")):
        for block in re.findall(r"^```text\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                if re.match(r"(INFO|WARNING|ERROR) ", line):
                    yield page.name, line


def test_what_is_quoted_is_what_the_program_says() -> None:
    words, seen = words_of_the_program(), 0
    for page, line in quotes():
        assert any(part in line for part in words), f"{page}: {line}"
        seen += 1
    assert seen > 10
