"""The manifests of each sample on each control plane: accepted, and enough for the whole job, as its ServiceAccount."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import yaml
from aiohttp import web

from kopylite.client import Client
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster
from samples.bucket.operator import Bucket
from samples.bucket.store import make_store
from tests.operators import eventually, operator

CONFIG_MAP, DEPLOYMENT, LEASE = (
    Kind("v1", "ConfigMap"),
    Kind("apps/v1", "Deployment"),
    Kind("coordination.k8s.io/v1", "Lease"),
)
NAMESPACE = Kind("v1", "Namespace")

pytestmark = [pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(300)]


class Deployed:
    """A namespace on the real server with an operator's manifests in it."""

    def __init__(self, cluster: Cluster, kubectl: str, folder: Path, client: Client) -> None:
        self.namespace = f"deploy-{uuid.uuid4().hex[:8]}"
        self.client, self.folder = client, folder
        self._cluster, self._kubectl = cluster, kubectl

    async def kubectl(self, *arguments: str) -> str:
        command = [self._kubectl, "--kubeconfig", str(self._cluster.kubeconfig), *arguments]
        done = await anyio.run_process(command, check=False, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()

    async def apply(self, target: str, *options: str) -> None:
        """Make the manifests and apply them; first as a dry run."""
        files = self.folder / "deploy"
        command = ["manifests", target, "--image", "operator:1", "--namespace", self.namespace, *options]
        assert await anyio.to_thread.run_sync(_in_main_thread, [*command, "--output-dir", str(files)]) == 0
        assert await anyio.to_thread.run_sync(_in_main_thread, [*command, "--check", str(files)]) == 0
        await self.kubectl("apply", "-f", str(files / "00-namespace.yaml"))
        await self.kubectl("apply", "--dry-run=server", "-f", str(files))
        await self.kubectl("apply", "-f", str(files))
        for crd in sorted(files.glob("10-crds.yaml")):
            await self.kubectl("wait", "--for=condition=Established", "-f", str(crd), "--timeout=60s")

    async def kubeconfig(self, account: str) -> Path:
        """As the ServiceAccount, by a TokenRequest."""
        config = yaml.safe_load(self._cluster.kubeconfig.read_text())
        token = (await self.kubectl("create", "token", account, "-n", self.namespace)).strip()
        for user in config["users"]:
            user["user"] = {"token": token}
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


def _in_main_thread(arguments: list[str]) -> int:
    """The command line as a process has it."""
    import sys

    done = subprocess.run([sys.executable, "-m", "kopylite", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.returncode


@pytest.fixture
async def deployed(cluster: Cluster, kubectl: str, tmp_path: Path) -> AsyncIterator[Deployed]:
    async with cluster.client() as client:
        found = Deployed(cluster, kubectl, tmp_path, client)
        yield found
        await found.kubectl("delete", "namespace", found.namespace, "--ignore-not-found", "--wait=false")


def refused(log: str) -> bool:
    return "refuses what this operator needs" in log or "orbidden" in log


async def test_hello_works_with_its_role_alone(deployed: Deployed) -> None:
    await deployed.apply("samples/hello/operator.py", "--watch-namespace", deployed.namespace)
    kubeconfig = await deployed.kubeconfig("hello")
    async with operator("samples/hello/operator.py", kubeconfig, deployed.folder, "-n", deployed.namespace) as running:
        metadata = {"name": "world", "namespace": deployed.namespace}
        await deployed.client.create(
            Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"name": "World"})
        )

        async def greeted() -> bool:
            found = await deployed.client.live.get(CONFIG_MAP, "world", namespace=deployed.namespace)
            return found["data"].get("greeting") == "Hello, World!"

        await eventually(greeted, "the greeting was there", limit=60)
        assert await running.stop() == 0
    assert not refused(running.log), running.log


async def test_myapp_elects_a_leader_and_works_as_its_service_account(deployed: Deployed) -> None:
    await deployed.apply("samples.myapp.operator:app", "--replicas", "2")
    kubeconfig = await deployed.kubeconfig("myapp")
    options = ("--leader-elect", "--lease-namespace", deployed.namespace)
    async with operator("samples.myapp.operator:app", kubeconfig, deployed.folder, *options) as running:
        wire = yaml.safe_load(Path("samples/myapp/shop.yaml").read_text())
        wire["metadata"]["namespace"] = deployed.namespace
        await deployed.client.create(Unstructured(wire))

        async def scaled() -> bool:
            found = await deployed.client.live.find(DEPLOYMENT, "shop", namespace=deployed.namespace)
            return found is not None and found["spec"]["replicas"] == 2

        await eventually(scaled, "the Deployment had two replicas", limit=60)
        lease = await deployed.client.live.get(LEASE, "myapp", namespace=deployed.namespace)
        assert lease["spec"]["holderIdentity"]
        assert await running.stop() == 0
    assert not refused(running.log), running.log


async def test_bucket_makes_and_ends_as_its_service_account(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = web.AppRunner(make_store({}))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    monkeypatch.setenv("STORE_URL", f"http://{host}:{port}")
    await deployed.apply("samples.bucket.operator:app")
    kubeconfig = await deployed.kubeconfig("bucket")
    of = {"namespace": deployed.namespace}
    async with operator("samples.bucket.operator:app", kubeconfig, deployed.folder) as running:
        wire = yaml.safe_load(Path("samples/bucket/photos.yaml").read_text())
        wire["metadata"] |= of
        await deployed.client.create(Unstructured(wire))

        async def ready() -> bool:
            bucket = await deployed.client.live.get(Bucket, "photos", **of)
            return [one.status for one in bucket.status.conditions] == ["True"]

        await eventually(ready, "it was ready", limit=60)
        await deployed.client.delete(Bucket, "photos", **of)

        async def gone() -> bool:
            return await deployed.client.live.find(Bucket, "photos", **of) is None

        await eventually(gone, "its finalizer let it go", limit=60)
        assert await running.stop() == 0
    await runner.cleanup()
    assert not refused(running.log), running.log
