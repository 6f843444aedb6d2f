"""What `make bench-check` says."""

from __future__ import annotations

import pytest

from tests.bench.check import compare


def test_a_row_that_has_become_dearer_fails_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"read calls": 36.0, "read ratio": 1.8, "cached bytes": 352.0}
    assert compare({"read calls": 38.0, "read ratio": 2.6, "cached bytes": 360.0}, before) == 0
    assert compare(before | {"read calls": 40.0}, before) == 1
    assert "dearer than before: read calls" in capsys.readouterr().out


def test_without_a_baseline_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare({"read calls": 38.0}, {}) == 0
    assert "no baseline" in capsys.readouterr().out
