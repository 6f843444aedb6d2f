from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import pytest

from kopylite.cache import Record, SharedCache, Store
from kopylite.objects import Kind
from kopylite.reconcile import Request
from kopylite.triggers import EnqueueMapped, EnqueueObject, KindSource, echoes
from kopylite.triggers.echoes import Echoes
from kopylite.triggers.events import Event, EventType
from kopylite.triggers.handlers import Handler
from tests.chaos.faultserver import FaultServer
from tests.unit.cache.things import thing
from tests.unit.triggers.test_triggers_sources import THING, Asked, with_cache


class World:
    """Reads come from `store`, which is at version 5; the watch has another one."""

    def __init__(self) -> None:
        self.store: Store | None = Store()
        self.store.advance("5")
        self.own = Store()
        self.echoes = Echoes(THING, self.own, self)
        self.told: list[str] = []

    def store_for(self, kind: Kind, namespace: str) -> Store | None:
        assert (kind, namespace) == (THING, "ns")
        return self.store

    def note(self, name: str, version: int) -> None:
        self.echoes.note(Event(EventType.UPDATE, None, thing(name=name, version=version)))

    def hand_on(self, event: Event) -> None:
        self.told.append(f"{event.record.name} {event.record.resource_version}")

    async def during(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.echoes.run, self.hand_on)
            await anyio.wait_all_tasks_blocked()
            await scenario()
            tasks.cancel_scope.cancel()


async def test_an_event_that_reads_show_is_not_kept() -> None:
    world = World()
    world.note("a", 5)
    world.store = None
    world.note("a", 9)
    world.store = world.own
    world.note("a", 9)
    assert not len(world.echoes)


async def test_an_event_that_is_ahead_of_reads_is_handed_on_when_they_have_caught_up() -> None:
    world = World()

    async def scenario() -> None:
        assert world.store is not None
        world.note("a", 7)
        world.note("b", 8)
        await anyio.wait_all_tasks_blocked()
        assert world.told == []
        world.store.advance("7")
        await anyio.wait_all_tasks_blocked()
        assert world.told == ["a 7"]
        world.store.advance("9")
        await anyio.wait_all_tasks_blocked()
        assert world.told == ["a 7", "b 8"]
        assert not len(world.echoes)

    await world.during(scenario)


async def test_of_an_object_the_newest_event_is_handed_on() -> None:
    world = World()

    async def scenario() -> None:
        assert world.store is not None
        for version in (7, 8):
            world.note("a", version)
            await anyio.wait_all_tasks_blocked()
        assert len(world.echoes) == 1
        world.store.advance("7")
        await anyio.wait_all_tasks_blocked()
        assert world.told == []
        world.store.advance("8")
        await anyio.wait_all_tasks_blocked()
        assert world.told == ["a 8"]

    await world.during(scenario)


async def test_a_cache_that_stays_behind_holds_up_no_other_and_one_that_goes_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(echoes, "LOOK_AGAIN", 0.01)
    world = World()
    again = anyio.Event()

    async def scenario() -> None:
        assert world.store is not None
        world.note("late", 9)
        world.note("a", 6)
        world.store.advance("6")
        with anyio.fail_after(5):
            while world.told != ["a 6"]:
                await anyio.lowlevel.checkpoint()
        world.store = None
        with anyio.fail_after(5):
            while len(world.told) < 2:
                await anyio.lowlevel.checkpoint()
        again.set()

    await world.during(scenario)
    assert again.is_set()
    assert world.told == ["a 6", "late 9"]


async def itself(record: Record) -> list[Request]:
    return [Request(record.namespace, record.name)]


@pytest.mark.parametrize("make", [EnqueueObject, partial(EnqueueMapped, itself)])
async def test_a_narrowed_watch_asks_twice_where_reads_are_behind_and_once_where_they_are_not(
    make: Callable[[], Handler],
) -> None:
    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        class Behind:
            store = Store()

            def store_for(self, kind: Kind, namespace: str) -> Store:
                return self.store

        reads = Behind()
        reads.store.advance("0")
        asked = Asked()
        source = KindSource(cache, THING, make(), metadata_only=True)
        source.reads = reads
        tasks.start_soon(source.run, asked)
        await asked.count(1)
        await anyio.wait_all_tasks_blocked()
        assert asked.names == ["a"]
        reads.store.advance(source.informer.store.newest())
        await asked.count(2)
        assert [request for request, _, _ in asked.asks] == [Request("ns", "a")] * 2
        reads.store.advance("1000")
        server.put("b")
        await asked.count(3)
        await anyio.wait_all_tasks_blocked()
        assert asked.names == ["a", "a", "b"]

    await with_cache(scenario)
