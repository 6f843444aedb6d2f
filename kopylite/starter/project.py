"""The files of a new project, and how they come into a folder: all of them, or none."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from kopylite.errors import UsageError
from kopylite.starter.naming import ProjectNames
from kopylite.wholefiles import write_whole

# %{name} in a template; a % by itself is a %.
_PLACE = re.compile(r"%\{(\w+)\}")
# A folder with nothing else is as good as an empty one.
_OVERLOOKED = (".git",)


def files_of(names: ProjectNames, version: str) -> dict[str, str]:
    """The texts of a project, by their paths in it.

    Args:
        version: of kopylite, which the project asks for or a later one that is compatible; "": any.
    """
    release = version.partition("+")[0]
    values = {
        "name": names.name, "package": names.package, "kind": names.kind, "plural": names.plural, "group": names.group,
        "pin": f"~={release}" if release else "",
    }  # fmt: skip
    found: dict[str, str] = {}
    for path, template in _templates(files("kopylite.starter") / "files", PurePosixPath()):
        parts = [names.package if part == "package" else re.sub("^dot-", ".", part) for part in path.parts]
        found["/".join(parts).removesuffix(".txt")] = _PLACE.sub(lambda place: values[place[1]], template)
    return found


def write_project(folder: Path, texts: Mapping[str, str], complete: Callable[[Path], None]) -> list[str]:
    """Write a project into a folder that is not there, or has nothing in it but .git.

    Args:
        complete: writes what is made of the project itself; is given a folder that has all of it.

    Returns:
        The paths of the files, below the folder.

    Raises:
        UsageError: there is something in the folder, or it cannot be written. Then nothing was.
    """
    _require_empty(folder)
    try:
        with _beside(folder) as stage:
            for path, text in texts.items():
                write_whole(stage / path, text)
            complete(stage)
            made = sorted(path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file())
            if folder.exists():
                _move_into(folder, stage)
            else:
                os.rename(stage, folder)
            return made
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}; nothing was written") from error


def _templates(folder: Traversable, above: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in sorted(folder.iterdir(), key=lambda found: found.name):
        if entry.is_dir():
            yield from _templates(entry, above / entry.name)
        elif entry.name.endswith(".txt"):
            yield above / entry.name, entry.read_text(encoding="utf-8")


def _require_empty(folder: Path) -> None:
    try:
        there = [entry for entry in folder.iterdir() if entry.name not in _OVERLOOKED]
    except FileNotFoundError:
        if folder.is_symlink():
            raise UsageError(f"{folder} is a link to nothing; name another folder by --dir") from None
        return
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; name another folder by --dir") from error
    if there:
        few = ", ".join(sorted(entry.name for entry in there)[:3])
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        raise UsageError(f"{folder} is not empty ({few}{more}), and nothing is overwritten; name another one by --dir")


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A folder from which a project can be moved in one step, for it is on the same disk."""
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.absolute().name}-"))
    try:
        os.chmod(stage, 0o755)
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _move_into(folder: Path, stage: Path) -> None:
    moved: list[Path] = []
    try:
        for entry in sorted(stage.iterdir()):
            os.rename(entry, folder / entry.name)
            moved.append(folder / entry.name)
    except BaseException:
        for path in moved:
            os.rename(path, stage / path.name)
        raise
