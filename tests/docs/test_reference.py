"""The reference is made from the program and has all that a user can meet, looked for by other ways than its own."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopylite.cli.environment import OptionGroup
from kopylite.cli.exitcodes import Exit
from scripts.make_reference import pages, parsers

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kopylite"


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return pages()


def operator_sources() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        if "apiserver" not in path.relative_to(PACKAGE).parts:
            yield path.read_text()


def test_every_public_name_is_there(reference: dict[str, str]) -> None:
    listed = [line.split("\t")[0] for line in (ROOT / "tests/public_api.txt").read_text().splitlines()[1:]]
    names = [line for line in listed if not line.startswith("$")]
    python = "\n".join(text for name, text in reference.items() if name.startswith("python-"))
    headings = set(re.findall(r"^##+ `([\w.]+)`$", python, re.MULTILINE))
    assert len(names) > 500
    for name in names:
        assert any(name.endswith(f".{heading}") for heading in headings if heading.endswith(name.split(".")[-1])), name


def test_every_command_and_option_is_there(reference: dict[str, str]) -> None:
    page = reference["command-line"]
    for name, parser in parsers():
        part = page[page.index(f"## `{name}`") :]
        for action in parser._actions:
            for flag in action.option_strings[-1:] if action.help != argparse.SUPPRESS else ():
                assert flag in part, (name, flag)


def test_every_environment_variable_is_there(reference: dict[str, str]) -> None:
    written = {name for text in operator_sources() for name in re.findall(r'"(KOPYLITE_[A-Z_]+[A-Z])"', text)}
    for variable in {*OptionGroup.variables, *written, "KUBECONFIG", "KUBEBUILDER_ASSETS"}:
        assert f"`{variable}`" in reference["environment"], variable


def test_every_metric_is_there(reference: dict[str, str]) -> None:
    text = (PACKAGE / "metrics.py").read_text() + (PACKAGE / "collectors.py").read_text()
    families = r'"((?:kopylite|controller_runtime|workqueue|leader_election|rest_client)_\w+[a-z])"'
    found = set(re.findall(families, text)) - {"controller_runtime_webhook"}  # the beginning of some
    assert len(found) > 30
    for name in found:
        assert f"| `{name}` |" in reference["metrics"], name


def test_every_exit_code_is_there(reference: dict[str, str]) -> None:
    for code in Exit:
        assert f"| {code.value} | `{code.name}` | {code.__doc__} |" in reference["exit-codes"]


def test_every_text_that_is_logged_is_there(reference: dict[str, str]) -> None:
    shown = reference["log-events"].replace("\\|", "|")
    calls = r'logger\.(?:debug|info|warning|error|exception|critical)\(\s*"((?:[^"\\]|\\.)+)"'
    texts = {found for text in operator_sources() for found in re.findall(calls, text)}
    assert len(texts) > 60
    for text in texts:
        assert text.replace('\\"', '"').replace("`", "'").strip() in shown, text
