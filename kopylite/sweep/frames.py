"""Which lines of the user's code asked for what happens now."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from types import FrameType

from kopylite.boundary import is_library
from kopylite.sweep.trace import CodeLine

_OURS = f"{Path(__file__).parent.parent}{os.sep}"
MOST = 8


def users_frames(frame: FrameType | None = None) -> tuple[CodeLine, ...]:
    """The user's frames among the callers of this, the innermost first; of threads that wait for this, theirs."""
    found = _of_stack(frame or sys._getframe(1))
    if found:
        return found
    # A thread of a synchronous reconcile waits in `Calls.call` for the task that asks here.
    for other in sys._current_frames().values():
        if other.f_code.co_filename.endswith("threading.py") and (found := _of_stack(other)):
            return found
    return ()


def _of_stack(frame: FrameType | None) -> tuple[CodeLine, ...]:
    found: list[CodeLine] = []
    while frame is not None and len(found) < MOST:
        code = frame.f_code
        if is_users(code.co_filename):
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            found.append(CodeLine(_short(code.co_filename), frame.f_lineno, code.co_qualname, text))
        frame = frame.f_back
    return tuple(found)


def is_users(filename: str) -> bool:
    """Neither kopylite's nor Python's nor a library's."""
    return not (filename.startswith(("<", _OURS)) or is_library(filename))


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
