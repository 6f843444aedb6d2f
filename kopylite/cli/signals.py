"""Stopping by signal: the first SIGTERM or SIGINT asks for an orderly stop, the second ends the process at once.

The handlers are installed before anything else is imported: as process 1 of a container we would not even get a
SIGTERM that nobody handles. So this module imports next to nothing itself.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from kopylite.cli.exitcodes import Exit

if TYPE_CHECKING:
    from threading import Timer

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """The signals of this process while the context is open.

    A first signal ends the process at once while there is `nothing_to_end`; after that it is passed on to whatever
    `passed_to` says, or kept for it. A second one ends the process at once in any case: the handlers are Python's own
    and not the event loop's, so it works even if user code blocks the loop, which is when it is needed most.

    Args:
        early: the exit code of an end at once by a first signal; None: 128 and the signal's number, as a shell says.

    Attributes:
        asked: the name of the first signal; "" as long as there was none.
    """

    def __init__(self, early: int | None = None) -> None:
        self.asked = ""
        self.nothing_to_end = True
        self._early = early
        self._one_more = False
        self._code: int | None = None
        self._overtime: Timer | None = None
        self._stop: Callable[[], object] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._overtime is not None:
            self._overtime.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stay(self) -> None:
        """Install the handlers for the rest of the process."""
        # Registered first, it is called last, when nothing is left that a signal could be needed against; from there
        # on the interpreter would go back to the signals' default action.
        atexit.register(_ignore_signals)
        self.__enter__()

    @contextmanager
    def passed_to(
        self, stop: Callable[[], None], *, within: float | None = None, left: Callable[[], str] = lambda: ""
    ) -> Iterator[None]:
        """Call `stop` on the running event loop when a signal comes, or if one came already.

        Args:
            within: seconds after which a process that has not ended then is ended; None: it may take for ever, as it
                does where user code catches its cancellation, or has threads that nobody stops.
            left: what keeps it, for the log.
        """
        import asyncio
        import contextvars
        import logging

        loop = asyncio.get_running_loop()

        def begin() -> None:
            logging.getLogger(__name__).info("%s: stopping; another signal ends the process at once", self.asked)
            if within is not None:
                self._end_after(within, left)
            stop()

        for number in SIGNALS:
            signal.signal(number, self._handle)  # again: the user's module may have set its own
        # A handler runs in the middle of whatever it interrupts, maybe a reconcile whose fields the log would show.
        self._stop = partial(loop.call_soon_threadsafe, begin, context=contextvars.copy_context())
        if self.asked:
            begin()
        try:
            yield
        finally:
            self._stop = None

    def ask(self) -> None:
        """Stop as at a first signal, from any thread; one that reaches the process for the same reason is no second."""
        if not self.asked:
            self._one_more = True
            os.kill(os.getpid(), signal.SIGTERM)

    def ended(self, code: int) -> None:
        """All is done, and the process is about to end with `code`: a signal can only hasten that."""
        self._stop = None
        self._code = self._early = code
        self.asked, self.nothing_to_end = "", True

    def _end_after(self, seconds: float, left: Callable[[], str]) -> None:
        """By a thread: the event loop may be blocked, or gone."""
        import logging
        import threading

        def end() -> None:
            others = [thread.name for thread in threading.enumerate() if not thread.daemon]
            what = left() or f"the threads {', '.join(others)}"
            text = "the process has not ended within %.0f s, and is ended now; what does not heed its end: %s"
            logging.getLogger(__name__).error(text, seconds, what)
            os._exit(Exit.UNFINISHED if self._code is None else self._code)

        self._overtime = threading.Timer(seconds, end)
        self._overtime.daemon = True
        self._overtime.start()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked and self._one_more:
            self._one_more = False
            return
        if self.asked:
            os._exit(Exit.FORCED)
        if self.nothing_to_end:
            # Not an exception: raised anywhere in somebody's import it is swallowed, or shown as a traceback.
            os._exit(128 + number if self._early is None else self._early)
        self.asked = signal.Signals(number).name
        if self._stop is not None:
            self._stop()


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
