from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kopylite.errors import UsageError
from kopylite.starter import files_of, names_of, write_project
from kopylite.starter.naming import LONGEST, LONGEST_KIND

SHORT, LONG = names_of("a", "K"), names_of("a" * LONGEST, "K" * LONGEST_KIND, f"{'g' * 60}.{'h' * 60}.io")
TEXTS = {"a.txt": "a", "sub/b.txt": "b"}


def nothing_more(stage: Path) -> None:
    assert (stage / "sub/b.txt").read_text() == "b"


@pytest.mark.parametrize("names", [SHORT, LONG], ids=["short", "long"])
def test_whatever_the_names_the_files_are_formatted_linted_and_read(names: object, tmp_path: Path) -> None:
    texts = files_of(names, "1.2.3+local")  # type: ignore[arg-type]
    assert '"kopylite[fast]~=1.2.3"' in texts["pyproject.toml"]
    assert not any("%{" in text for text in texts.values())
    for name, text in texts.items():
        if name.endswith(".yaml"):
            assert yaml.safe_load(text)
    write_project(tmp_path / "made", texts, lambda stage: None)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "."],
            cwd=tmp_path / "made",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_a_version_that_is_not_known_pins_nothing() -> None:
    assert '"kopylite[fast]"' in files_of(SHORT, "")["pyproject.toml"]


def test_a_new_or_empty_folder_gets_all(tmp_path: Path) -> None:
    assert write_project(tmp_path / "new/er", TEXTS, nothing_more) == ["a.txt", "sub/b.txt"]
    (tmp_path / "git/.git").mkdir(parents=True)
    write_project(tmp_path / "git", TEXTS, nothing_more)
    assert (tmp_path / "git/sub/b.txt").read_text() == "b"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["git", "new"]
    assert oct((tmp_path / "new/er").stat().st_mode & 0o777) == "0o755"


def test_what_is_there_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for folder, why in (
        (tmp_path, r"is not empty \(mine\), and nothing is overwritten"),
        (tmp_path / "mine", "Not a dir"),
    ):
        with pytest.raises(UsageError, match=f"{why}.*--dir"):
            write_project(folder, TEXTS, nothing_more)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="a link to nothing"):
        write_project(tmp_path / "link", TEXTS, nothing_more)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "link"}


@pytest.mark.parametrize("there", [False, True])
def test_a_failure_at_any_moment_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    folder = tmp_path / "made"
    if there:
        folder.mkdir()

    def refuse(stage: Path) -> None:
        raise UsageError("no manifests")

    with pytest.raises(UsageError, match="no manifests"):
        write_project(folder, TEXTS, refuse)
    real, moves = os.rename, []

    def full(source: Path, target: Path) -> None:
        moves.append(target)
        if len(moves) == (2 if there else 1):
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with pytest.raises(UsageError, match="No space left on device; nothing was written"):
            write_project(folder, TEXTS, nothing_more)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == (["made"] if there else [])
