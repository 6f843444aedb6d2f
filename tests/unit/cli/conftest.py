"""The command line warns of variables that it does not know, and those of the suite itself are some."""

from __future__ import annotations

import os

import pytest

SUITE = ("KOPYLITE_REQUIRE_REAL", "KOPYLITE_FIELD_CRDS", "KOPYLITE_FUZZ_SEEDS")


@pytest.fixture(autouse=True)
def without_the_variables_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SUITE:
        if name in os.environ:
            monkeypatch.delenv(name)
