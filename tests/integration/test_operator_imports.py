"""An operator without typed models of kubernetes_asyncio runs without that library."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from kopylite import App, Context, Kind, ObjectKey, Request
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually, operator

CONFIG_MAP = Kind("v1", "ConfigMap")

app = App("imports")


@app.reconciler(CONFIG_MAP, labels="imports=asked")
async def tell(ctx: Context, request: Request) -> None:
    loaded = "kubernetes_asyncio" in sys.modules
    await ctx.client.create_or_update(CONFIG_MAP, request, lambda config: config.update(data={"loaded": str(loaded)}))


async def test_kopylite_run_of_an_operator_without_its_models_does_not_import_kubernetes_asyncio(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async with (
        embedded_cluster.client() as client,
        operator("tests.integration.test_operator_imports:app", embedded_cluster.kubeconfig, tmp_path),
    ):
        name = f"imports-{uuid.uuid4().hex}"
        metadata = {"name": name, "namespace": "default", "labels": {"imports": "asked"}}
        await client.live.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

        async def told() -> bool:
            found = await client.live.get(CONFIG_MAP, ObjectKey("default", name))
            return found.get("data") == {"loaded": "False"}

        await eventually(told, "the operator told what it has loaded")
