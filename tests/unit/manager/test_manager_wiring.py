"""What is forgotten in the user's other functions is told of, and their failures are counted; caches of one kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite import App, Context, Kind, Request, Unstructured, watch
from kopylite.cache import ShardPart, SharedCache
from kopylite.cache.steps import Replacement
from kopylite.client import Resources, Transport
from kopylite.controller import ControllerSpec, channel, periodic
from kopylite.diagnostics import forgotten_awaits
from kopylite.errors import KindNotFound
from kopylite.manager.wiring import (
    MAP_SECONDS,
    CacheGate,
    FirstSync,
    Places,
    cluster_scoped_of,
    external_sources,
    sources_of,
)
from kopylite.objects import Shard
from kopylite.reconcile import Environment
from kopylite.testing import EmbeddedCluster
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import EnqueueMapped, Event, KindSource, predicate
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


SECRET, SERVICE, POD = Kind("v1", "Secret"), Kind("v1", "Service"), Kind("v1", "Pod")
SHARD = Shard(1, 4)


async def nobody(obj: Unstructured, ctx: Context) -> list[Request]:
    return []


def made_of(spec: ControllerSpec, shard: Shard | None, clock: VirtualClock) -> tuple[list[KindSource], SharedCache]:
    nowhere = cast("Transport", None)
    cache, own = SharedCache(nowhere, Resources(nowhere, clock), clock=clock), list[KindSource]()
    environment = Environment("c", cast("Client", None), clock=clock, shard=shard)
    return sources_of(spec, environment, cache, Places(), own, FirstSync((), clock)), cache


@pytest.mark.parametrize("shard", [SHARD, None])
def test_a_shard_caches_its_own_objects_and_what_they_own_and_all_else_whole(shard: Shard | None) -> None:
    owns = (watch(SECRET), watch(SERVICE, any_owner=True), watch(POD, map=nobody))
    spec = ControllerSpec(
        name="c", kind=CONFIG_MAP, reconcile=nothing, owns=owns, watches=(watch(Kind("v1", "Node"), map=nobody),)
    )

    async def main() -> None:
        sources, cache = made_of(spec, shard, VirtualClock())
        owner = CONFIG_MAP.group_kind
        assert [(source.informer.scope.kind.kind, source.informer.scope.part) for source in sources] == [
            ("ConfigMap", shard and ShardPart(shard)),
            ("Secret", shard and ShardPart(shard, owner)),
            ("Service", shard and ShardPart(shard, owner, any_owner=True)),
            ("Pod", None),
            ("Node", None),
        ]
        sorts_out = [source.informer.scope.kind.kind for source in sources if source.admits is not None]
        assert sorts_out == (["Pod", "Node"] if shard else [])
        assert all(source.reads is cache for source in sources)

    VirtualClock().run(main)


def test_a_cache_that_is_only_read_holds_a_controller_up_for_ten_seconds_at_most() -> None:
    clock = VirtualClock()

    async def main() -> None:
        [source], _ = made_of(ControllerSpec(name="c", kind=CONFIG_MAP, reconcile=nothing), None, clock)
        gate = CacheGate(source.informer, clock)
        await clock.sleep(60)
        assert not gate.synced, "the time counts from when somebody waits"
        began = clock.monotonic()
        await gate.wait_synced()
        assert (clock.monotonic(), gate.synced) == (began + 10, True)
        await gate.wait_synced()
        assert clock.monotonic() == began + 10
        other = CacheGate(source.informer, clock)
        await source.informer.replace(Replacement({}, "1", initial=True))
        assert other.synced
        await other.wait_synced()
        assert clock.monotonic() == began + 10

    clock.run(main)


def test_map_functions_wait_for_the_caches_together_and_ten_seconds_at_most() -> None:
    clock = VirtualClock()

    async def main() -> None:
        [source], _ = made_of(ControllerSpec(name="c", kind=CONFIG_MAP, reconcile=nothing), None, clock)
        began = clock.monotonic()

        async def wait(first: FirstSync, after: float, until: float) -> None:
            await clock.sleep(after)
            await first.wait()
            assert clock.monotonic() == began + until

        async with anyio.create_task_group() as tasks:
            first = FirstSync([source], clock)
            for after, until in ((0, 10), (4, 10), (12, 12)):
                tasks.start_soon(wait, first, after, until)
        began = clock.monotonic()
        async with anyio.create_task_group() as tasks:
            first = FirstSync([source], clock)
            for after, until in ((0, 3), (1, 3), (5, 5)):
                tasks.start_soon(wait, first, after, until)
            await clock.sleep(3)
            await source.informer.replace(Replacement({}, "1", initial=True))
        await source.informer.replace(Replacement({}, "", initial=False, gone=True))
        await first.wait()
        assert clock.monotonic() == began + 5, "only once"

    clock.run(main)


@pytest.mark.parametrize(("asked", "seconds"), [(None, MAP_SECONDS), (5.0, 5.0), (600.0, MAP_SECONDS)])
async def test_a_map_function_has_the_time_of_its_controller_and_a_minute_at_most(
    asked: float | None, seconds: float
) -> None:
    spec = ControllerSpec(
        name="c", kind=CONFIG_MAP, reconcile=nothing, timeout=asked, watches=(watch(SECRET, map=nobody),)
    )
    [_, source], _ = made_of(spec, None, VirtualClock())
    assert isinstance(source._handler, EnqueueMapped)
    assert source._handler._guard._timeout == seconds


@pytest.mark.parametrize(
    ("places", "kind", "declared", "expected"),
    [
        (Places(), CONFIG_MAP, None, [""]),
        (Places(), CONFIG_MAP, "fixed", ["fixed"]),
        (Places(("a", "b")), CONFIG_MAP, None, ["a", "b"]),
        (Places(("a", "b")), CONFIG_MAP, "fixed", ["fixed"]),
        (Places(("a", "b")), Kind("v1", "Node", namespaced=False), None, [""]),
        (Places(("a", "b"), frozenset({CONFIG_MAP})), CONFIG_MAP, None, [""]),
        (Places(("a", "b"), frozenset({CONFIG_MAP})), CONFIG_MAP, "fixed", [""]),
        (Places(("a",), only=True), CONFIG_MAP, None, ["a"]),
        (Places(("a",), only=True), CONFIG_MAP, "fixed", []),
        (Places(("a",), only=True), Kind("v1", "Node", namespaced=False), None, []),
        (Places(()), CONFIG_MAP, None, []),
    ],
)
def test_where_a_kind_is_mirrored(places: Places, kind: Kind, declared: str | None, expected: list[str]) -> None:
    assert list(places.of(kind, declared)) == expected


class Discovery:
    """Tells the scope of some kinds, not of others, and of one never."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def find(self, kind: Kind) -> SimpleNamespace:
        self.asked.append(kind.kind)
        if kind.kind == "Never":
            await anyio.sleep_forever()
        if kind.kind == "Missing":
            raise KindNotFound("it is not there")
        if kind.kind == "Away":
            raise ConnectionResetError("gone")
        return SimpleNamespace(namespaced=kind.kind != "Region")


def test_of_which_kinds_it_is_known_that_they_are_in_no_namespace() -> None:
    clock, discovery = VirtualClock(), Discovery()
    kinds = [Kind("example.com/v1", name) for name in ("Thing", "Region", "Never", "Missing", "Away", "Region")]

    async def main() -> None:
        resources = cast("Resources", discovery)
        assert await cluster_scoped_of([watch(kind) for kind in kinds], resources) == {kinds[1]}
        assert clock.monotonic() == 10, "one that nobody answers for is not waited for any longer"

    clock.run(main)
    assert sorted(discovery.asked) == ["Away", "Missing", "Never", "Region", "Thing"]
