"""Stopping by signal: the first SIGTERM or SIGINT asks for an orderly stop, the second ends the process at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kopylite.cli.exitcodes import Exit

logger = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While the context is open, a first signal calls `stop` on the event loop, and a second ends the process.

    The handlers are Python's own and not the event loop's: so the second signal works even if user code blocks
    the loop, which is when it is needed most.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def begin(name: str) -> None:
        logger.info("%s: stopping; another signal ends the process at once", name)
        stop()

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(Exit.FORCED)
        asked = True
        loop.call_soon_threadsafe(begin, signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
