"""What is published is looked at first: scripts/release_check.py and scripts/matrix.py notice what they are for."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check, matrix = script("release_check"), script("matrix")

PACKAGE = ["kopylite/__init__.py", "kopylite/py.typed", "kopylite/starter/files/tests/conftest.py.txt"]
INFO = ["kopylite-1.0.0.dist-info/METADATA", "kopylite-1.0.0.dist-info/RECORD"]


def test_the_version_is_in_one_place_and_the_changelog_fits_it() -> None:
    assert version("kopylite") == PROJECT["version"], (
        "pyproject.toml has another version than is installed: `make setup`"
    )
    assert check.changelog_problem((ROOT / "CHANGELOG.md").read_text(), PROJECT["version"], release=False) == ""
    assert "__version__" not in (ROOT / "kopylite/__init__.py").read_text()


@pytest.mark.parametrize(
    ("text", "release", "problem"),
    [
        ("## Unreleased\n", False, ""),
        ("## 1.2.0 - 2026-01-31\n", False, ""),
        ("## 1.2.0 - 2026-01-31\n## 1.1.0 - 2026-01-01\n", True, ""),
        ("# Changelog\n", False, "no section"),
        ("## Unreleased\n", True, "needs '## 1.2.0 - YYYY-MM-DD'"),
        ("## 1.2.0\n", True, "needs '## 1.2.0 - YYYY-MM-DD'"),
        ("## 1.1.0 - 2026-01-01\n", False, "neither 'Unreleased' nor 1.2.0"),
        ("## Unreleased\n## 1.2.0 - 2026-01-31\n", False, "the next version"),
    ],
)
def test_a_changelog_that_does_not_fit_says_how_it_would(text: str, release: bool, problem: str) -> None:
    told = check.changelog_problem(text, "1.2.0", release=release)
    assert problem in told
    assert bool(problem) == bool(told)


def test_a_wheel_of_the_package_and_nothing_else_is_right() -> None:
    assert check.wheel_problems([*PACKAGE, *INFO], PACKAGE) == []


@pytest.mark.parametrize(
    "stray",
    ["tests/test_app.py", "samples/hello/operator.py", "kopylite/scratch.py", "kopylite/client/tests/test_a.py"],
)
def test_what_does_not_belong_into_a_wheel_is_named(stray: str) -> None:
    assert any(told.startswith(stray) for told in check.wheel_problems([*PACKAGE, *INFO, stray], PACKAGE))


def test_a_data_file_that_is_left_out_is_named() -> None:
    assert check.wheel_problems(["kopylite/__init__.py", *INFO], PACKAGE[:2]) == [
        "kopylite/py.typed is not in the wheel"
    ]


def test_metadata_that_differ_from_the_project_are_named() -> None:
    declared = {
        "name": "kopylite", "version": "1.0.0", "requires-python": ">=3.11", "license": "Apache-2.0",
        "dependencies": ["anyio"], "optional-dependencies": {"fast": ["uvloop"]},
    }  # fmt: skip
    right = (
        "Name: kopylite\nVersion: 1.0.0\nRequires-Python: >=3.11\nLicense-Expression: Apache-2.0\n"
        "Provides-Extra: fast\nRequires-Dist: anyio\nRequires-Dist: uvloop; extra == 'fast'\n"
        "\n[a](https://b.example/c) [d](#d)\n"
    )
    assert check.metadata_problems(right, declared) == []
    wrong = right.replace("1.0.0", "0.9.0").replace("; extra == 'fast'", "").replace("https://b.example/", "docs/")
    assert [told.split()[0] for told in check.metadata_problems(wrong, declared)] == ["Version", "without", "the"]


def test_the_matrix_is_what_the_project_says_it_supports() -> None:
    assert matrix.supported() == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={matrix.supported()[0]}"


def test_tools_stay_as_they_are_locked_beside_the_lowest_dependencies() -> None:
    tools = matrix.tools_beside("aiohttp==3.12.0\n    # via kopylite\n")
    assert re.search(r"^pytest==\d", tools, re.MULTILINE)
    assert "aiohttp==" not in tools
