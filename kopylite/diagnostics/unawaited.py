"""Forgotten awaits: `ctx.client.delete(obj)` without `await` does nothing, and Python only mutters about it at the end.

Python warns when the coroutine is thrown away. While a Manager runs, these warnings come here: in a run they make the
run fail (see `Context.forgotten`), elsewhere they are an error in the log; both name the function and the line.
"""

from __future__ import annotations

import gc
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kopylite.reconcile.context import RUNNING

logger = logging.getLogger("kopylite.reconcile")

_UNAWAITED = re.compile(r"coroutine '(?P<name>[^']*)' was never awaited")
_ORIGIN = re.compile(r'\n\s*File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>\S+)')


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
        # Where a coroutine was made; costs some 0.1 µs each. Debug mode keeps more.
        self.depth = sys.get_coroutine_origin_tracking_depth()
        sys.set_coroutine_origin_tracking_depth(max(self.depth, 1))
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
        place = f"{origin['file']}:{origin['line']} in {origin['function']}" if origin else f"{filename}:{lineno}"
        text = f"{found['name']}(...) was called without await at {place}, so nothing of it was done; write await"
        # The garbage collector runs when it likes: whose coroutine it finds, nobody knows.
        context = None if self.collecting else RUNNING.get()
        if context is not None:
            context.forgotten.append(text)
        else:
            logger.error("%s", text)


_watch = _Watch()


@contextmanager
def forgotten_awaits() -> Iterator[None]:
    """Watch for coroutines that nobody awaits, in the whole process, until the context is left."""
    _watch.begin()
    try:
        yield
    finally:
        _watch.end()
