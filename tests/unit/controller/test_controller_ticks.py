from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import anyio

from kopylite.controller import Controller, ControllerSpec, Timer
from kopylite.controller.ticks import Ticks
from kopylite.errors import TerminalError
from kopylite.objects import Kind, Unstructured
from kopylite.reconcile import Context, Environment, Request, Result
from kopylite.testing.clock import VirtualClock

if TYPE_CHECKING:
    from kopylite.client import Client

WIDGET = Kind("example.com/v1", "Widget")
A = Request("default", "a")


class World:
    """A controller with a timer, in virtual time. `answers` are those of the runs, and then None."""

    def __init__(self, timer: Timer, *answers: Result | Exception, lasts: float = 0.0) -> None:
        self.clock = VirtualClock()
        self.began = self.clock.now()
        self.ahead = 0.0  # of the server's clock
        self.objects: dict[Request, str] = {}
        self.runs: list[float] = []
        self._answers, self._lasts = [*answers], lasts
        spec = ControllerSpec(name="tick", kind=WIDGET, reconcile=self.reconcile, timer=timer)
        environment = Environment("tick", cast("Client", None), clock=self.clock)
        self.controller = Controller(spec, environment, find=self.find)

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        self.runs.append((self.clock.now() - self.began).total_seconds())
        await self.clock.sleep(self._lasts)
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find(self, request: Request) -> Unstructured | None:
        if request not in self.objects:
            return None
        created = (self.began + timedelta(seconds=self.ahead)).isoformat()
        return Unstructured(metadata={"name": request.name, "uid": self.objects[request], "creationTimestamp": created})

    def play(self, seconds: float, *, events: float = 0.0, gone_at: float = 0.0) -> list[float]:
        """The times of all runs. The object is there from the start; each `events` seconds it is told of again."""

        async def happen() -> None:
            while True:
                self.controller.enqueue(A, "Widget created")
                await self.clock.sleep(events or 1e6)

        async def main() -> None:
            self.objects[A] = "uid"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.controller.run)
                tasks.start_soon(happen)
                if gone_at:
                    await self.clock.sleep(gone_at)
                    del self.objects[A]
                    self.controller.enqueue(A, "Widget deleted")
                await self.clock.sleep(seconds - gone_at)
                tasks.cancel_scope.cancel()

        self.clock.run(main)
        return [round(run, 2) for run in self.runs]


def test_it_runs_at_its_times_however_long_it_takes_and_however_many_events_there_are() -> None:
    timer = Timer(every=10.0, start_after=3.0, jitter=0.0)
    assert World(timer, lasts=4.0).play(35.0) == [3.0, 13.0, 23.0, 33.0]
    assert World(timer).play(35.0, events=0.7) == [3.0, 13.0, 23.0, 33.0]
    assert World(timer, lasts=12.0).play(45.0) == [3.0, 23.0, 43.0], "a time that falls into a run is left out"


def test_what_a_run_asks_for_comes_first_and_then_the_schedule() -> None:
    timer = Timer(every=10.0, jitter=0.0)
    assert World(timer, Result(requeue_after=2.0)).play(25.0) == [0.0, 2.0, 10.0, 20.0]
    assert World(timer, Result()).play(25.0) == [0.0, 10.0, 20.0], "it asks for nothing"
    failing = World(timer, ValueError("not now"), ValueError("nor now")).play(25.0)
    assert failing[0] == 0.0
    assert len([run for run in failing if run < 1.0]) == 3, "it is tried again"
    assert failing[3:] == [10.0, 20.0]
    assert World(timer, TerminalError("never")).play(25.0) == [0.0]


def test_an_object_that_is_gone_is_let_go_at_once() -> None:
    world = World(Timer(every=10.0, jitter=0.0))
    assert world.play(50.0, gone_at=15.0) == [0.0, 10.0]
    assert world.controller.statistics().queue.waiting == 0


def test_a_server_whose_clock_is_ahead_delays_no_first_run() -> None:
    world = World(Timer(every=10.0, jitter=0.0))
    world.ahead = 300.0
    runs = world.play(25.0)
    assert runs[0] == 0.0
    assert len(runs) == 3


def test_nothing_is_kept_of_an_object_that_is_gone_and_what_is_no_result_is_handed_on() -> None:
    objects = {A: Unstructured(metadata={"name": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"})}
    ticks = Ticks(Timer(every=10.0, jitter=0.0), objects.get, clock := VirtualClock())

    later = cast("Result", "later")

    async def careless(ctx: Context, request: Request) -> Result:
        return later

    async def main() -> None:
        tick = ticks.around(careless)
        ctx = Context(Environment("tick", cast("Client", None), clock=clock), A)
        assert await tick(ctx, A) is later, "for whoever complains of it"
        assert len(ticks.schedule) == 1
        objects.clear()
        assert await tick(ctx, A) is None
        assert len(ticks.schedule) == 0

    clock.run(main)
