"""ElectionObserver: what an Elector tells."""

from __future__ import annotations

from enum import Enum

from kopylite.errors import Forbidden
from kopylite.leaderelection.lease import Lease


class LeaseChange(Enum):
    """What a process did with a Lease; the value is the word of the metric."""

    TAKEN = "taken"
    GIVEN_BACK = "given_back"
    LOST = "lost"


class ElectionObserver:
    """Told by an Elector; the defaults do nothing. Called from the event loop, must not block and must not raise."""

    def changed(self, lease: Lease, change: LeaseChange, note: str) -> None:
        """We became leader, or have stopped being one: and a sentence that says so."""

    def forbidden(self, error: Forbidden) -> None:
        """The server refused a request for the Lease."""

    async def ending(self) -> None:
        """The work of a leader has ended in order, and the Lease is still ours: send what has to come before."""
