"""ElectionObserver: what an Elector tells."""

from __future__ import annotations

from kopylite.errors import Forbidden
from kopylite.leaderelection.lease import Lease


class ElectionObserver:
    """Told by an Elector; the defaults do nothing. Called from the event loop, must not block and must not raise."""

    def changed(self, lease: Lease, note: str) -> None:
        """We became leader, or have stopped being one: a sentence that says so."""

    def forbidden(self, error: Forbidden) -> None:
        """The server refused a request for the Lease."""

    async def ending(self) -> None:
        """The work of a leader has ended in order, and the Lease is still ours: send what has to come before."""
