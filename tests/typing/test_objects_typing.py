"""mypy and pyright agree on the types of typed kinds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "typed_kinds.py"
PROJECT = FILE.parent.parent.parent


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_sees_the_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--warn-unused-ignores", str(FILE)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_sees_the_types(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    settings = {
        "include": [os.path.relpath(FILE, tmp_path)],
        "extraPaths": [str(PROJECT)],
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    config.write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--project",
        str(config),
        "--pythonpath",
        sys.executable,
        "--outputjson",
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {done.stderr[-200:]}")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    assert report["generalDiagnostics"] == []
