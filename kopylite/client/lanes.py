"""Lane: how many requests are on their way at the same time. Waiting for a turn is our own time, not the server's."""

from __future__ import annotations

import asyncio
import logging

import anyio

from kopylite.clock import Clock
from kopylite.errors import ConnectionFailed
from kopylite.troubleshooting import Trouble

logger = logging.getLogger(__name__)

# A wait this long is worth a line in the log; another one not before REPEAT has passed.
NOTICE = 5.0
REPEAT = 60.0
# Whoever got no turn by then is told so, rather than left to wait for requests that never end.
LONGEST_WAIT = 300.0


class Lane:
    """Turns for `size` requests at a time; first come, first served.

    Args:
        name: of the requests, for people.
        size: the most turns at a time.
        clock: of the waiting.
    """

    __slots__ = ("_clock", "_name", "_noticed", "_turns", "_waiting", "size")

    def __init__(self, name: str, size: int, clock: Clock) -> None:
        self.size = size
        self._name = name
        self._clock = clock
        self._turns = anyio.Semaphore(size, fast_acquire=True)
        self._waiting = 0
        self._noticed: float | None = None

    async def enter(self, limit: float = LONGEST_WAIT) -> float:
        """Wait for a turn; `leave` gives it back.

        Returns:
            The seconds that this took.

        Raises:
            ConnectionFailed: there was none within `limit` seconds.
        """
        try:
            self._turns.acquire_nowait()
        except anyio.WouldBlock:
            return await self._wait(limit)
        return 0.0

    def leave(self) -> None:
        self._turns.release()

    async def _wait(self, limit: float) -> float:
        began = self._clock.monotonic()
        notice = asyncio.get_running_loop().call_later(NOTICE, self._notice)
        self._waiting += 1
        try:
            with anyio.move_on_after(limit):
                await self._turns.acquire()
                return self._clock.monotonic() - began
        finally:
            self._waiting -= 1
            notice.cancel()
        raise ConnectionFailed(f"not sent: no turn within {limit:.0f} s. {self._explanation()}")

    def _notice(self) -> None:
        now = self._clock.monotonic()
        if self._noticed is None or now - self._noticed >= REPEAT:
            self._noticed = now
            logger.warning("%d requests wait for a connection, one for %.0f s. %s",
                           self._waiting, NOTICE, self._explanation())  # fmt: skip

    def _explanation(self) -> str:
        return (
            f"All {self.size} connections of this client for {self._name} are in use; this is a limit of its own, and "
            "no fault of the server. Set ClientConfig(max_connections=...) higher, or run fewer workers at a time. "
            f"See {Trouble.SLOW}"
        )
