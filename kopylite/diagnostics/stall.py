"""StallWatch: notices a blocked event loop, and says which reconcile and which line blocks it.

A heartbeat on the loop measures its lag. A thread looks at the heartbeat from outside: only there is anything
still running while the loop is not, and only there can the guilty line be seen while it is at it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from types import FrameType

import anyio
import msgspec

from kopylite.boundary import is_library
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.reconcile import Context
from kopylite.troubleshooting import Trouble

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 0.1
# Below this a person watching notices nothing, and a slow JSON dump or a collector pause is no defect.
WARN_SECONDS = 1.0
# Three kubelet probes with their default timeout of 1 s every 10 s have failed by then.
DEAD_SECONDS = 30.0


class StallStatistics(msgspec.Struct, frozen=True):
    """Seconds: the latest heartbeat's lag, and the longest one so far."""

    lag: float
    longest: float


class StallWatch:
    """Watches one event loop from `run()` until its cancellation.

    Args:
        on_lag: told each heartbeat's lag in seconds, on the loop.
        warn_after: seconds of silence after which a stall is reported, once a stall.
    """

    def __init__(
        self,
        *,
        on_lag: Callable[[float], None] = lambda lag: None,
        warn_after: float = WARN_SECONDS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._on_lag = on_lag
        self._warn_after = warn_after
        self._clock = clock
        self._beat = clock.monotonic()
        self._lag = 0.0
        self._longest = 0.0

    def statistics(self) -> StallStatistics:
        return StallStatistics(lag=self._lag, longest=self._longest)

    def check(self) -> str | None:
        """The liveness check: fails while the loop has been, or was until this very moment, dead too long."""
        stalled = max(self._lag, self._clock.monotonic() - self._beat - HEARTBEAT_SECONDS)
        return None if stalled < DEAD_SECONDS else f"the event loop was blocked for {stalled:.1f} s"

    async def run(self) -> None:
        """Beat until cancelled."""
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        ident = threading.get_ident()
        self._beat = self._clock.monotonic()
        watcher = threading.Thread(target=self._watch, args=(loop, ident, stop), name="kopylite-stall", daemon=True)
        watcher.start()
        timer: asyncio.TimerHandle

        def beat() -> None:
            nonlocal timer
            timer = loop.call_later(HEARTBEAT_SECONDS, beat)
            self._take_beat()

        # A task that slept would cost twice as much, in a process that has nothing else to do.
        timer = loop.call_later(HEARTBEAT_SECONDS, beat)
        try:
            await anyio.sleep_forever()
        finally:
            timer.cancel()
            stop.set()

    def _take_beat(self) -> None:
        now = self._clock.monotonic()
        self._lag = max(0.0, now - self._beat - HEARTBEAT_SECONDS)
        self._longest = max(self._longest, self._lag)
        self._beat = now
        self._on_lag(self._lag)

    def _watch(self, loop: asyncio.AbstractEventLoop, ident: int, stop: threading.Event) -> None:
        reported = -1.0
        while not stop.wait(self._warn_after / 4):
            beat = self._beat
            if beat != reported and self._clock.monotonic() - beat - HEARTBEAT_SECONDS >= self._warn_after:
                reported = beat
                self._report(loop, ident)

    def _report(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        frame = sys._current_frames().get(ident)
        if frame is None:
            return
        context, task = running_reconcile(frame), asyncio.current_task(loop)
        if context is not None:
            guilty = f"the reconcile of {context.request}"
        else:
            guilty = f"task {task.get_name()}" if task else "a callback"
        logger.warning(
            "the event loop has been blocked for %.1f s by %s at %s: everything else waits. "
            "Await an asynchronous call there, or use run_in_thread. See %s",
            self._warn_after,
            guilty,
            guilty_line(frame),
            Trouble.BLOCKED,
            extra={"fields": context.fields() if context is not None else {}},
        )


def running_reconcile(frame: FrameType) -> Context | None:
    """The Context that the code in a frame, or whoever called it, has at hand."""
    caller: FrameType | None = frame
    while caller is not None:
        for value in caller.f_locals.values():
            if isinstance(value, Context):
                return value
        caller = caller.f_back
    return None


def guilty_line(frame: FrameType) -> str:
    """The innermost line outside of the standard library, for that is the one to change, with what it calls."""
    innermost = frame
    candidate: FrameType | None = frame
    while candidate is not None and _is_machinery(candidate.f_code.co_filename):
        candidate = candidate.f_back
    guilty = candidate or innermost
    code = guilty.f_code
    called = f", in a call of {innermost.f_code.co_qualname}" if guilty is not innermost else ""
    return f"{code.co_filename}:{guilty.f_lineno} in {code.co_qualname}{called}"


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen") or is_library(filename)
