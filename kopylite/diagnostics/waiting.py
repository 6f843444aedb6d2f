"""WaitingReport: says which caches are not in sync, why, and who waits for them, until they are.

What a person needs then is the missing RBAC rule or the name of the missing CRD, once and at once; and after that
a reminder that grows rarer. What waits for one reason is one line, in however many namespaces.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable

import msgspec

from kopylite.cache import Informer, Scope
from kopylite.client import MissingPermissions
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import Forbidden
from kopylite.troubleshooting import Trouble

logger = logging.getLogger("kopylite.manager")

# How often the informers are looked at; looking costs microseconds.
LOOK_SECONDS = 1.0
FIRST_REMINDER = 10.0
LONGEST_REMINDER = 300.0
SHOWN_NAMESPACES = 5

Waiters = Callable[[Scope], Iterable[str]]
"""The names of the controllers that wait for a scope."""

_Cause = tuple[Scope, type[Exception] | None]
"""What informers have in common that are told of together: the scope without its namespace, and the problem."""


class _Wait(msgspec.Struct):
    """An informer that is not in sync: since when. `troubled`: somebody has read of it, so its end is news."""

    since: float
    troubled: bool = False


class _Reminder(msgspec.Struct):
    """When to remind of a cause, and with what pause after that."""

    next: float
    pause: float = FIRST_REMINDER


class WaitingReport:
    """Watches informers for as long as `run` runs.

    Args:
        informers: all that there are, asked at each look.
        waiters: who waits for one.
        permissions: collects what the server refuses; what is missing is told by this report.
    """

    def __init__(
        self,
        informers: Callable[[], Iterable[Informer]],
        waiters: Waiters,
        permissions: MissingPermissions,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._informers = informers
        self._waiters = waiters
        self._permissions = permissions
        self._clock = clock
        self._waits: dict[Scope, _Wait] = {}
        self._reminders: dict[_Cause, _Reminder] = {}

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self.look(self._clock.monotonic())

    def look(self, now: float) -> None:
        """Report what has to be said at this moment."""
        known = {informer.scope: informer for informer in self._informers()}
        waiting = {scope: informer for scope, informer in known.items() if not informer.synced}
        self._tell_ends(waiting.keys(), known, now)
        causes: dict[_Cause, list[Informer]] = {}
        for scope, informer in waiting.items():
            wait, problem = self._waits.setdefault(scope, _Wait(now)), informer.problem
            wait.troubled |= problem is not None
            causes.setdefault((_everywhere(scope), type(problem.error) if problem else None), []).append(informer)
            if problem is not None and isinstance(problem.error, Forbidden):
                self._permissions.note(problem.error, now)
        for text in self._permissions.news(now):
            logger.error("%s", text)
        for cause in self._reminders.keys() - causes.keys():
            del self._reminders[cause]
        for cause, informers in causes.items():
            reminder = self._reminders.setdefault(cause, _Reminder(now + FIRST_REMINDER))
            # Of one cause there may always be somebody who waits, and nobody for long.
            if now >= reminder.next and now - min(self._waits[one.scope].since for one in informers) >= FIRST_REMINDER:
                self._remind(informers, reminder, now)

    def _tell_ends(self, waiting: Iterable[Scope], known: Container[Scope], now: float) -> None:
        ended: dict[Scope, list[Scope]] = {}
        longest = 0.0
        for scope in self._waits.keys() - waiting:
            wait = self._waits.pop(scope)
            if wait.troubled and scope in known:  # else nobody uses it any more
                ended.setdefault(_everywhere(scope), []).append(scope)
                longest = max(longest, now - wait.since)
        for scopes in ended.values():
            logger.info("the cache of %s is in sync, after %.0f s", _named(scopes), longest)

    def _remind(self, informers: list[Informer], reminder: _Reminder, now: float) -> None:
        reminder.pause = min(reminder.pause * 2, LONGEST_REMINDER)
        reminder.next = now + reminder.pause
        scopes = [informer.scope for informer in informers]
        for scope in scopes:
            self._waits[scope].troubled = True
        waiters = sorted({waiter for scope in scopes for waiter in self._waiters(scope)})
        now_state = informers[0].statistics()
        logger.warning(
            "waiting for the cache of %s for %.0f s%s: %s; see %s",
            _named(scopes),
            now - min(self._waits[scope].since for scope in scopes),
            f"; controllers that wait: {', '.join(waiters)}" if waiters else "",
            now_state.problem or f"{now_state.phase}, {now_state.objects} objects so far",
            Trouble.NOTHING_HAPPENS if now_state.problem else Trouble.SLOW,
        )


def reasons_of(informers: Iterable[Informer], name: str, *, limited: bool = False) -> list[str]:
    """Why informers are not in sync, one text each, and the rules that are missing, as an operator called `name`."""
    texts, permissions = [], MissingPermissions(name, limited=limited)
    for informer in informers:
        if not informer.synced:
            now, problem = informer.statistics(), informer.problem
            texts.append(f"{informer.scope}: {now.problem or f'{now.phase}, {now.objects} objects so far'}")
            if problem is not None and isinstance(problem.error, Forbidden):
                permissions.note(problem.error, 0.0)
    return [*texts, *permissions.news(0.0)]


def _everywhere(scope: Scope) -> Scope:
    return msgspec.structs.replace(scope, namespace="")


def _named(scopes: list[Scope]) -> str:
    """One scope in full; of several, which differ in their namespaces, the first few."""
    if len(scopes) == 1:
        return str(scopes[0])
    namespaces = sorted(scope.namespace for scope in scopes)
    more = len(namespaces) - SHOWN_NAMESPACES
    shown = ", ".join(namespaces[:SHOWN_NAMESPACES]) + (f" and {more} more" if more > 0 else "")
    return f"{_everywhere(scopes[0])} in the namespaces {shown}"
