"""A Manager over an API server in this process, in virtual time: its shards, its hooks, what it says of itself."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite import App, Context, Kind, Request, Result
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.client import Client
from kopylite.errors import LifecycleError
from kopylite.leaderelection import LEASE
from kopylite.manager import Manager, Options
from kopylite.reconcile.recorder import RECREATED
from kopylite.serving.routes import Query
from kopylite.sweep.transport import Link, MemoryTransport
from kopylite.testing.clock import VirtualClock

CONFIG_MAP, EVENT = Kind("v1", "ConfigMap"), Kind("events.k8s.io/v1", "Event", plural="events", namespaced=True)
OPTIONS = Options(metrics_address="off", health_address="off", grace_period=5.0)


class World:
    def __init__(self, server: ApiServer, clock: VirtualClock) -> None:
        self.clock = clock
        self.link = Link(server, "operator")
        self.client = Client(MemoryTransport(Link(server, "test"), "test", clock), clock=clock)

    def manager(self, *apps: App) -> Manager:
        config, connect = self.link.config(), self.link.connect
        return Manager(apps, config, OPTIONS, clock=self.clock, connect=connect, reports=False)

    @asynccontextmanager
    async def running(self, manager: Manager) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_synced()
            yield
            manager.stop()

    async def make(self, name: str, **annotations: str) -> None:
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def lived(play: Callable[[World], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with ApiServer(ApiServerOptions(listen=False), clock=clock) as server:
            await play(World(server, clock))

    clock.run(main)


class Noted:
    """An App that notes its runs of ConfigMaps."""

    def __init__(self, **options: Any) -> None:
        self.app = App("noted", **options)
        self.runs: list[str] = []
        self.client: Client | None = None
        self.app.reconciler(CONFIG_MAP, name="maps", labels="", workers=3)(self.reconcile)

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        self.client = ctx.client
        if request.namespace != "default":
            return None
        self.runs.append(request.name)
        return Result(requeue_after=1000)


@pytest.mark.parametrize("shards", [0, 2])
def test_each_object_is_run_by_one_shard_and_the_numbers_are_those_of_all(shards: int) -> None:
    async def play(world: World) -> None:
        noted = Noted(shards=shards)
        other: list[str] = []

        @noted.app.reconciler(Kind("v1", "Secret"), name="secrets")
        async def reconcile(ctx: Context, request: Request) -> None:
            other.append(request.name)

        manager = world.manager(noted.app)
        names = [f"m{number}" for number in range(8)]
        async with world.running(manager):
            await world.clock.sleep(20)
            assert len(manager.controllers) == 2 * max(shards, 1)
            for name in names:
                await world.make(name)
            for name in ("p1", "p2", "p3", "p4"):
                await world.make(name, **{"kopylite.dev/paused": "true"})
            await world.clock.sleep(5)
            assert sorted(noted.runs) == names
            numbers = manager.metrics.exposition()[0].decode()
            assert 'kopylite_paused_objects{controller="maps"} 4.0' in numbers
            assert 'kopylite_paused_objects{controller="secrets"} 0.0' in numbers
            assert 'kopylite_workqueue_waiting{controller="maps",name="maps"} 8.0' in numbers
            assert 'kopylite_workqueue_waiting{controller="secrets",name="secrets"} 0.0' in numbers
            assert 'max_concurrent_reconciles{controller="maps"} 3.0' in numbers
            assert f'max_concurrent_reconciles{{controller="secrets"}} {OPTIONS.workers}.0' in numbers
            assert manager.waiting() == []
            leases = [lease.name for lease in await world.client.live.list(LEASE)]
            assert sum("-replica-" in name for name in leases) == min(shards, 1)
        leases = [lease.name for lease in await world.client.live.list(LEASE)]
        assert not any("-replica-" in name for name in leases), "it says that it is gone"

    lived(play)


def test_an_object_that_was_recreated_has_an_event_of_it() -> None:
    async def play(world: World) -> None:
        noted = Noted()
        async with world.running(world.manager(noted.app)):
            await world.make("a")
            await world.clock.sleep(1)
            assert noted.client is not None
            obj = await world.client.get(CONFIG_MAP, Request("default", "a"))
            noted.client.on_recreate(obj, "its selector cannot be changed")
        [event] = [one for one in await world.client.live.list(EVENT) if one["reason"] == RECREATED]
        assert (event["note"], event["action"]) == ("its selector cannot be changed", "Recreate")
        assert event["regarding"]["name"] == "a"
        assert event["reportingInstance"] == (platform.node() or "noted")

    lived(play)


def test_an_apps_tasks_and_checks_work_while_it_runs() -> None:
    async def play(world: World) -> None:
        noted, seen = Noted(), list[tuple[tuple[str, ...], bool]]()

        @noted.app.task
        async def count(ctx: Context) -> None:
            seen.append((ctx.reasons, (await ctx.client.live.find(CONFIG_MAP, Request("default", "a"))) is None))

        @noted.app.health("database")
        async def database(ctx: Context) -> str | None:
            return "gone"

        manager = world.manager(noted.app)
        assert not await manager._own_checks("health", Query())
        async with world.running(manager):
            await world.clock.sleep(1)
            assert seen == [(("the task runs",), True)]
            found = await manager._own_checks("health", Query())
            assert {name: check() for name, check in found.items()} == {"database": "gone"}
            assert (await manager._healthz(Query())).status == 500

    lived(play)


def test_what_webhooks_wait_for_is_told_beside_the_caches() -> None:
    async def play(world: World) -> None:
        manager = world.manager(Noted().app)
        assert manager.waiting() == ["the API server was not reached yet"]
        async with world.running(manager):
            for why in ("no certificate yet", None):
                manager.webhooks = cast(
                    "Any", SimpleNamespace(check=lambda why=why: why, end=anyio.lowlevel.checkpoint)
                )
                assert manager.waiting() == ([f"webhooks: {why}"] if why else [])

    lived(play)


def test_somebody_is_told_when_it_would_listen() -> None:
    async def play(world: World) -> None:
        manager, told = world.manager(Noted().app), list[str]()
        manager.on_listening = lambda: told.append("listening")
        async with world.running(manager):
            assert told == ["listening"]

    lived(play)


def test_the_first_of_two_fatal_failures_is_what_the_run_ends_with() -> None:
    async def play(world: World) -> None:
        noted, story = Noted(), list[str]()

        @noted.app.lifespan
        async def around(ctx: Context) -> AsyncIterator[None]:
            story.append("up")
            yield
            story.append("down")

        for number in (1, 2):

            @noted.app.task(name=f"t{number}", fatal=True)
            async def fails(ctx: Context, number: int = number) -> None:
                await world.clock.sleep(number * 0.001)
                raise ValueError(f"number {number}")

        with pytest.raises(LifecycleError, match="t1"):
            await world.manager(noted.app).run()
        assert story == ["up", "down"]

    lived(play)


def test_a_stop_cuts_a_start_short() -> None:
    async def play(world: World) -> None:
        noted = Noted()
        began = anyio.Event()

        @noted.app.on_start
        async def hangs(ctx: Context) -> None:
            began.set()
            await anyio.sleep_forever()

        manager = world.manager(noted.app)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await began.wait()
            manager.stop()
        assert world.clock.monotonic() < 1

    lived(play)
