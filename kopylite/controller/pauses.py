"""Pauses: which objects of a controller are paused by their annotation, and which runs wait for the end of that."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kopylite.boundary import show
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.reconcile.request import Request
from kopylite.triggers import PAUSED, RECONCILE_AT, Event, EventType, annotated
from kopylite.triggers.annotated import NOTHING
from kopylite.workqueue.ratelimiters import TokenBucket

logger = logging.getLogger("kopylite.controller")

# Somebody may pause ten thousand objects at once: so many lines at once, then one a second; the metric has them all.
LINE_BURST = 100
LINES_PER_SECOND = 1.0


class Pauses:
    """Hears of every change of a controller's own kind, before predicates drop any.

    A run of a paused object is not lost: its key is parked, and runs when the object is not paused any more, is being
    deleted, or is gone. What is known here is as old as the cache; a run that has begun goes on.

    Args:
        controller: its name, for the log.
        release: runs a key that was parked.
        clock: bounds the lines of the log.
        told: each pause asks for a run too: somebody writes it into the object's status.
    """

    def __init__(
        self,
        controller: str,
        release: Callable[[Request, int], None] = lambda request, priority: None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        told: bool = False,
    ) -> None:
        self._controller = controller
        self._release = release
        self._clock = clock
        self._told = told
        # Always the same set: whoever asks for each run may keep it.
        self.paused: set[Request] = set()
        self._parked: dict[Request, int] = {}
        self._lines = TokenBucket(LINES_PER_SECOND, LINE_BURST)

    def __len__(self) -> int:
        """How many objects are paused."""
        return len(self.paused)

    def __contains__(self, request: object) -> bool:
        return request in self.paused

    def park(self, request: Request, priority: int) -> None:
        """Keep a key whose object is paused until it is not."""
        self._parked[request] = max(priority, self._parked.get(request, priority))

    def drop(self, left: Callable[[Request], bool]) -> None:
        """Forget the keys of which this is true: nobody works on them here any more."""
        self.paused -= {request for request in self.paused if left(request)}
        self._parked = {request: priority for request, priority in self._parked.items() if not left(request)}

    def heard(self, event: Event) -> str:
        """Take a change in; what it asks for, in words for the reasons of a run, or "".

        What is asked for here concerns the object itself, whatever a predicate says of this kind of change.
        """
        now = annotated(event.new)
        if now is NOTHING and not self.paused:
            return ""
        record = event.record
        request = Request(record.namespace, record.name)
        before = annotated(event.old)
        if now.unclear is not None and now.unclear != before.unclear:
            self._say(logging.WARNING, event, request, f"not paused: the value {show(now.unclear)} of its annotation "
                      f'{PAUSED} means nothing; "true" pauses it')  # fmt: skip
        if now.paused:
            return self._pause(event, request)
        if request in self.paused:
            return self._resume(event, request)
        news = event.type is EventType.UPDATE and now.reconcile_at not in (None, before.reconcile_at)
        return f"{RECONCILE_AT} {show(now.reconcile_at)}" if news else ""

    def _pause(self, event: Event, request: Request) -> str:
        if request in self.paused:
            return ""
        self.paused.add(request)
        self._say(logging.INFO, event, request, f"paused by its annotation {PAUSED}: no run until that is gone")
        return f"paused by {PAUSED}" if self._told else ""

    def _resume(self, event: Event, request: Request) -> str:
        self.paused.discard(request)
        why = "not paused any more"
        if event.new is None:
            why = "gone"
        elif event.new.deletion_timestamp is not None:
            why = "being deleted, so its pause ends"
        self._say(logging.INFO, event, request, why)
        if request in self._parked:
            self._release(request, self._parked.pop(request))
        return why if event.new is not None else ""

    def _say(self, level: int, event: Event, request: Request, text: str) -> None:
        # What was so when the process began is no change; the controller says how many there are.
        known = event.initial and level < logging.WARNING
        if known or not self._lines.try_take(self._clock.monotonic()):
            level = logging.DEBUG
        fields = {"controller": self._controller, "namespace": request.namespace, "name": request.name}
        logger.log(level, "%s", text, extra={"fields": fields})
