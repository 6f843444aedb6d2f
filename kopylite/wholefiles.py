"""Files that take the place of what is there whole: a reader sees the old one or the new one, and never a half."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from kopylite.errors import UsageError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file of mode 0644 that anybody may read, and its folder where that is missing.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content, 0o644)
    except OSError as error:
        raise _cannot_write(path, error) from error


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file with credentials: its owner's alone (0600) from the first byte on, and never through a link.

    Raises:
        UsageError: the place is taken by something that is no regular file, such as a link, or cannot be written.
    """
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError(
                f"{path} is a link or no regular file, and would not be written as a new one: name another"
            )
        _replace(path, content, 0o600)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _replace(path: Path, content: str | bytes, mode: int) -> None:
    # mkstemp never follows a link, and makes the file for its owner alone.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror or error}")
