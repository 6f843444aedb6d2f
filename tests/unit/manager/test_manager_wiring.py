"""What is forgotten in the user's other functions is told of, and their failures are counted; caches of one kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite import App, Context, Kind, Request, Unstructured, watch
from kopylite.controller import ControllerSpec, channel, periodic
from kopylite.diagnostics import forgotten_awaits
from kopylite.manager.wiring import external_sources
from kopylite.reconcile import Environment
from kopylite.testing import EmbeddedCluster
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import Event, predicate
from tests.operators import eventually

if TYPE_CHECKING:
    from kopylite.apiserver.world import Call
    from kopylite.client import Client

CONFIG_MAP = Kind("v1", "ConfigMap")


async def nothing(ctx: Context, request: Request) -> None: ...


async def delete(name: str) -> None:
    await anyio.lowlevel.checkpoint()


async def rounds(ctx: Context) -> list[Request]:
    delete("a")  # type: ignore[unused-coroutine]
    return [Request("ns", "a")]


async def orders(ctx: Context) -> AsyncIterator[Request]:
    delete("a")  # type: ignore[unused-coroutine]
    yield Request("ns", "a")


def told_of(source: object, caplog: pytest.LogCaptureFixture) -> tuple[list[str], list[tuple[str, str, str]]]:
    """What is logged and counted while a source runs, for some seconds."""
    clock, counted = VirtualClock(), list[tuple[str, str, str]]()
    spec = ControllerSpec(name="widget", kind=CONFIG_MAP, reconcile=nothing, sources=(source,))  # type: ignore[arg-type]
    on_call = lambda *call: counted.append(call)  # noqa: E731
    environment = Environment("widget", cast("Client", None), clock=clock, on_call=on_call)

    async def main() -> None:
        [made] = external_sources(spec, environment)
        with anyio.move_on_after(5):
            await made.run(lambda request, reason, priority: None)

    with forgotten_awaits():
        clock.run(main)
    return [message for message in caplog.messages if "was called without await" in message], counted


def test_a_forgotten_await_fails_the_round_of_a_periodic_function(caplog: pytest.LogCaptureFixture) -> None:
    messages, counted = told_of(periodic(rounds, every=1.0), caplog)
    line = rounds.__code__.co_firstlineno + 1
    assert f"delete(...) was called without await at {__file__}:{line} in rounds" in messages[0]
    assert ("periodic function", "rounds", "error") in counted


def test_a_forgotten_await_in_a_channel_is_told(caplog: pytest.LogCaptureFixture) -> None:
    messages, _ = told_of(channel(orders), caplog)
    line = orders.__code__.co_firstlineno + 1
    assert f"delete(...) was called without await at {__file__}:{line} in orders" in messages[0]


async def test_a_forgotten_await_in_a_map_function_is_told_and_failures_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("careless")

    async def owners(config_map: Unstructured, ctx: Context) -> list[Request]:
        delete("a")  # type: ignore[unused-coroutine]
        return []

    @predicate
    def interesting(event: Event) -> bool:
        raise KeyError("metadata")

    def values(record: object) -> list[str]:
        raise KeyError("spec")

    app.reconciler(
        CONFIG_MAP, name="careless", predicates=interesting, watches=[watch(Kind("v1", "Secret"), map=owners)]
    )(nothing)
    async with EmbeddedCluster() as cluster, cluster.client() as client, cluster.running(app) as manager:
        [store] = [i.store for i in manager._informers() if i.scope.kind == CONFIG_MAP]
        store.add_index("mine", values)
        for kind in ("Secret", "ConfigMap"):
            await client.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "default"}})

        def counted(call: str, function: str, controller: str) -> float:
            labels = {"controller": controller, "call": call, "function": function, "result": "error"}
            return manager.metrics.registry.get_sample_value("kopylite_calls_total", labels) or 0.0

        await eventually(lambda: counted("map function", "owners", "careless") >= 1, "the map function was counted")
        await eventually(lambda: counted("predicate", "interesting", "careless") >= 1, "the predicate was counted")
        await eventually(lambda: counted("index function", "mine", "") >= 1, "the index function was counted")
        await asyncio.sleep(0)
    line = owners.__code__.co_firstlineno + 1
    assert f"delete(...) was called without await at {__file__}:{line} in owners" in caplog.text


async def test_an_event_of_a_narrowed_watch_runs_its_key_again_when_reads_show_it() -> None:
    app, secret, seen = App("beside"), Kind("v1", "Secret"), list[str]()
    held, released = anyio.Event(), anyio.Event()
    released.set()
    app.cache(secret)

    @app.reconciler(CONFIG_MAP, watches=[watch(secret, labels="mine=yes")])
    async def reconcile(ctx: Context, request: Request) -> None:
        found = await ctx.client.find(secret, request)
        seen.append(found.annotations["state"] if found else "")

    async def hold_whole_watch(call: Call, event: bytes) -> bytes | None:
        if call.resource.kind == "Secret" and "labelSelector" not in call.request.query and not released.is_set():
            held.set()
            await released.wait()
        return event

    metadata = {"name": "a", "namespace": "default", "labels": {"mine": "yes"}, "annotations": {"state": "old"}}
    async with EmbeddedCluster() as cluster, cluster.client() as client, cluster.running(app):
        cluster.hooks.watch.append(hold_whole_watch)
        created = await client.create(Unstructured({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
        await eventually(lambda: "old" in seen, "it ran")
        released = anyio.Event()
        await client.patch(created, {"metadata": {"annotations": {"state": "new"}}})
        with anyio.fail_after(10):
            await held.wait()
        runs = len(seen)
        await eventually(lambda: len(seen) > runs or seen[-1] == "new", "the narrowed watch told of it")
        released.set()
        await eventually(lambda: seen[-1] == "new", "the last run saw it")
