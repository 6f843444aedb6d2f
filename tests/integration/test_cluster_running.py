from __future__ import annotations

import pytest

from kopylite import App, Context, CustomResource, Kind, Request
from kopylite.client import Client
from kopylite.testing import Cluster, EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap")


class Absent(CustomResource[dict[str, str], None], group="absent.example.com", version="v1"):
    pass


def labeller() -> App:
    """An app that puts a label on ConfigMaps."""
    app = App("labeller")

    @app.reconciler(CONFIG_MAP)
    async def reconcile(ctx: Context, request: Request) -> None:
        found = await ctx.client.find(CONFIG_MAP, request)
        if found is not None:
            await ctx.client.patch(found, patch={"metadata": {"labels": {"seen": "yes"}}})

    return app


async def test_an_app_runs_as_long_as_its_block(cluster: Cluster, client: Client, namespace: str) -> None:
    wire = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
    async with cluster.running(labeller(), namespaces=[namespace]) as manager:
        await client.create(wire)

        async def labelled() -> bool:
            return (await client.get(CONFIG_MAP, "a", namespace=namespace)).labels == {"seen": "yes"}

        await eventually(labelled, "the label was there")
    assert [controller.statistics().active for controller in manager.controllers] == [0]


async def test_a_failing_test_fails_with_its_own_error(embedded_cluster: EmbeddedCluster) -> None:
    with pytest.raises(AssertionError, match="mine"):
        async with embedded_cluster.running(labeller()):
            raise AssertionError("mine")


async def test_an_app_without_its_crd_does_not_get_started(embedded_cluster: EmbeddedCluster) -> None:
    app = App("absent")

    @app.reconciler(Absent)
    async def reconcile(ctx: Context, request: Request) -> None: ...

    with pytest.raises(TimeoutError):
        async with embedded_cluster.running(app, timeout=0.5):
            raise AssertionError("it began")
