"""A crew: controllers that begin and end together, once or in each term."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest

from kopylite.cache import Informer
from kopylite.leaderelection import Elector
from kopylite.lifecycle.taskforce import TaskForce
from kopylite.manager.crew import Crew
from kopylite.manager.feeds import Feed
from kopylite.triggers import KindSource


class Source:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.complete = anyio.Event()

    async def wait_synced(self) -> None:
        await self.complete.wait()


class CachedSource(KindSource):
    """Has never run, as those of a standby have not; its cache may be in sync all the same."""

    def __init__(self, namespace: str) -> None:
        self.cached = Source(namespace)
        self.informer = cast("Informer", self.cached)

    @property
    def namespace(self) -> str:
        return self.cached.namespace

    async def wait_synced(self) -> None:
        await anyio.sleep_forever()


class Controller:
    def __init__(self, world: World, number: int) -> None:
        self.name = f"c{number}"
        self.sources = [Source("late"), Source("")]
        self._world = world
        self._over = anyio.Event()

    async def run(self) -> None:
        self._world.story.append(f"{self.name} runs")
        if self._world.ends_by_itself:
            return
        await self._over.wait()

    async def drain(self, grace: float) -> bool:
        self._world.story.append(f"{self.name} drains for {grace:g} s")
        self._over.set()
        if self._world.drains_for_ever:
            await anyio.sleep_forever()
        await asyncio.sleep(0)
        return self._world.drains


class World:
    """Makes what a crew is made of, and tells what became of it."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.drains = True
        self.drains_for_ever = False
        self.ends_by_itself = False
        self.tasks_run = False
        self._made = 0

    def make(self) -> Feed:
        self._made += 1
        controller = Controller(self, self._made)
        self.story.append(f"{controller.name} made")
        world = self

        class Fed:
            def __init__(self) -> None:
                self.controller = controller

            def close(self) -> None:
                world.story.append(f"{controller.name} closed")

        return cast("Feed", Fed())

    def crew(self, elector: Terms | None = None, *, warm: bool = True) -> Crew:
        return Crew([self.make], 5.0, cast("Elector | None", elector), cast("TaskForce", Tasks(self)), warm=warm)


class Tasks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._over = anyio.Event()

    async def run(self) -> None:
        self._over = anyio.Event()
        self._world.tasks_run = True
        await self._over.wait()
        self._world.tasks_run = False

    async def end(self) -> None:
        self._world.story.append("tasks end")
        self._over.set()


class Terms:
    """An elector that leads when it is told to."""

    def __init__(self) -> None:
        self.stopped = False
        self._leads: list[anyio.Event] = [anyio.Event()]

    def stop(self) -> None:
        self.stopped = True
        self._leads[-1].set()

    def lead(self) -> None:
        self._leads[-1].set()

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._leads[-1].wait()
            if self.stopped:
                return
            self._leads.append(anyio.Event())
            await work()
            if self.stopped:
                return


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def names(controllers: Any) -> list[str]:
    return [controller.name for controller in controllers]


async def test_without_an_election_it_works_from_the_start_until_it_is_stopped() -> None:
    world = World()
    crew = world.crew()
    assert names(crew.controllers) == names(crew.working) == ["c1"]
    with anyio.fail_after(5):
        async with anyio.create_task_group() as running:
            running.start_soon(crew.run)
            await turns()
            assert world.story == ["c1 made", "c1 runs"], "what was made first is what runs"
            assert world.tasks_run
            crew.stop()
    assert world.story[2:] == ["c1 drains for 5 s", "tasks end"], "tasks end after the last reconcile"
    assert crew.finished
    assert names(crew.working) == ["c1"], "its numbers are still of interest"


@pytest.mark.parametrize("drains", [True, False])
async def test_it_says_whether_the_running_reconciles_ended_by_themselves(drains: bool) -> None:
    world = World()
    world.drains = drains
    crew = world.crew()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as running:
            running.start_soon(crew.run)
            await turns()
            crew.stop()
    assert crew.finished is drains


