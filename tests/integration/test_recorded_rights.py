"""`kopylite run --record-rbac`: what an operator asked for is in a file when it has ended."""

from __future__ import annotations

from pathlib import Path

from kopylite.client import Client
from kopylite.deploy import ApiCall, Recording
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually, operator


async def test_a_process_leaves_its_calls_in_a_file_of_its_own(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    async with (
        embedded_cluster.client() as client,
        operator(
            "samples/hello/operator.py", embedded_cluster.kubeconfig, tmp_path, "--record-rbac", str(folder)
        ) as run,
    ):
        await greeted(client)
        assert await run.stop() == 0
    [path] = folder.iterdir()
    assert ApiCall("", "configmaps", "patch", "*") in Recording.read(path).of("hello")


async def greeted(client: Client) -> None:
    metadata = {"name": "recorded", "namespace": "default"}
    await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"name": "World"}))

    async def there() -> bool:
        found = await client.live.get(Kind("v1", "ConfigMap"), "recorded", namespace="default")
        return "greeting" in found["data"]

    await eventually(there, "the greeting was there", limit=60)
    await client.delete(Kind("v1", "ConfigMap"), "recorded", namespace="default")
