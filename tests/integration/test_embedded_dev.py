"""What a newcomer types: `kopylite run --dev`, `kopylite apiserver`, the demo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from kopylite.client import Client, connect
from kopylite.crds.crd import crd_of
from kopylite.objects import Kind, Unstructured
from samples.myapp.operator import MyApp
from tests.operators import eventually

DEPLOYMENT, CONFIG_MAP = Kind("apps/v1", "Deployment"), Kind("v1", "ConfigMap")
MYAPP = Kind("example.com/v1", "MyApp")

pytestmark = pytest.mark.timeout(90)


@asynccontextmanager
async def kopylite(arguments: Sequence[str], folder: Path) -> AsyncIterator[Client]:
    """A command that serves an embedded cluster, with a client for it; ended by SIGTERM, with exit code 0."""
    root = Path(__file__).parent.parent.parent
    log = folder / f"log-{len(list(folder.iterdir()))}"
    kubeconfig = folder / "kopylite.kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    with log.open("w") as output:
        process = await anyio.open_process(
            [sys.executable, "-m", "kopylite", *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            cwd=folder, env=os.environ | {"PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip

    def serves() -> bool:
        assert process.returncode is None, log.read_text()
        begun = "begins, workers" if arguments[0] == "run" else "export KUBECONFIG="
        return kubeconfig.exists() and begun in log.read_text()

    try:
        await eventually(serves, "it told where it serves", limit=40)
        async with connect(kubeconfig) as client:
            yield client
        process.send_signal(signal.SIGTERM)
        with anyio.fail_after(20):
            assert await process.wait() == 0, log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()


def a_myapp(name: str) -> Unstructured:
    metadata = {"name": name, "namespace": "default"}
    spec = {"image": "nginx:1", "replicas": 2}
    return Unstructured({"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": metadata, "spec": spec})


async def test_an_operator_runs_with_a_cluster_of_its_own(tmp_path: Path) -> None:
    async with kopylite(["run", "samples.myapp.operator:app", "--dev", *QUIET], tmp_path) as client:
        await client.create(a_myapp("web"))

        async def ready() -> bool:
            return (await client.get(MYAPP, "web", namespace="default")).status.get("readyReplicas") == 2

        await eventually(ready, "its replicas were ready")
        await client.delete(MYAPP, "web", namespace="default")

        async def collected() -> bool:
            return await client.find(DEPLOYMENT, "web", namespace="default") is None

        await eventually(collected, "its Deployment was collected")
    assert not (tmp_path / "kopylite.kubeconfig").exists(), "it is of no use any more"


async def test_a_developers_world_survives_a_restart(tmp_path: Path) -> None:
    arguments = ["run", "samples.myapp.operator:app", "--dev", "--dev-data", "world.json", "--no-simulator", *QUIET]
    async with kopylite(arguments, tmp_path) as client:
        created = await client.create(a_myapp("web"))
        await eventually(lambda: client.find(DEPLOYMENT, "web", namespace="default"), "it had its Deployment")
    async with kopylite(arguments, tmp_path) as client:
        assert (await client.get(MYAPP, "web", namespace="default")).uid == created.uid
        assert await client.find(DEPLOYMENT, "web", namespace="default") is not None


QUIET = ("--metrics-address", "off", "--health-address", "off")


async def test_the_api_server_alone_plays_workloads_unless_told_not_to(tmp_path: Path) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    deployment = Unstructured({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    async with kopylite(["apiserver"], tmp_path) as client:
        await client.create(deployment)

        async def ready() -> bool:
            return (await client.get(DEPLOYMENT, "web", namespace="default")).status.get("readyReplicas") == 2

        await eventually(ready, "it was ready")
    async with kopylite(["apiserver", "--no-simulator"], tmp_path) as client:
        await client.create(deployment)

        async def published() -> bool:
            return await client.find(CONFIG_MAP, "kube-root-ca.crt", namespace="default") is not None

        await eventually(published, "its other controllers ran")
        assert (await client.get(DEPLOYMENT, "web", namespace="default")).status == {}
    async with kopylite(["apiserver", "--no-controllers"], tmp_path) as client:
        await client.create(deployment)
        assert await client.list(CONFIG_MAP, namespace="default") == []


def test_the_demo_comes_out_as_it_says(repository: Path) -> None:
    command = [sys.executable, "-m", "samples.myapp.demo"]
    ended = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "13 checks passed" in ended.stdout
    assert ended.stderr == ""


async def test_both_commands_install_definitions_of_files(tmp_path: Path, repository: Path) -> None:
    crds = tmp_path / "crds"
    crds.mkdir()
    (crds / "one.json").write_text(json.dumps(crd_of(MyApp)))
    work = tmp_path / "work"
    work.mkdir()
    for arguments in (
        ["apiserver", "--crds", str(crds)],
        ["run", str(repository / "samples" / "hello" / "operator.py"), "--dev", "--crds", str(crds / "one.json")],
    ):
        async with kopylite(arguments, work) as client:
            created = await client.create(a_myapp("a"))
            assert created.uid
