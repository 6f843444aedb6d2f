"""Incarnation: one life of the operator, from its start to its crash."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from kopylite.boundary import say
from kopylite.clock import Clock
from kopylite.manager import Manager, Options
from kopylite.reconcile.effects import EFFECTS, EffectWatcher
from kopylite.sweep.source import AppSource
from kopylite.sweep.transport import Link
from kopylite.sweep.webhooks import WithoutWebhooks
from kopylite.workqueue import QueueStatistics

OPTIONS = Options(metrics_address="off", health_address="off", grace_period=1.0, leader_election=False)


class Incarnation:
    """Runs the App with a memory of its own. A crash takes all from it at once: what runs on cannot reach anything.

    Args:
        source: makes the App.
        link: its way to the server.
        on_end: told why it ended by itself.
        effects: hears of its calls that leave the cluster.

    Attributes:
        manager: what runs it; None before its modules are imported.
    """

    def __init__(
        self, source: AppSource, link: Link, clock: Clock, on_end: Callable[[str], None], effects: EffectWatcher
    ) -> None:
        self.link = link
        self.manager: Manager | None = None
        self._source = source
        self._clock = clock
        self._on_end = on_end
        self._effects = effects
        self._scope = anyio.CancelScope()

    async def run(self) -> None:
        """Live, until it crashes or ends."""
        EFFECTS.set(self._effects)
        with self._scope:
            try:
                app = WithoutWebhooks(self._source.load())
                self.manager = Manager(
                    app,
                    self.link.config(),
                    OPTIONS,
                    clock=self._clock,
                    connect=self.link.connect,
                    reports=False,
                )
                await self.manager.run()
            except Exception as error:
                if self.link.alive:
                    self._on_end(_why(error))
                return
            if self.link.alive:
                self._on_end("it ended by itself")

    def crash(self) -> None:
        """End at once: no request of it arrives any more, its clean-up's neither."""
        self.link.cut()
        self._scope.cancel()

    @property
    def synced(self) -> bool:
        """Whether it knows all that it watches, and works on it."""
        return self.manager is not None and self.manager.synced

    def busy(self) -> bool:
        """Whether a reconcile runs, or could."""
        return any(queue.running or queue.ready for queue in self._queues())

    def failing(self) -> int:
        """How many keys have failed, and not worked since."""
        return sum(queue.failing for queue in self._queues())

    def _queues(self) -> list[QueueStatistics]:
        return [each.statistics().queue for each in (self.manager.controllers if self.manager else ())]


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return say(error)
