"""The main job: samples/myapp, run as its user runs it, on each control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from kopylite.client import Client
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster, EnvTest
from samples.myapp.operator import MyApp
from tests.machine import require_real_server
from tests.operators import OperatorProcess, eventually, operator

DEPLOYMENT = Kind("apps/v1", "Deployment")
CONFIG_MAP = Kind("v1", "ConfigMap")
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
TARGET = "samples.myapp.operator:app"

# Reports of the workload controllers on one change come closer together than this many seconds.
QUIET = 1.5

pytestmark = pytest.mark.timeout(180)


def a_myapp(namespace: str, name: str, *, replicas: int = 1, config: str | None = None) -> Unstructured:
    spec = {"image": "nginx:1", "replicas": replicas} | ({"config": config} if config else {})
    metadata = {"namespace": namespace, "name": name}
    return Unstructured({"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": metadata, "spec": spec})


def a_config_map(namespace: str, name: str) -> Unstructured:
    metadata = {"namespace": namespace, "name": name}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})


@pytest.fixture
async def running(cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    """The sample, ready, in the test's namespace."""
    await cluster.install_crds(MyApp)
    async with operator(TARGET, cluster.kubeconfig, tmp_path, "--namespace", namespace) as process:
        yield process


async def settled(running: OperatorProcess) -> float:
    """Wait until the operator is idle, and the world around it too; returns its writes so far.

    The workload controllers go on reporting on a Deployment for a moment, and each report is a run.
    """
    runs, since = -1.0, anyio.current_time()

    async def quiet() -> bool:
        nonlocal runs, since
        if not await running.idle() or await running.runs() != runs:
            runs, since = await running.runs(), anyio.current_time()
        return anyio.current_time() - since > QUIET

    await eventually(quiet, "the operator came to rest")
    return await running.writes()


async def test_every_myapp_gets_a_deployment_that_it_owns(
    client: Client, namespace: str, running: OperatorProcess
) -> None:
    for number in range(200):
        await client.create(a_myapp(namespace, f"app-{number}", replicas=number % 3))

    async def all_there() -> bool:
        return len(await client.list(DEPLOYMENT, namespace=namespace)) == 200

    await eventually(all_there, "200 Deployments existed", limit=60)
    apps = {app.name: app for app in await client.list(MyApp, namespace=namespace)}
    for deployment in await client.list(DEPLOYMENT, namespace=namespace):
        (owner,) = deployment.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("MyApp", deployment.name, True)
        assert owner.uid == apps[deployment.name].uid
        assert deployment["spec"]["replicas"] == apps[deployment.name].spec.replicas
    assert await settled(running) <= 2 * 200, "one create and at most one status for each"


async def test_a_hand_change_of_the_deployment_is_undone(
    client: Client, namespace: str, running: OperatorProcess
) -> None:
    await client.create(a_myapp(namespace, "web", replicas=2))
    await eventually(lambda: client.find(DEPLOYMENT, "web", namespace=namespace), "the Deployment existed")
    changed = await client.patch(DEPLOYMENT, "web", {"spec": {"replicas": 7}}, namespace=namespace)

    async def restored() -> bool:
        now = await client.get(DEPLOYMENT, "web", namespace=namespace)
        return now["spec"]["replicas"] == 2 and now.generation > changed.generation

    await eventually(restored, "replicas went back to 2")


async def test_a_deleted_deployment_is_rebuilt(client: Client, namespace: str, running: OperatorProcess) -> None:
    await client.create(a_myapp(namespace, "web"))
    await eventually(lambda: client.find(DEPLOYMENT, "web", namespace=namespace), "the Deployment existed")
    first = await client.get(DEPLOYMENT, "web", namespace=namespace)
    await client.delete(first)

    async def rebuilt() -> bool:
        now = await client.find(DEPLOYMENT, "web", namespace=namespace)
        return now is not None and now.uid != first.uid

    await eventually(rebuilt, "a new Deployment took the place of the deleted one")


