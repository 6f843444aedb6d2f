"""`kopylite init`, and then what the README of the new project says: with the tools of this environment, no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init") / "a b"
    assert main(["init", "web-cache", "--group", "cache.example.org", "--dir", str(folder)]) == 0
    return folder


def make(project: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    others = ("KUBEBUILDER", "MAKE", "PYTEST", "KOPYLITE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    environment["KUBEBUILDER_ASSETS"] = str(project)  # has none, whatever this machine has where they are looked for
    command = ["make", *targets, f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.installed"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_new_project_passes_its_own_checks_and_its_rights_are_those_that_its_tests_use(project: Path) -> None:
    before = {path: path.read_bytes() for path in (project / "rbac.json", *(project / "deploy").iterdir())}
    done = make(project, "check")
    assert done.returncode == 0, done.stdout + done.stderr
    done = make(project, "manifests")  # runs the tests, to record them
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed, 4 skipped" in done.stdout
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_with_something_in_it_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "web-cache", "--dir", str(project)]) == Exit.USAGE
    assert "is not empty" in capsys.readouterr().err


def test_what_is_wrong_with_a_name_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "Json"]) == Exit.USAGE
    assert "kopylite init: the name 'Json'" in capsys.readouterr().err
