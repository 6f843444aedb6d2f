"""Files that are written whole, into a folder that may hold somebody else's: those are left as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from kopylite.errors import UsageError
from kopylite.wholefiles import write_whole

# In the first line of each file that is ours. The hash tells one that was edited since.
_MARK = "Made by `kopylite manifests`: run it again instead of editing. "
# By the end of a file's name: what is before the mark and behind the hash, and what of the text they stand for.
_COMMENTS = {".json": ('{ "$comment": "', '",\n', "{\n"), ".txt": ("{{- /* ", " */}}\n", ""), "": ("# ", "\n", "")}


def marked(name: str, text: str) -> str:
    """A file's text under a line that says who made it: a comment of YAML or a chart's template, a key of JSON."""
    begin, end, instead = _COMMENTS.get(Path(name).suffix, _COMMENTS[""])
    rest = text.removeprefix(instead)
    return f"{begin}{_MARK}{_hash(rest)}{end}{rest}"


def is_ours(text: str) -> bool:
    """Whether a file is as it was made: nobody has edited it."""
    first, _, rest = text.partition("\n")
    return f"{_MARK}{_hash(rest)}" in first


def write_files(folder: Path, files: Mapping[str, str], *, force: bool = False) -> list[Path]:
    """Write texts, each under its relative path; all of them, or none if one would take the place of a foreign file.

    Args:
        force: replace foreign and edited files too.

    Returns:
        The files, in the order of their names.

    Raises:
        UsageError: names the files that are somebody else's, or were edited; or one cannot be written.
    """
    paths = {folder / name: text for name, text in sorted(files.items())}
    foreign = [path for path, text in paths.items() if not force and not _may_replace(path, text)]
    if foreign:
        raise UsageError(
            f"{', '.join(map(str, foreign))}: not made by this command, or edited since, and so left alone; nothing "
            "was written. Name another --output-dir, or say --force to replace them"
        )
    for path, text in paths.items():
        write_whole(path, text)
    return list(paths)


def made_files(folder: Path) -> dict[str, str]:
    """The texts of all files below a folder that this command has made, edited or not, by their relative paths."""
    found = {}
    for path in sorted(path for end in (".yaml", ".json", ".txt") for path in folder.rglob(f"*{end}")):
        if path.is_file() and _MARK in (text := _text(path)).partition("\n")[0]:
            found[path.relative_to(folder).as_posix()] = text
    return found


def _may_replace(path: Path, text: str) -> bool:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return False
    return not path.exists() or (found := _text(path)) == text or is_ours(found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
