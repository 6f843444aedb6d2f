"""The promise of the whole, with the real queue and real workers, in virtual time:

two runs of one key never overlap, a change during a run gives exactly one more run, and no change is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sizes import examples

if TYPE_CHECKING:
    from kopylite.client import Client
from kopylite.controller import Controller, ControllerSpec
from kopylite.errors import Conflict, TerminalError
from kopylite.objects import Kind
from kopylite.reconcile import Context, Environment, Request, Result
from kopylite.testing.clock import VirtualClock

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
KEYS = [Request("default", name) for name in "abc"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of tracebacks of runs that fail on purpose take longer than the runs."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@dataclass
class Run:
    began: float
    ended: float


@dataclass
class World:
    """A controller whose runs take as long, and end, as the script says."""

    workers: int
    durations: list[float]
    outcomes: list[str]
    clock: VirtualClock = field(default_factory=VirtualClock)
    runs: dict[Request, list[Run]] = field(default_factory=lambda: defaultdict(list))
    changes: dict[Request, list[float]] = field(default_factory=lambda: defaultdict(list))
    at_once: int = 0
    most_at_once: int = 0
    begun: int = 0

    def __post_init__(self) -> None:
        self.busy: set[Request] = set()
        self.controller = Controller(
            ControllerSpec(name="widget", kind=WIDGET, reconcile=self.reconcile, timeout=50.0),
            Environment("widget", cast("Client", None), clock=self.clock),
            workers=self.workers,
        )

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        assert request not in self.busy, f"{request} runs twice at once"
        self.busy.add(request)
        self.most_at_once = max(self.most_at_once, len(self.busy))
        self.begun += 1
        run = Run(self.clock.monotonic(), float("inf"))
        self.runs[request].append(run)
        try:
            await self.clock.sleep(self.durations[self.begun % len(self.durations)])
            return self.answer(self.outcomes[self.begun % len(self.outcomes)])
        finally:
            run.ended = self.clock.monotonic()
            self.busy.remove(request)

    def answer(self, outcome: str) -> Result | None:
        match outcome:
            case "conflict":
                raise Conflict("changed meanwhile")
            case "error":
                raise RuntimeError("no luck")
            case "terminal":
                raise TerminalError("hopeless")
            case "cancelled":
                raise asyncio.CancelledError
            case "requeue":
                return Result(requeue=True)
            case "later":
                return Result(requeue_after=3)
        return None

    def play(self, script: list[tuple[float, int]], until: float) -> None:
        """Make the changes of the script, let time pass until `until`, and stop."""

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.controller.run())
                for pause, number in script:
                    if pause:
                        await self.clock.sleep(pause)
                    request = KEYS[number]
                    self.changes[request].append(self.clock.monotonic())
                    self.controller.enqueue(request, "changed")
                await self.clock.sleep(until)
                await self.controller.drain(100.0)

        self.clock.run(main)


def expected_runs(changes: list[float], duration: float) -> list[Run]:
    """What one key must do if there is always a free worker: run at a change, or right after the run it fell into."""
    runs: list[Run] = []
    for change in changes:
        if not runs or change >= runs[-1].ended:
            began = change
        elif change > runs[-1].began:
            began = runs[-1].ended
        else:
            continue  # the run to come is not begun: it will see this change too
        runs.append(Run(began, began + duration))
    return runs


# Changes come on whole seconds and runs last for odd halves, so a change never falls on the end of a run.
scripts = st.lists(st.tuples(st.integers(0, 3).map(float), st.integers(0, 2)), max_size=25)


@given(scripts, st.sampled_from([0.5, 1.5, 4.5]))
@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
def test_a_change_starts_a_run_and_changes_during_a_run_start_exactly_one_more(
    script: list[tuple[float, int]], duration: float
) -> None:
    world = World(len(KEYS), [duration], ["success"])
    world.play(script, until=100.0)
    for key in KEYS:
        assert world.runs[key] == expected_runs(world.changes[key], duration)


@given(
    scripts,
    st.integers(1, 4),
    st.lists(st.sampled_from([0.0, 0.5, 1.5, 60.0]), min_size=1, max_size=5),
    st.lists(
        st.sampled_from(["success", "conflict", "error", "terminal", "cancelled", "requeue", "later"]),
        min_size=1,
        max_size=6,
    ),
)
@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
def test_whatever_runs_end_with_no_key_overlaps_itself_and_no_change_is_lost(
    script: list[tuple[float, int]], workers: int, durations: list[float], outcomes: list[str]
) -> None:
    world = World(workers, durations, outcomes)
    world.play(script, until=500.0)
    assert world.most_at_once <= workers
    for key in KEYS:
        runs = world.runs[key]
        for before, after in itertools.pairwise(runs):
            assert before.ended <= after.began
        if world.changes[key]:
            assert runs[-1].began >= world.changes[key][-1]
    statistics = world.controller.statistics()
    assert (statistics.active, statistics.queue.running) == (0, 0)
