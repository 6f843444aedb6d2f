from __future__ import annotations

import anyio
import pytest

from kopylite import App, Context, Kind, Request
from kopylite.client import Client
from kopylite.manager import Manager
from kopylite.objects import Unstructured
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

# The event loop makes no difference here, and control planes cost time.
pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])

CONFIG_MAP, NAMESPACE = Kind("v1", "ConfigMap"), Kind("v1", "Namespace")


async def make(client: Client, name: str, **labels: str) -> None:
    metadata = {"name": name, "labels": labels}
    await client.create(Unstructured(apiVersion="v1", kind="Namespace", metadata=metadata))
    metadata = {"name": "a", "namespace": name}
    await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))


def watched(manager: Manager) -> set[str]:
    return {informer.scope.namespace for informer in manager._informers()} - {""}


async def test_what_comes_and_goes_while_the_watch_is_cut_and_its_history_is_gone_is_seen_after_it() -> None:
    app, seen = App("scope"), set[str]()

    @app.reconciler(CONFIG_MAP)
    async def reconcile(ctx: Context, request: Request) -> None:
        seen.add(request.namespace)

    async with EmbeddedCluster(controllers={"namespace"}) as cluster, cluster.client() as client:
        for name in ("team-goes", "team-stays", "team-moves"):
            await make(client, name, tier="prod")
        async with cluster.running(app, namespaces_labelled="tier=prod") as manager:
            await eventually(lambda: seen == {"team-goes", "team-stays", "team-moves"}, "all are worked in")
            await cluster.kill_api_server()
            await anyio.sleep(0.2)
            assert watched(manager) == {"team-goes", "team-stays", "team-moves"}, "not seen is not gone"
            await cluster.start_api_server()
            await client.delete(NAMESPACE, "team-goes")
            await client.patch(NAMESPACE, "team-moves", patch={"metadata": {"labels": None}})
            await make(client, "team-comes", tier="prod")
            cluster.compact()
            await eventually(lambda: watched(manager) == {"team-stays", "team-comes"}, "it has caught up", limit=40)
            await eventually(lambda: "team-comes" in seen, "the new one is worked in")
            with anyio.fail_after(20):
                await manager.wait_synced()
            assert manager._parts is not None
            namespaces = manager._parts.namespaces
            await eventually(lambda: namespaces.counts() == {"working": 2, "refused": 0, "starting": 0}, "all joined")
            assert set(await namespaces.listed()) == set(namespaces.now) == {"team-stays", "team-comes"}
            assert not namespaces.excused()


async def test_a_scope_without_a_namespace_is_known_and_ready_and_its_lists_are_empty() -> None:
    app, answers = App("nowhere"), list[int]()
    node = Kind("v1", "Node", plural="nodes", namespaced=False)

    @app.reconciler(node)
    async def reconcile(ctx: Context, request: Request) -> None:
        answers.append(len(await ctx.client.list(CONFIG_MAP)))

    async with (
        EmbeddedCluster(controllers=False) as cluster,
        cluster.client() as client,
        cluster.running(app, namespaces=["nobody-*"]),
    ):
        await client.create(Unstructured(apiVersion="v1", kind="Node", metadata={"name": "n"}))
        await eventually(lambda: answers == [0], "what is in no namespace is watched all the same")
        await make(client, "nobody-knows")
        await client.patch(node, "n", patch={"metadata": {"labels": {"a": "b"}}})
        await eventually(lambda: answers[-1:] == [1], "a list is about what is in scope then")