async def test_one_that_lost_its_lease_while_reconciles_were_ending_has_not_finished_and_one_that_never_led_has() -> (
    None
):
    world, terms = World(), Terms()
    crew = world.crew(terms)
    assert crew.finished
    world.drains_for_ever = True
    with anyio.fail_after(5):
        async with anyio.create_task_group() as running:
            running.start_soon(crew.run)
            terms.lead()
            await turns()
            crew.stop()
            await turns()
            running.cancel_scope.cancel()
    assert not crew.finished


async def test_each_term_has_controllers_of_its_own_and_the_caches_stay_between() -> None:
    world, terms = World(), Terms()
    world.drains = False
    crew = world.crew(terms)
    assert names(crew.controllers) == ["c1"]
    assert names(crew.working) == [], "somebody else leads"
    with anyio.fail_after(5):
        async with anyio.create_task_group() as running:
            running.start_soon(crew.run)
            await turns()
            assert "c1 runs" not in world.story
            terms.lead()
            await turns()
            assert names(crew.working) == ["c1"]
            crew.hand_over()
            await turns()
            assert names(crew.working) == []
            assert crew.finished, "a term that ends is not the end of the process"
            assert "c1 closed" not in world.story, "they wait for the next term, so their caches stay"
            terms.lead()
            await turns()
            assert names(crew.working) == ["c2"]
            crew.stop()
    assert terms.stopped
    assert world.story.index("c2 made") < world.story.index("c1 closed"), "the caches have a user all the time"
    assert "c2 closed" not in world.story
    assert not crew.finished


async def test_one_that_is_not_warm_holds_caches_in_its_terms_only() -> None:
    world, terms = World(), Terms()
    crew = world.crew(terms, warm=False)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as running:
            running.start_soon(crew.run)
            await turns()
            assert (world.story, names(crew.controllers)) == ([], [])
            for name in ("c1", "c2"):
                terms.lead()
                await turns()
                assert names(crew.working) == [name]
                crew.hand_over()
                await turns()
                assert world.story[-1] == f"{name} closed"
                assert names(crew.controllers) == []
            crew.stop()


async def test_one_that_was_stopped_before_its_term_ends_it_at_once() -> None:
    world = World()
    crew = world.crew()
    crew.stop()
    with anyio.fail_after(5):
        await crew.run()
    assert world.story[-2:] == ["c1 drains for 5 s", "tasks end"]


async def test_a_controller_that_ends_by_itself_is_a_defect_and_not_a_quiet_end() -> None:
    world = World()
    world.ends_by_itself = True
    with anyio.fail_after(5), pytest.raises(ExceptionGroup) as raised:
        await world.crew().run()
    assert raised.group_contains(RuntimeError, match="controller c1 ended by itself")


async def test_it_is_warm_when_all_sources_are_but_those_of_namespaces_that_are_excused() -> None:
    crew = World().crew()
    late, everywhere = cast("Any", crew.controllers[0]).sources
    with anyio.move_on_after(0.05) as scope:
        await crew.wait_warm(frozenset({"late"}))
    assert scope.cancelled_caught
    everywhere.complete.set()
    with anyio.fail_after(5):
        await crew.wait_warm(frozenset({"late"}))
    with anyio.move_on_after(0.05) as scope:
        await crew.wait_warm()
    assert scope.cancelled_caught
    late.complete.set()
    with anyio.fail_after(5):
        await crew.wait_warm()


@pytest.mark.parametrize("led", [True, False])
async def test_a_standby_is_warm_when_its_caches_are_in_sync_though_nothing_of_it_runs(led: bool) -> None:
    crew = World().crew(Terms() if led else None)
    source, gate = CachedSource(""), Source("")
    cast("Any", crew.controllers[0]).sources = [source, gate]

    async def is_warm() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await crew.wait_warm()
        return not scope.cancelled_caught

    gate.complete.set()
    assert not await is_warm()
    source.cached.complete.set()
    assert await is_warm() is led, "one that works at once has to be told of all that is there"
