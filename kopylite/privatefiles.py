"""Files that hold credentials: their owner's alone from the first byte on, whole or not there, never through a link."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from kopylite.errors import UsageError


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file of mode 0600 in the place of what is there; a reader sees the old one or the new one, whole.

    Raises:
        UsageError: the place is taken by something that is no regular file, such as a link, or cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError(
                f"{path} is a link or no regular file, and would not be written as a new one: name another"
            )
        # mkstemp never follows a link, and makes the file for its owner alone.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
