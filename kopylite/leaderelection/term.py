"""Term: the time for which a candidate leads, and what is told of it. It ends once: given back in order, or lost."""

from __future__ import annotations

import asyncio
import logging

import anyio

from kopylite.clock import Clock
from kopylite.leaderelection.fence import Fence
from kopylite.leaderelection.lease import Lease
from kopylite.leaderelection.observer import ElectionObserver, LeaseChange
from kopylite.leaderelection.settings import LeaseSettings
from kopylite.troubleshooting import Trouble

logger = logging.getLogger("kopylite.leaderelection")

# How often it is told of leader work that does not end, in seconds.
OVERDUE = 5.0


class Term:
    """One term of a candidate, from the Lease that it took until all its work has ended.

    Args:
        settings: of the Lease.
        identity: of the candidate.
        won: the Lease, as it was taken.
        fence: closed when the term ends, whichever way.
        clock: of everything.
        observer: told of its begin and of its end.

    Attributes:
        scope: of the leader's work, which is cancelled when the Lease is lost.
    """

    def __init__(
        self, settings: LeaseSettings, identity: str, won: Lease, fence: Fence, clock: Clock, observer: ElectionObserver
    ) -> None:
        self.scope = anyio.CancelScope()
        self._settings = settings
        self._identity = identity
        self._won = won
        self._fence = fence
        self._clock = clock
        self._observer = observer
        self._in_order = False
        self._lost_why = ""
        self._lost_at: float | None = None
        self._reminder: asyncio.TimerHandle | None = None

    @property
    def overdue(self) -> float:
        """For how many seconds its work has been going on after the Lease was lost."""
        return 0.0 if self._lost_at is None else self._clock.elapsed() - self._lost_at

    def begin(self) -> None:
        """Tell that it was taken."""
        logger.info("lease %s: %s leads", self._settings, self._identity)
        self._observer.changed(self._won, LeaseChange.TAKEN, f"{self._identity} became leader")

    async def end_in_order(self) -> None:
        """Its work has ended by itself. What was lost before, and has only caught its cancellation, stays lost."""
        if not self.scope.cancel_called:
            self._in_order = True
            self._observer.changed(self._won, LeaseChange.GIVEN_BACK, f"{self._identity} stopped leading")
            await self._observer.ending()

    def lose(self, why: str) -> None:
        """The Lease is lost: no write goes out any more, and the work is cancelled."""
        if self._lost_why:
            return  # more than one finds it, as a renewal that does not heed its cancellation
        self._lost_why = why
        self._close_fence()
        self.scope.cancel()
        if self._in_order:  # which has been told, and stays so
            logger.info("lease %s is lost: %s. Leader work had ended before", self._settings, why)
            return
        self._lost_at = self._clock.elapsed()
        logger.warning(
            "lease %s is lost: %s. Leader work is cancelled. See %s", self._settings, why, Trouble.LOST_LEASE
        )
        self._remind_later()

    def over(self) -> None:
        """All of its work has ended, by itself or by a fault."""
        self._close_fence()
        if self._reminder is not None:
            self._reminder.cancel()
        if self._lost_why and not self._in_order:
            logger.warning("lease %s: all leader work has ended", self._settings)
            message = f"{self._identity} stopped leading: {self._lost_why}"
            self._observer.changed(self._won, LeaseChange.LOST, message)

    def _close_fence(self) -> None:
        self._fence.until = min(self._fence.until, self._clock.elapsed())

    def _remind_later(self) -> None:
        self._reminder = asyncio.get_running_loop().call_later(OVERDUE, self._remind)

    def _remind(self) -> None:
        logger.error(
            "lease %s was lost %.0f s ago, and leader work goes on: some of it does not heed its cancellation. "
            "Its writes through ctx.client are refused; what else it does is not. Liveness fails. See %s",
            self._settings,
            self.overdue,
            Trouble.LOST_LEASE,
        )
        self._remind_later()
