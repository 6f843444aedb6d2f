"""Loops are told of, and what only looks like one is not: apps at work on the embedded server."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio
import pytest

from kopylite import App, Context, CustomResource, Kind, Request, Result, Unstructured, watch
from kopylite.client import Client
from kopylite.manager import Manager
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap")
NAMESPACE = "default"


class Shop(CustomResource[dict[str, int], dict[str, str]], group="loops.example.com", version="v1"):
    """Has a status."""


Reconcile = Callable[[Context, Shop], Awaitable[Result | None]]


def shop_app(reconcile_shop: Reconcile, workers: int = 10) -> App:
    app = App("shops")

    @app.reconciler(Shop, name="shops", owns=[CONFIG_MAP], workers=workers)
    async def reconcile(ctx: Context, request: Request) -> Result | None:
        shop = await ctx.client.find(Shop, request)
        return None if shop is None else await reconcile_shop(ctx, shop)

    return app


async def make_shops(client: Client, count: int) -> None:
    for number in range(count):
        await client.create(
            {
                "apiVersion": "loops.example.com/v1",
                "kind": "Shop",
                "metadata": {"name": f"shop-{number}", "namespace": NAMESPACE},
                "spec": {"n": 0},
            }
        )


def hot_loops(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if "hot loop" in message]


def loop_runs(manager: Manager) -> int:
    return manager.metrics.controller("shops", 1).reconcile.loop_runs


async def settled(manager: Manager) -> None:
    """Wait until no run was begun or is to come for half a second."""
    numbers = manager.metrics.controller(manager.controllers[0].name, 1).reconcile
    before, since = -1, time.monotonic()

    async def quiet() -> bool:
        nonlocal before, since
        now = sum(numbers.results.values())
        queue = manager.controllers[0].statistics().queue
        if now != before or queue.ready or queue.running or queue.waiting:
            before, since = now, time.monotonic()
        return time.monotonic() - since > 0.5

    await eventually(quiet, "it was quiet", limit=40)


@pytest.mark.parametrize("objects", [1, 50])
async def test_a_status_that_is_new_in_each_run_is_told_of(objects: int, caplog: pytest.LogCaptureFixture) -> None:
    numbers = itertools.count()

    async def stamp(ctx: Context, shop: Shop) -> Result:
        await ctx.client.patch_status(shop, {"checked": f"no. {next(numbers)}", "phase": "Ready"})
        return Result(requeue_after=300)  # that it asks for another run, too, changes nothing

    async with (
        EmbeddedCluster(crds=[Shop]) as cluster,
        cluster.client() as client,
        cluster.running(shop_app(stamp)) as manager,
    ):
        await make_shops(client, objects)
        await eventually(lambda: hot_loops(caplog), "the loop was told of", limit=40)
        await eventually(lambda: loop_runs(manager) > 100, "it goes on", limit=40)
        exposition = manager.metrics.exposition()[0].decode()
    [told] = hot_loops(caplog)
    assert "controller shops" in told
    assert f"Shop {NAMESPACE}/shop-" in told
    assert "status.checked is new each time (no. " in told
    assert "phase" not in told
    assert 'kopylite_hot_loop_runs_total{controller="shops"} ' in exposition


async def test_a_loop_of_slow_runs_with_stamps_of_whole_seconds_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Each object changes once a second."""

    async def stamp(ctx: Context, shop: Shop) -> None:
        await anyio.sleep(1.0)  # the API is slow
        await ctx.client.patch_status(shop, {"checked": ctx.now().strftime("%H:%M:%S")})

    async with EmbeddedCluster(crds=[Shop]) as cluster, cluster.client() as client:
        await make_shops(client, 20)
        async with cluster.running(shop_app(stamp, workers=20)):
            await eventually(lambda: hot_loops(caplog), "the loop was told of", limit=40)
    assert "status.checked is new each time" in hot_loops(caplog)[0]


