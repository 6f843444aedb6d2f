"""WaitingReport: says which caches are not in sync, why, and who waits for them, until they are.

What a person needs then is the missing RBAC rule or the name of the missing CRD, once and at once; and after that
a reminder that grows rarer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kopylite.cache import Informer, Scope
from kopylite.client import rbac_rule
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import Forbidden

logger = logging.getLogger("kopylite.manager")

# How often the informers are looked at; looking costs microseconds.
LOOK_SECONDS = 1.0
FIRST_REMINDER = 10.0
LONGEST_REMINDER = 300.0

Waiters = Callable[[Scope], Iterable[str]]
"""The names of the controllers that wait for a scope."""


@dataclass(slots=True)
class _Wait:
    """An informer that is not in sync: since when, when to remind of it, and with what pause after that.

    `troubled`: somebody has read of it, so its end is news.
    """

    since: float
    next_reminder: float
    pause: float = FIRST_REMINDER
    troubled: bool = False
    rule_shown: bool = False


class WaitingReport:
    """Watches informers for as long as `run` runs.

    Args:
        informers: all that there are, asked at each look.
        waiters: who waits for one.
    """

    def __init__(
        self, informers: Callable[[], Iterable[Informer]], waiters: Waiters, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._informers = informers
        self._waiters = waiters
        self._clock = clock
        self._waits: dict[Scope, _Wait] = {}

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self.look(self._clock.monotonic())

    def look(self, now: float) -> None:
        """Report what has to be said at this moment."""
        waiting = {informer.scope: informer for informer in self._informers() if not informer.synced}
        for scope in self._waits.keys() - waiting.keys():
            wait = self._waits.pop(scope)
            if wait.troubled:
                logger.info("the cache of %s is in sync, after %.0f s", scope, now - wait.since)
        for scope, informer in waiting.items():
            wait = self._waits.setdefault(scope, _Wait(now, now + FIRST_REMINDER))
            wait.troubled |= informer.problem is not None
            self._show_rule(informer, wait)
            if now >= wait.next_reminder:
                self._remind(informer, wait, now)

    def _show_rule(self, informer: Informer, wait: _Wait) -> None:
        problem = informer.problem
        if wait.rule_shown or problem is None or not isinstance(problem.error, Forbidden):
            return
        wait.rule_shown = True
        if rule := rbac_rule(problem.error):
            logger.error("the cache of %s may not list and watch. This RBAC rule is missing:\n%s", informer.scope, rule)

    def _remind(self, informer: Informer, wait: _Wait, now: float) -> None:
        wait.troubled = True
        wait.pause = min(wait.pause * 2, LONGEST_REMINDER)
        wait.next_reminder = now + wait.pause
        waiters = ", ".join(self._waiters(informer.scope))
        now_state = informer.statistics()
        logger.warning(
            "waiting for the cache of %s for %.0f s%s: %s",
            informer.scope,
            now - wait.since,
            f"; controllers that wait: {waiters}" if waiters else "",
            now_state.problem or f"{now_state.phase}, {now_state.objects} objects so far",
        )
