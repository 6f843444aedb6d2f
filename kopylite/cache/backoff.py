"""Backoff: how long a stream waits before it tries again."""

from __future__ import annotations

from typing import Final

# The reflector of client-go starts at 0.8 s, doubles, and caps at 30 s.
FIRST_DELAY: Final = 0.8
LONGEST_DELAY: Final = 30.0
# A stream that has lived this long counts as healthy: the next failure is a new one.
HEALTHY_AFTER: Final = 60.0
# A longer Retry-After would look like a dead informer; whoever sends it is asked again.
LONGEST_RETRY_AFTER: Final = 300.0


class Backoff:
    """Exponential, with jitter in [1/2, 1) of the delay, so that an outage isn't followed by a stampede.

    Failures are forgotten only after a healthy period, not after one success: a stream that opens and breaks
    for ever must not be opened in a hot loop.
    """

    __slots__ = ("_cap", "_healthy_since", "failures")

    def __init__(self, cap: float = LONGEST_DELAY) -> None:
        self._cap = cap
        self._healthy_since: float | None = None
        self.failures = 0

    def healthy(self, now: float) -> None:
        """It works again, since now. Calling it repeatedly keeps the first moment."""
        if self._healthy_since is None:
            self._healthy_since = now

    def failed(self, now: float, chance: float, at_least: float | None = None) -> float:
        """One failure; returns the seconds to wait.

        Args:
            chance: a random number in [0, 1).
            at_least: what the server asked for (Retry-After).
        """
        if self._healthy_since is not None and now - self._healthy_since >= HEALTHY_AFTER:
            self.failures = 0
        self._healthy_since = None
        delay = min(self._cap, FIRST_DELAY * 2.0 ** min(self.failures, 30)) * (0.5 + 0.5 * chance)
        self.failures += 1
        return max(delay, min(at_least or 0.0, LONGEST_RETRY_AFTER))
