"""ImportPatience: an import that never ends is told, with the line it stands at, and then ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kopylite.boundary import is_library

# Of the wall clock. Big modules take seconds; who connects or waits while he is imported takes for ever.
TELL_AFTER = 10.0
FIRST = 60.0
# Libraries are loaded by then; a fork that spins is ended after 30 s of a processor, and could not say where.
ANEW = 20.0
# Modules that catch the end are ended again.
AGAIN = 1.0


class ImportEndless(BaseException):
    """No Exception, which modules catch."""


@contextmanager
def import_patience(limit: float, tell: Callable[[str], object] = lambda text: None) -> Iterator[None]:
    """Bound the import of a module; for the main thread, elsewhere there is no bound.

    Args:
        limit: seconds, more than `TELL_AFTER`.
        tell: told once, when it takes long.

    Raises:
        ImportEndless: it has not ended in time.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = False

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if told:
            raise ImportEndless(
                f"its import has not ended within {limit:g} s, it is at {_line(frame)}; "
                "let it declare only, and do what waits in a reconcile"
            )
        told = True
        signal.setitimer(signal.ITIMER_REAL, limit - TELL_AFTER, AGAIN)
        tell(f"is still being imported, at {_line(frame)}; it has {limit - TELL_AFTER:g} s more")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, TELL_AFTER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _line(frame: FrameType | None) -> str:
    """Where the user's code is; else where anybody's is."""
    inner = frame
    while frame is not None and (is_library(frame.f_code.co_filename) or frame.f_code.co_filename.startswith("<")):
        frame = frame.f_back
    shown = frame or inner
    return f"{shown.f_code.co_filename}:{shown.f_lineno}" if shown is not None else "an unknown line"