async def test_a_loop_through_an_owned_object_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    numbers = itertools.count()

    async def touch(ctx: Context, shop: Shop) -> None:
        def mutate(child: Unstructured) -> None:
            child["data"] = {"touched": str(next(numbers))}

        await ctx.client.create_or_update(CONFIG_MAP, shop, mutate, owner=shop)

    async with (
        EmbeddedCluster(crds=[Shop]) as cluster,
        cluster.client() as client,
        cluster.running(shop_app(touch)),
    ):
        await make_shops(client, 1)
        await eventually(lambda: hot_loops(caplog), "the loop was told of", limit=40)
    assert f"ConfigMap {NAMESPACE}/shop-0: data.touched is new each time" in hot_loops(caplog)[0]


async def test_a_loop_through_a_map_function_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    app, numbers = App("mapped"), itertools.count()

    async def shop_of(config_map: Unstructured, ctx: Context) -> list[Request]:
        return [Request(NAMESPACE, "shop-0")] if config_map.name == "settings" else []

    @app.reconciler(Shop, watches=[watch(CONFIG_MAP, map=shop_of)])
    async def reconcile(ctx: Context, request: Request) -> None:
        def mutate(settings: Unstructured) -> None:
            settings["data"] = {"seen": str(next(numbers))}

        await ctx.client.create_or_update(CONFIG_MAP, "settings", mutate, namespace=NAMESPACE)

    async with EmbeddedCluster(crds=[Shop]) as cluster, cluster.client() as client, cluster.running(app):
        await make_shops(client, 1)
        await eventually(lambda: hot_loops(caplog), "the loop was told of", limit=40)
    assert "ConfigMap default/settings: data.seen is new each time" in hot_loops(caplog)[0]


async def test_two_controllers_that_undo_each_other_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    app = App("fight")

    def wants(color: str) -> None:
        @app.reconciler(CONFIG_MAP, name=color)
        async def reconcile(ctx: Context, request: Request) -> None:
            found = await ctx.client.find(CONFIG_MAP, request)
            if found is not None and request.name == "a":
                await ctx.client.patch(found, {"data": {"color": color}})

    wants("red")
    wants("blue")
    async with EmbeddedCluster() as cluster, cluster.client() as client, cluster.running(app):
        metadata = {"name": "a", "namespace": NAMESPACE}
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await eventually(lambda: hot_loops(caplog), "the loop was told of", limit=40)
    told = hot_loops(caplog)[0]
    assert "controller red" in told
    assert "controller blue" in told
    assert "data.color goes back and forth" in told


async def test_what_is_no_loop_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Children made in twenty steps, a status that converges, polling, a rollout by somebody else, and a reconnect."""
    caplog.set_level(logging.INFO)

    async def work(ctx: Context, shop: Shop) -> Result | None:
        made = int((shop.status or {}).get("made", "0"))
        if made < 20:
            name = f"{shop.metadata.name}-{made}"
            await ctx.client.create_or_update(CONFIG_MAP, name, lambda child: None, owner=shop, namespace=NAMESPACE)
            await ctx.client.patch_status(shop, {"made": str(made + 1)})
            return None
        await ctx.client.patch_status(shop, {"seen": str(shop.spec["n"]), "phase": "Ready"})
        if shop.metadata.name == "shop-1":  # polls, and writes what it sees
            polls = int((shop.status or {}).get("polls", "0"))
            if "requeue_after" in ctx.reasons and len(ctx.reasons) == 1 and polls < 40:
                await ctx.client.patch_status(shop, {"polls": str(polls + 1)})
            return Result(requeue_after=timedelta(milliseconds=20)) if polls < 40 else None
        return None

    async with (
        EmbeddedCluster(crds=[Shop]) as cluster,
        cluster.client() as client,
        cluster.running(shop_app(work)) as manager,
    ):
        await make_shops(client, 20)
        await settled(manager)
        for turn in range(1, 60):  # somebody else's progress, as fast as it goes
            for number in range(3):
                shop = await client.get(Shop, f"shop-{number}", namespace=NAMESPACE)
                await client.patch(shop, {"spec": {"n": turn}})
        await settled(manager)
        runs = sum(manager.metrics.controller("shops", 1).reconcile.results.values())
        cluster.compact()
        await settled(manager)
        assert runs > 400, "there was something to misunderstand"
        assert loop_runs(manager) == 0
    assert hot_loops(caplog) == []
