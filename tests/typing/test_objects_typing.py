"""mypy and pyright agree on the types of typed kinds, and of what an App declares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = [Path(__file__).parent / name for name in ("typed_kinds.py", "typed_life.py")]
PROJECT = Path(__file__).parent.parent.parent


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_sees_the_types() -> None:
    """With the cache of `make check`."""
    command = [sys.executable, "-m", "mypy", "--warn-unused-ignores", *map(str, FILES)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_sees_the_types(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    settings = {
        "include": [os.path.relpath(file, tmp_path) for file in FILES],
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
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    assert report["generalDiagnostics"] == []