async def test_a_config_map_runs_only_the_myapps_that_name_it(
    client: Client, namespace: str, running: OperatorProcess
) -> None:
    await client.create(a_config_map(namespace, "settings"))
    for name, config in (("one", "settings"), ("two", "settings"), ("three", "other"), ("four", None)):
        await client.create(a_myapp(namespace, name, config=config))
    await eventually(lambda: has(client, DEPLOYMENT, namespace, 4), "four Deployments existed")
    await settled(running)
    before = await running.runs()
    await client.patch(CONFIG_MAP, "settings", {"metadata": {"labels": {"touched": "yes"}}}, namespace=namespace)

    async def two_more() -> bool:
        return await running.runs() >= before + 2

    await eventually(two_more, "two more reconciles ran")
    await settled(running)
    assert await running.runs() == before + 2


async def has(client: Client, kind: Kind, namespace: str, count: int) -> bool:
    return len(await client.list(kind, namespace=namespace)) == count


async def test_ten_runs_of_an_unchanged_world_write_nothing(
    client: Client, namespace: str, running: OperatorProcess
) -> None:
    await client.create(a_config_map(namespace, "settings"))
    await client.create(a_myapp(namespace, "web", config="settings"))
    await eventually(lambda: has(client, DEPLOYMENT, namespace, 1), "the Deployment existed")
    writes = await settled(running)
    for number in range(10):
        before = await running.runs()
        patch = {"metadata": {"annotations": {"touched": str(number)}}}
        await client.patch(CONFIG_MAP, "settings", patch, namespace=namespace)

        async def ran(before: float = before) -> bool:
            return await running.runs() > before

        await eventually(ran, "the change made it run")
    assert await settled(running) == writes


async def test_a_restart_writes_nothing(client: Client, cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    await cluster.install_crds(MyApp)
    async with operator(TARGET, cluster.kubeconfig, tmp_path, "--namespace", namespace) as first:
        for number in range(20):
            await client.create(a_myapp(namespace, f"app-{number}"))
        await eventually(lambda: has(client, DEPLOYMENT, namespace, 20), "the Deployments existed")
        await settled(first)
        assert await first.stop() == 0
    async with operator(TARGET, cluster.kubeconfig, tmp_path, "--namespace", namespace) as second:

        async def all_ran() -> bool:
            return await second.runs() >= 20

        await eventually(all_ran, "every MyApp was looked at again")
        assert await settled(second) == 0


async def test_it_waits_for_a_missing_crd_and_survives_its_recreation(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await delete_crd(client)
    async with operator(TARGET, cluster.kubeconfig, tmp_path, "--namespace", namespace, wait=False) as running:
        await eventually(lambda: "MyApp" in running.log, "the log named the missing kind", limit=30)
        for round_number in range(2):
            await cluster.install_crds(MyApp)
            await client.create(a_myapp(namespace, f"web-{round_number}"))
            name = f"web-{round_number}"

            async def built(name: str = name) -> bool:
                return await client.find(DEPLOYMENT, name, namespace=namespace) is not None

            await eventually(built, f"{name} got its Deployment", limit=40)
            await delete_crd(client)
        assert running.process.returncode is None
    await cluster.install_crds(MyApp)


async def delete_crd(client: Client) -> None:
    await client.delete(CRD, "myapps.example.com", missing_ok=True)

    async def gone() -> bool:
        return await client.live.find(CRD, "myapps.example.com") is None

    await eventually(gone, "the CRD was gone", limit=40)


@pytest.mark.realserver
@pytest.mark.slow
async def test_it_goes_on_after_the_api_server_was_away_for_20_seconds(tmp_path: Path) -> None:
    require_real_server()
    async with EnvTest(crds=[MyApp]) as cluster, operator(TARGET, cluster.kubeconfig, tmp_path) as running:
        async with cluster.client() as client:
            await client.create(a_myapp("default", "before"))
            await eventually(lambda: has(client, DEPLOYMENT, "default", 1), "the first Deployment existed")
        await cluster.kill_api_server()
        await anyio.sleep(20)  # the outage itself, not a wait for something
        await cluster.start_api_server()
        async with cluster.client() as client:
            await client.create(a_myapp("default", "after"))
            await client.delete(DEPLOYMENT, "before", namespace="default")
            await eventually(lambda: has(client, DEPLOYMENT, "default", 2), "both Deployments exist", limit=60)
        assert running.process.returncode is None
        assert await running.stop() == 0
