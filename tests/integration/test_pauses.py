"""Annotations that tell an operator to leave an object alone, or to look at it now: apps at work on both servers."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kopylite import App, Condition, Context, CustomResource, Kind, Request, Result, generation_changed, label_selector
from kopylite.client import Client
from kopylite.controller.pausecondition import CONDITION
from kopylite.manager import Manager
from kopylite.objects import ApiModel
from kopylite.testing import Cluster
from kopylite.triggers import PAUSED, RECONCILE_AT
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap")


class StallStatus(ApiModel):
    conditions: list[Condition] | None = None


class Stall(CustomResource[dict[str, int], StallStatus], group="pauses.example.com", version="v1"):
    """Can be paused."""


class Runs:
    """What ran."""

    def __init__(self, **options: Any) -> None:
        self.seen: list[tuple[str, tuple[str, ...]]] = []
        self.app = App("stalls")

        @self.app.reconciler(Stall, name="stalls", predicates=options.pop("predicates", generation_changed), **options)
        async def reconcile(ctx: Context, request: Request) -> Result | None:
            self.seen.append((request.name, ctx.reasons))
            found = await ctx.client.find(Stall, request)
            if found is not None and found.deletion_timestamp is not None:
                await ctx.client.remove_finalizer(found, "pauses.example.com/hold")
            return None

    def of(self, name: str) -> int:
        return sum(1 for seen, _ in self.seen if seen == name)


async def put(client: Client, namespace: str, name: str, **metadata: Any) -> None:
    metadata = {"name": name, "namespace": namespace, **metadata}
    await client.create(
        {"apiVersion": "pauses.example.com/v1", "kind": "Stall", "metadata": metadata, "spec": {"n": 0}}
    )


async def annotate(client: Client, namespace: str, name: str, **patch: Any) -> None:
    await client.live.patch(Stall, name, patch, namespace=namespace)


def marks(**values: str | None) -> dict[str, Any]:
    names = {"paused": PAUSED, "at": RECONCILE_AT}
    return {"metadata": {"annotations": {names[name]: value for name, value in values.items()}}}


async def caught_up(client: Client, manager: Manager, namespace: str, runs: Runs) -> None:
    """Wait until the operator has worked off all that was written before."""
    await put(client, namespace, name := f"mark-{len(runs.seen)}")
    await eventually(lambda: runs.of(name), "the operator was at it")
    queue = manager.controllers[0].statistics().queue
    assert not queue.ready


async def test_a_paused_object_has_no_run_until_it_is_not_paused(
    cluster: Cluster, client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await cluster.install_crds(Stall)
    await put(client, namespace, "b", annotations={PAUSED: "true"})
    runs = Runs()
    async with cluster.running(runs.app, namespaces=[namespace]) as manager:
        controller = manager.controllers[0]
        await put(client, namespace, "a")
        await eventually(lambda: runs.of("a") == 1, "a ran")
        await annotate(client, namespace, "a", **marks(paused="true"))
        await eventually(lambda: len(controller.pauses) == 2, "both were paused")
        text = manager.metrics.exposition()[0].decode()
        assert 'kopylite_paused_objects{controller="stalls"} 2.0' in text
        await annotate(client, namespace, "a", spec={"n": 1})
        controller.enqueue(Request(namespace, "a"), "asked by hand")
        await annotate(client, namespace, "a", **marks(at="1"))
        await caught_up(client, manager, namespace, runs)
        assert (runs.of("a"), runs.of("b")) == (1, 0)
        await annotate(client, namespace, "a", **marks(paused=None))
        await annotate(client, namespace, "b", **marks(paused="false"))
        await eventually(lambda: (runs.of("a"), runs.of("b")) == (2, 1), "both ran")
        reasons = next(reasons for name, reasons in reversed(runs.seen) if name == "a")
        assert {"asked by hand", "not paused any more"} <= set(reasons)
        await caught_up(client, manager, namespace, runs)
        assert (runs.of("a"), runs.of("b")) == (2, 1)
    told = [message for message in caplog.messages if message.startswith("paused by")]
    assert len(told) == 1


async def test_a_pause_does_not_keep_an_object_from_its_end(cluster: Cluster, client: Client, namespace: str) -> None:
    await cluster.install_crds(Stall)
    await put(client, namespace, "a", annotations={PAUSED: "true"}, finalizers=["pauses.example.com/hold"])
    runs = Runs()
    async with cluster.running(runs.app, namespaces=[namespace]) as manager:
        await eventually(lambda: len(manager.controllers[0].pauses) == 1, "it was paused")
        await client.live.delete(Stall, "a", namespace=namespace)

        async def gone() -> bool:
            return await client.live.find(Stall, "a", namespace=namespace) is None

        await eventually(gone, "it was gone")
        assert len(manager.controllers[0].pauses) == 0


async def test_each_value_of_reconcile_at_makes_one_run_whatever_the_predicates_say(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    await cluster.install_crds(Stall)
    await put(client, namespace, "mine", labels={"class": "mine"})
    await put(client, namespace, "other", labels={"class": "other"})
    await put(client, namespace, "mark", labels={"class": "mine"})
    runs = Runs(predicates=generation_changed & label_selector("class=mine"))
    async with cluster.running(runs.app, namespaces=[namespace]):
        await eventually(lambda: runs.of("mine"), "it ran")
        for value in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "again", "x" * 100_000):
            before = runs.of("mark")
            for name in ("mine", "other"):
                await annotate(client, namespace, name, **marks(at=value))
            await annotate(client, namespace, "mark", spec={"n": before})
            await annotate(client, namespace, "mark", spec={"n": before + 1})
            await eventually(lambda before=before: runs.of("mark") > before, "the mark ran")  # type: ignore[misc]
        await eventually(lambda: runs.of("mine") == 4, "each value made a run")
        assert runs.of("other") == 0, "an object that is somebody else's is left alone"


async def test_the_pause_is_a_condition_on_demand(cluster: Cluster, client: Client, namespace: str) -> None:
    await cluster.install_crds(Stall)
    for name in ("a", "never"):
        await put(client, namespace, name)
    ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": None}
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    await client.live.patch(Stall, "a", {"status": {"conditions": [ready]}}, namespace=namespace, subresource="status")
    runs = Runs(paused_condition=True)

    async def conditions(name: str) -> dict[str, str]:
        found = await client.live.get(Stall, name, namespace=namespace)
        listed = found.status.conditions if found.status else None
        return {each.type: each.status for each in listed or ()}

    async with cluster.running(runs.app, namespaces=[namespace]):
        for value, status in (("true", "True"), (None, "False"), ("true", "True")):
            await annotate(client, namespace, "a", **marks(paused=value))

            async def told(status: str = status) -> bool:
                return await conditions("a") == {"Ready": "True", CONDITION: status}

            await eventually(told, f"the condition was {status}")
        assert await conditions("never") == {}
        before = len(runs.seen)
        await annotate(client, namespace, "a", spec={"n": 7})
        await put(client, namespace, "mark")
        await eventually(lambda: runs.of("mark"), "the mark ran")
        assert [name for name, _ in runs.seen[before:]] == ["mark"]


async def test_a_pause_outlives_terms_and_shards(cluster: Cluster, client: Client, namespace: str) -> None:
    """Each term makes its controllers anew, and each shard hears of its own objects only."""
    from kopylite.client import load_config
    from kopylite.manager import Options

    await cluster.install_crds(Stall)
    names = [f"s-{number}" for number in range(6)]
    for name in names:
        await put(client, namespace, name, annotations={PAUSED: "true"})
    runs = Runs()
    runs.app.shards, runs.app.leader_election = 2, True
    options = Options(
        namespaces=(namespace,), metrics_address="off", health_address="off", lease_namespace=namespace, shards=2,
        lease_duration=3, renew_deadline=2, retry_period=0.3,
    )  # fmt: skip
    for _ in range(2):
        manager = Manager(runs.app, load_config(str(cluster.kubeconfig)), options)

        def paused(manager: Manager = manager) -> bool:
            return 'kopylite_paused_objects{controller="stalls"} 6.0' in manager.metrics.exposition()[0].decode()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await eventually(paused, "all were paused")
            assert runs.seen == []
            manager.stop()
    manager = Manager(runs.app, load_config(str(cluster.kubeconfig)), options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await annotate(client, namespace, names[0], **marks(paused=None))
        await eventually(lambda: runs.seen, "the one ran")
        manager.stop()
    assert {name for name, _ in runs.seen} == {names[0]}
