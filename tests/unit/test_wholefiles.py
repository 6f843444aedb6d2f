from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kopylite.errors import UsageError
from kopylite.wholefiles import write_private, write_whole


@pytest.mark.parametrize(("write", "mode"), [(write_whole, 0o644), (write_private, 0o600)])
def test_a_file_that_cannot_be_finished_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: object, mode: int
) -> None:
    assert callable(write)
    path = tmp_path / "file"
    write(path, "old")
    assert stat.S_IMODE(path.stat().st_mode) == mode

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(UsageError, match=r"cannot write .*file: No space left on device"):
            write(path, "new")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]
    write(path, b"new")
    assert path.read_text() == "new"
