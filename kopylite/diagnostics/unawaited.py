"""Forgotten awaits: `ctx.client.delete(obj)` without `await` does nothing, and Python only mutters about it at the end.

Python warns when the coroutine is thrown away. While a Manager runs, these warnings come here: in a run they make the
run fail (see `Context.forgotten`), elsewhere they are an error in the log; both name the function.

Python tells the line of the call if it has kept the lines of all coroutines, which is a tenth of the instructions of a
reconcile. So it does from the first forgotten one on. Of that one the line is told at which it was thrown away, which
nearly always is that of the call; its run fails, and when it runs again, the line of the call is known.
"""

from __future__ import annotations

import gc
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kopylite.reconcile.context import RUNNING

logger = logging.getLogger("kopylite.reconcile")

_UNAWAITED = re.compile(r"coroutine '(?P<name>[^']*)' was never awaited")
_ORIGIN = re.compile(r'\n\s*File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>\S+)')

# What drops the variables of a function that has ended.
_RUNTIME = frozenset({"kopylite", "asyncio", "anyio", "uvloop"})


class _Watch:
    """What is changed in the process while it is watched, and how often somebody began to."""

    def __init__(self) -> None:
        self.users = 0
        self.collecting = False
        self.show: Any = None
        self.depth = 0

    def begin(self) -> None:
        self.users += 1
        if self.users > 1:
            return
        # "always": the default shows each line once, and the next run of the same line would pass for a good one.
        warnings.filterwarnings("always", message="coroutine .* was never awaited", category=RuntimeWarning)
        self.filter = warnings.filters[0]
        self.show, warnings.showwarning = warnings.showwarning, self._shown
        self.depth = sys.get_coroutine_origin_tracking_depth()
        gc.callbacks.append(self._collected)

    def end(self) -> None:
        self.users -= 1
        if self.users:
            return
        if self.filter in warnings.filters:
            warnings.filters.remove(self.filter)  # type: ignore[attr-defined]
        if warnings.showwarning == self._shown:
            warnings.showwarning = self.show
        sys.set_coroutine_origin_tracking_depth(self.depth)
        gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, info: object) -> None:
        self.collecting = phase == "start"

    def _shown(
        self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None
    ) -> None:
        found = _UNAWAITED.search(str(message)) if category is RuntimeWarning else None
        if found is None:
            self.show(message, category, filename, lineno, file, line)
            return
        origin = _ORIGIN.search(str(message))  # the innermost of one
        if origin is not None:
            place = f" at {origin['file']}:{origin['line']} in {origin['function']}"
        else:
            place = "" if self.collecting else _thrown_away()
            place = f" at {place} or before" if place else " (where, is told the next time)"
            # From now on it is known where a coroutine was made; debug mode keeps more. It is the thread's own setting.
            sys.set_coroutine_origin_tracking_depth(max(sys.get_coroutine_origin_tracking_depth(), 1))
        text = f"{found['name']}(...) was called without await{place}, so nothing of it was done; write await"
        # The garbage collector runs when it likes: whose coroutine it finds, nobody knows.
        context = None if self.collecting else RUNNING.get()
        if context is not None:
            context.forgotten.append(text)
        else:
            logger.error("%s", text)


def _thrown_away() -> str:
    """Where the coroutine was dropped of which a warning is shown; "" if not in code of the user."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in ("warnings", "_py_warnings"):  # so from 3.14 on
        frame = frame.f_back
    if frame is None or str(frame.f_globals.get("__name__")).partition(".")[0] in _RUNTIME:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


_watch = _Watch()


@contextmanager
def forgotten_awaits() -> Iterator[None]:
    """Watch for coroutines that nobody awaits, in the whole process, until the context is left."""
    _watch.begin()
    try:
        yield
    finally:
        _watch.end()
