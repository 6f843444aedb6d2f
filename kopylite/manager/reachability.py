"""Reachability: tells from the requests of a process when the API server answers again."""

from __future__ import annotations

from collections.abc import Callable

from kopylite.client.retries import NO_ANSWER
from kopylite.clock import Clock
from kopylite.observers import ClientObserver

# Where some requests are answered and some are not, their keys must not run all the time.
PAUSE = 5.0
# What stands in front of a server answers so in its stead.
NOT_THE_SERVER = frozenset({"502", "503", "504"})


class Reachability(ClientObserver):
    """Passes what it is told on, and tells of the first answer after a request that got none.

    Args:
        observer: whom it passes on to.
        clock: of the pause.
        on_reached: told, at most once in 5 s. An answer that falls into the pause is not forgotten: the first one
            after it tells.
    """

    __slots__ = ("_clock", "_missing", "_not_before", "_observer", "_on_reached")

    def __init__(self, observer: ClientObserver, clock: Clock, on_reached: Callable[[], None]) -> None:
        self._observer = observer
        self._clock = clock
        self._on_reached = on_reached
        self._missing = False
        self._not_before = 0.0

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        self._observer.requested(method=method, host=host, code=code, seconds=seconds)
        if code == NO_ANSWER:
            self._missing = True
        elif self._missing and code not in NOT_THE_SERVER and (now := self._clock.monotonic()) >= self._not_before:
            self._missing = False
            self._not_before = now + PAUSE
            self._on_reached()
