"""Restarts: whether a process that has ended by itself is begun again, and when. Pure."""

from __future__ import annotations

# The pause before the first restart, and the longest one; it doubles.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# A process that ran for so long, in seconds, works: its end is an accident, and counts from the beginning.
STEADY = 60.0
# So many ends in a row, none of which came after a steady run, are no accident.
GIVE_UP = 5


class Restarts:
    """Of one process: counts its ends.

    Attributes:
        total: how often it was begun again.
    """

    def __init__(self) -> None:
        self.total = 0
        self._in_a_row = 0
        self._refusals = 0

    def ended(self, ran: float) -> float | None:
        """It has ended after so many seconds: those to wait before it is begun again; None: it is not."""
        self._refusals = 0
        self._in_a_row = 1 if ran >= STEADY else self._in_a_row + 1
        if self._in_a_row >= GIVE_UP:
            return None
        self.total += 1
        return _pause(self._in_a_row)

    def refused(self) -> float:
        """It could not be begun, which is not its fault: the seconds to wait before that is tried again."""
        self._refusals += 1
        return _pause(self._refusals)


def _pause(times: int) -> float:
    """The pause after so many ends in a row."""
    return float(min(FIRST_PAUSE * 2 ** min(times - 1, 10), LONGEST_PAUSE))
