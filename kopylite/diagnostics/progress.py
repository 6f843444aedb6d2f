"""ProgressReport: says how far the controllers are, as long as they are behind: at the start, and after a backlog."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.controller import Controller
from kopylite.troubleshooting import Trouble

logger = logging.getLogger("kopylite.manager")

# How often the queues are looked at; looking costs microseconds.
LOOK_SECONDS = 1.0
# A queue whose oldest key waits for less has no backlog, however many keys pass through it.
BEHIND_SECONDS = 10.0
LINE_SECONDS = 10.0
BAR_LENGTH = 24


class Bar(Protocol):
    """A line at the end of a terminal."""

    def show(self, text: str) -> None:
        """Show a text instead of the one before; "": nothing."""


class Progress(msgspec.Struct, frozen=True):
    """How far a controller is. `rate` is in keys a second, over the last seconds."""

    name: str
    done: int
    left: int
    rate: float

    @property
    def remaining(self) -> str:
        """About how long the rest takes."""
        return f"about {self.left / self.rate:.0f} s more" if self.rate else "no run ended lately"

    def __str__(self) -> str:
        numbers = f"{self.done} keys done, {self.left} left, {self.rate:.1f} a second"
        return f"controller {self.name}: {numbers}, {self.remaining}"


class Backlog:
    """What one controller has to catch up with.

    A controller is behind when its oldest ready key has been ready for long; a busy one whose keys are always fresh is
    not.
    """

    def __init__(self, controller: Controller, now: float) -> None:
        self._controller = controller
        self.behind = False
        self._began = self._line_at = self._rate_at = now
        self._done_before = self._rate_done = controller.runs
        self._rate = 0.0

    def look(self, now: float) -> Progress | str | None:
        """How far it is, if it is behind; a text when it has just caught up."""
        queue, runs = self._controller.statistics().queue, self._controller.runs
        if not queue.ready:
            caught_up = f"controller {self._controller.name} has caught up: {runs - self._done_before} keys in "
            caught_up += f"{now - self._began:.0f} s"
            was_behind = self.behind
            self._restart(now)
            return caught_up if was_behind else None
        if not self.behind and queue.longest_ready < 2 * LOOK_SECONDS:
            self._restart(now)
        if not self.behind and (queue.longest_ready < BEHIND_SECONDS or not (queue.running or runs)):
            return None
        self.behind = True
        if now - self._rate_at >= LINE_SECONDS or not self._rate:
            self._rate = (runs - self._rate_done) / max(now - self._rate_at, LOOK_SECONDS)
            self._rate_at, self._rate_done = now, runs
        return Progress(self._controller.name, runs - self._done_before, queue.ready, self._rate)

    def line(self, progress: Progress, now: float) -> str:
        """What to write of its progress now, with the slowest run since the last line; "": it is not time for it."""
        if now - self._line_at < LINE_SECONDS:
            return ""
        first, self._line_at = self._line_at == self._began, now
        slowest = self._controller.slowest()
        text = f"{progress}; slowest: {slowest}" if slowest else str(progress)
        return f"{text}. See {Trouble.SLOW}" if first else text

    def _restart(self, now: float) -> None:
        runs = self._controller.runs
        self._controller.slowest()  # what was before is no part of it
        self.behind = False
        self._began = self._line_at = self._rate_at = now
        self._done_before = self._rate_done = runs
        self._rate = 0.0


class ProgressReport:
    """Looks at the queues of some controllers for as long as `run` runs.

    Args:
        controllers: all that work, asked each time.
        bar: of a terminal; asked each time. None: a line every 10 s in the log instead.
    """

    def __init__(
        self,
        controllers: Callable[[], Iterable[Controller]],
        bar: Callable[[], Bar | None],
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._bar = bar
        self._controllers = controllers
        self._backlogs: dict[Controller, Backlog] = {}

    async def run(self) -> None:
        """Report until cancelled."""
        try:
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                self.look(self._clock.monotonic())
        finally:
            if (bar := self._bar()) is not None:
                bar.show("")

    def look(self, now: float) -> None:
        """Report what there is to be said at this moment."""
        bar, behind = self._bar(), list[Progress]()
        known = self._backlogs
        self._backlogs = {each: known.get(each) or Backlog(each, now) for each in self._controllers()}
        for backlog in self._backlogs.values():
            found = backlog.look(now)
            if isinstance(found, str):
                logger.info("%s", found)
            elif found is not None:
                behind.append(found)
                if bar is None and (line := backlog.line(found, now)):
                    logger.info("%s", line)
        if bar is not None:
            bar.show(drawn(behind))


def drawn(behind: list[Progress]) -> str:
    """A bar for all that is behind; "" for nothing."""
    if not behind:
        return ""
    done, left = sum(one.done for one in behind), sum(one.left for one in behind)
    full = BAR_LENGTH * done // (done + left)
    most = max(behind, key=lambda one: one.left)
    more = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
    return f"[{'#' * full}{'.' * (BAR_LENGTH - full)}] {done}/{done + left} keys, {most.name}{more}: {most.remaining}"
