"""Every sample is run as its user runs it, on each control plane. samples/myapp has a file of its own: see FOLLOWED."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from kopylite.client import Client
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster
from samples.bucket.operator import FINALIZER, Bucket
from samples.bucket.store import make_store
from samples.myapp.operator import MyApp
from tests.operators import OperatorProcess, eventually, operator

SAMPLES = Path(__file__).parent.parent / "samples"
FOLLOWED = {"hello", "bucket", "myapp", "shop"}  # by the tests below; myapp also by a file of its own
CONFIG_MAP = Kind("v1", "ConfigMap")
EVENT = Kind("events.k8s.io/v1", "Event")

pytestmark = pytest.mark.timeout(120)


def folders() -> list[Path]:
    return sorted(path for path in SAMPLES.iterdir() if (path / "operator.py").is_file())


def test_every_sample_is_run_here() -> None:
    assert {folder.name for folder in folders()} == FOLLOWED


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_sample_explains_itself_with_files_that_exist(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    assert f"samples.{folder.name}.operator:app" in readme or f"samples/{folder.name}/operator.py" in readme
    for manifest in folder.glob("*.yaml"):
        assert f"samples/{folder.name}/{manifest.name}" in readme
    assert f"python -m kopylite sweep samples.{folder.name}." in readme


def a_sample(path: str, namespace: str) -> Unstructured:
    """The object of a sample's manifest, in a namespace."""
    wire = Unstructured(yaml.safe_load((SAMPLES / path).read_text()))
    wire["metadata"]["namespace"] = namespace
    return wire


async def test_hello_greets_and_keeps_greeting(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async def greeting() -> str | None:
        found = await client.get(CONFIG_MAP, "world", namespace=namespace)
        answer: str | None = found["data"].get("greeting")
        return answer

    async with operator("samples/hello/operator.py", cluster.kubeconfig, tmp_path, "-n", namespace) as running:
        metadata = {"name": "world", "namespace": namespace}
        await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"name": "World"}))

        async def greets(name: str) -> bool:
            return await greeting() == f"Hello, {name}!"

        await eventually(lambda: greets("World"), "the greeting was there")
        await client.patch(CONFIG_MAP, "world", {"data": {"greeting": None}}, namespace=namespace)
        await eventually(lambda: greets("World"), "the greeting was there again")
        assert await running.stop() == 0
        await client.patch(CONFIG_MAP, "world", {"data": {"name": "Mars"}}, namespace=namespace)
    async with operator("samples/hello/operator.py", cluster.kubeconfig, tmp_path, "-n", namespace):
        await eventually(lambda: greets("Mars"), "it caught up with what happened while it was away")


async def test_myapp_makes_what_its_manifest_says(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await cluster.install_crds(MyApp)
    await client.create(a_sample("myapp/shop.yaml", namespace))
    async with operator("samples.myapp.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace):

        async def scaled() -> bool:
            found = await client.find(Kind("apps/v1", "Deployment"), "shop", namespace=namespace)
            return found is not None and found["spec"]["replicas"] == 2

        await eventually(scaled, "the Deployment had two replicas")


@pytest.fixture
async def buckets(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, str]]:
    """What the object store holds; the operator is told where it is."""
    held: dict[str, str] = {}
    runner = web.AppRunner(make_store(held))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    monkeypatch.setenv("STORE_URL", f"http://{host}:{port}")
    yield held
    await runner.cleanup()


@pytest.fixture
async def bucket_operator(
    buckets: dict[str, str], cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[OperatorProcess]:
    await cluster.install_crds(Bucket)
    async with operator("samples.bucket.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace) as running:
        yield running


async def test_a_bucket_is_made_reported_on_and_deleted_with_its_object(
    client: Client, namespace: str, buckets: dict[str, str], bucket_operator: OperatorProcess
) -> None:
    await client.create(a_sample("bucket/photos.yaml", namespace))

    async def ready(status: str) -> bool:
        bucket = await client.get(Bucket, "photos", namespace=namespace)
        return [(c.status, c.observed_generation) for c in bucket.status.conditions] == [(status, bucket.generation)]

    await eventually(lambda: ready("True"), "it was ready")
    bucket = await client.get(Bucket, "photos", namespace=namespace)
    assert bucket.metadata.finalizers == [FINALIZER]
    assert buckets == {bucket.uid: "north"}
    assert bucket.status.url == f"store://north/{bucket.uid}"

    await client.patch(bucket, patch={"spec": {"region": "moon"}})
    await eventually(lambda: ready("False"), "it was not ready any more")

    async def told() -> bool:
        events = await client.list(EVENT, namespace=namespace)
        return {(e["type"], e["reason"]) for e in events} >= {("Normal", "Stored"), ("Warning", "Refused")}

    await eventually(told, "both Events were published")
    await client.delete(Bucket, "photos", namespace=namespace)

    async def gone() -> bool:
        return await client.find(Bucket, "photos", namespace=namespace) is None

    await eventually(gone, "the object was gone")
    assert buckets == {}


@pytest.mark.parametrize("folder", [f for f in folders() if f.name != "hello"], ids=lambda folder: folder.name)
def test_the_crd_command_prints_what_the_readme_applies(folder: Path) -> None:
    command = [sys.executable, "-m", "kopylite", "crd", f"samples.{folder.name}.operator:app"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=SAMPLES.parent, timeout=50)
    names = {crd["spec"]["names"]["kind"] for crd in yaml.safe_load_all(printed.stdout)}
    manifests = [yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml") if path.name != "sweep.yaml"]
    assert names == {manifest["kind"] for manifest in manifests}
