"""The runner of upstream's test/cmd: what it finds in the sources, and how it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.conformance.testcmd import KNOWN, functions, report, sources

NAMES = ["run_a", "run_b", "run_c", "run_d"]


def test_functions_come_in_upstreams_order_and_once(tmp_path: Path) -> None:
    script = tmp_path / "test/cmd/legacy-script.sh"
    script.parent.mkdir(parents=True)
    script.write_text(
        '  record_command run_b\nrecord_command "run_${pkg}"\n    record_command run_a\n  record_command run_b\n'
    )
    assert functions(tmp_path) == ["run_b", "run_a"]


def test_what_passes_on_the_real_server_only_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    real = {"run_a": True, "run_b": True, "run_c": False}
    assert report(NAMES, real, {"run_a": True, "run_b": False, "run_c": False}) == 1
    said = capsys.readouterr().out
    assert "FAILED on the embedded server only: run_b" in said
    assert "fails on the real server too: run_c" in said
    assert "1 of 2 that pass on the real server pass; 1 had no time to run" in said


def test_what_fails_on_both_or_on_the_real_one_is_none() -> None:
    assert report(NAMES, {"run_a": True, "run_c": False}, {"run_a": True, "run_c": True}) == 0


def test_nothing_that_passes_is_no_success() -> None:
    assert report(NAMES, {}, {}) == 1


def test_what_is_left_out_is_a_function_of_upstreams() -> None:
    root = sources()
    if root is None:
        pytest.skip("Kubernetes' sources are not at hand")
    left_out = yaml.safe_load(KNOWN.read_text())
    assert set(left_out) <= set(functions(root))
    assert all(left_out.values())


def test_absent_sources_are_told_from_present_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_ROOT", str(tmp_path))
    assert sources() is None
