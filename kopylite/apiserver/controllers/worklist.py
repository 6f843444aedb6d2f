"""WorkList: things to look at, each once; what failed comes back after a growing pause.

Not the runtime's `workqueue`: the server knows nothing of the runtime that is tested on it, one task needs neither
priorities nor keys that run, and a common fault would hide from every test that has both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from kopylite.apiserver.world import Disconnect
from kopylite.errors import KopyliteError

logger = logging.getLogger("kopylite.apiserver")

K = TypeVar("K")

# As the controllers of a cluster: 5 ms, doubled with each failure in a row. They go up to 1000 s; a developer's
# cluster has no load that calls for more than half a minute.
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 30.0


class WorkList(Generic[K]):
    """A set in the order of arrival. Adding is synchronous; one task works it off.

    Args:
        name: for the log.
        work: looks at one key. Whatever it raises, the key is tried again.
    """

    def __init__(self, name: str, work: Callable[[K], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        self._waiting: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._pauses: dict[K, asyncio.TimerHandle] = {}
        self._arrived = asyncio.Event()
        self._ended = False

    def add(self, key: K) -> None:
        self._waiting[key] = None
        self._arrived.set()

    def add_later(self, key: K, seconds: float) -> None:
        """Add a key after some seconds, or when it comes back anyway. Nothing once the work has ended."""
        if key not in self._pauses and not self._ended:
            self._pauses[key] = asyncio.get_running_loop().call_later(seconds, self._after_pause, key)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                while self._waiting:
                    key = next(iter(self._waiting))
                    del self._waiting[key]
                    await self._try(key)
                    await asyncio.sleep(0)  # nothing here waits for I/O, and requests of clients come first
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            self._ended = True
            while self._pauses:
                self._pauses.popitem()[1].cancel()

    async def _try(self, key: K) -> None:
        try:
            await self._work(key)
        except (KopyliteError, Disconnect) as error:
            self._again(key)
            logger.debug("%s: %s: %s", self._name, key, error)
        except Exception:
            # A fault of ours in one object must not be the end of the others.
            self._again(key)
            logger.exception("%s: %s", self._name, key)
        else:
            self._failures.pop(key, None)

    def _again(self, key: K) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if earlier := self._pauses.pop(key, None):
            earlier.cancel()
        self.add_later(key, min(FIRST_PAUSE * 2.0 ** min(failures - 1, 20), LONGEST_PAUSE))

    def _after_pause(self, key: K) -> None:
        del self._pauses[key]
        self.add(key)
