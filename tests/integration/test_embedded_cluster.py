"""EmbeddedCluster: a control plane in this process, and what only it can do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from kopylite.client import ApiRequest, Client
from kopylite.errors import Conflict, Forbidden, TransportError, UsageError
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster, EnvTest, VirtualClock
from kopylite.testing.clock import START
from samples.myapp.operator import MyApp
from tests.operators import eventually, operator

CONFIG_MAP = Kind("v1", "ConfigMap")
DEPLOYMENT = Kind("apps/v1", "Deployment")
NAMESPACE = Kind("v1", "Namespace")


def a_config_map(name: str, **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


async def names(client: Client) -> list[str]:
    found = await client.list(CONFIG_MAP, namespace="default", labels="!internal")
    return [obj.name for obj in found if obj.name != "kube-root-ca.crt"]


def test_whatever_a_test_does_with_a_real_control_plane_it_can_do_with_this_one() -> None:
    """Without changing the code: parameters of the constructor and processes aside."""
    offered = {name for name in vars(EnvTest) if not name.startswith("_")}
    assert offered <= set(dir(EmbeddedCluster))


async def test_it_starts_in_less_than_a_tenth_of_a_second() -> None:
    async with EmbeddedCluster():
        pass  # the first one imports what all need
    times = []
    for _ in range(5):
        began = time.thread_time()  # not the clock's: machines are loaded
        async with EmbeddedCluster():
            times.append(time.thread_time() - began)
    assert min(times) < 0.1


async def test_it_comes_with_crds_and_takes_its_files_along() -> None:
    async with EmbeddedCluster(crds=[MyApp]) as cluster, cluster.client() as client:
        assert await client.list(MyApp) == []
        kubeconfig = cluster.kubeconfig
        assert kubeconfig.stat().st_mode & 0o077 == 0, "it holds a credential"
    assert not kubeconfig.exists()


async def test_an_owner_takes_its_dependents_along_and_a_namespace_its_content() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        parent = await client.create(a_config_map("parent"))
        await client.create(a_config_map("child"), owner=parent)
        await client.delete(parent)
        await eventually(lambda: none(client), "the child was collected")


async def none(client: Client) -> bool:
    return await names(client) == []


async def test_without_controllers_it_is_a_bare_api_server() -> None:
    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        parent = await client.create(a_config_map("parent"))
        await client.create(a_config_map("child"), owner=parent)
        await client.delete(parent)
        await anyio.wait_all_tasks_blocked()
        assert await names(client) == ["child"]


async def test_controllers_can_be_chosen_one_by_one() -> None:
    async with EmbeddedCluster(controllers=["namespace"]) as cluster, cluster.client() as client:
        assert await client.list(CONFIG_MAP, namespace="default") == [], "nothing publishes the CA"
    with pytest.raises(
        UsageError, match="there is no controller 'gc'; there are clusterrole-aggregation, garbage-collector"
    ):
        await EmbeddedCluster(controllers=["gc"]).__aenter__()


async def test_a_user_may_do_nothing_until_rbac_says_so() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        kubeconfig = cluster.user_kubeconfig("alice", ["people"])
        async with cluster.client(kubeconfig) as alice:
            with pytest.raises(Forbidden, match='User "alice" cannot list'):
                await alice.list(CONFIG_MAP, namespace="default")
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "people"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "people"}],
            }
            await client.create(Unstructured(binding))
            assert await alice.list(CONFIG_MAP, namespace="default", labels="none") == []


async def test_a_killed_server_answers_nobody_and_comes_back_with_everything() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        url = cluster.url
        await client.create(a_config_map("kept"))
        await cluster.kill_api_server()
        with pytest.raises(TransportError):
            await client.create(a_config_map("lost"))
        await cluster.start_api_server()
        assert cluster.url == url
        assert await names(client) == ["kept"]


@pytest.mark.timeout(120)
async def test_an_operator_goes_on_after_the_api_server_was_away(tmp_path: Path) -> None:
    async with EmbeddedCluster(crds=[MyApp]) as cluster, cluster.client() as client:
        target = "samples.myapp.operator:app"
        async with operator(target, cluster.kubeconfig, tmp_path) as running:
            await client.create(a_myapp("before"))
            await eventually(lambda: client.find(DEPLOYMENT, "before", namespace="default"), "the first was built")
            await cluster.kill_api_server()
            await anyio.sleep(3)  # the outage itself, not a wait for something
            await cluster.start_api_server()
            await client.create(a_myapp("after"))
            await eventually(lambda: client.find(DEPLOYMENT, "after", namespace="default"), "the second was", limit=60)
            assert await running.stop() == 0


def a_myapp(name: str) -> Unstructured:
    metadata = {"name": name, "namespace": "default"}
    spec = {"image": "nginx:1"}
    return Unstructured({"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": metadata, "spec": spec})


async def test_a_fork_begins_where_its_origin_was_and_goes_its_own_way() -> None:
    async with EmbeddedCluster(crds=[MyApp]) as cluster, cluster.client() as client:
        await client.create(a_config_map("early"))
        snapshot = cluster.snapshot()
        await client.create(a_config_map("late"))
        async with cluster.fork(snapshot) as past, past.client() as other:
            assert await names(other) == ["early"]
            await other.create(a_config_map("elsewhere"))
            assert await other.list(MyApp) == [], "the kinds are there too"
            assert past.url != cluster.url
            assert await names(client) == ["early", "late"]
        async with cluster.fork() as now, now.client() as other:
            assert await names(other) == ["early", "late"]
        async with EmbeddedCluster(snapshot=snapshot) as again, again.client() as other:
            assert await names(other) == ["early"], "a snapshot serves any number of clusters"


async def test_the_request_log_tells_who_asked_for_what() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        with cluster.requests.recording() as recorded:
            await client.create(a_config_map("a", key="value"))
            with pytest.raises(Conflict):
                await client.delete(CONFIG_MAP, "a", namespace="default", uid="another")
            await client.find(CONFIG_MAP, "a", namespace="default")
        recorded = [request for request in recorded if request.user == "kubernetes-admin"]
        assert [str(request) for request in recorded] == [
            "create configmaps default -> 201",
            "delete configmaps default/a -> 409",
            "get configmaps default/a -> 200",
        ]
        assert [request.writes for request in recorded] == [True, True, False]
        assert b'"value"' in recorded[0].body
        assert recorded[-1] in list(cluster.requests)
        cluster.requests.clear()
        assert len(cluster.requests) == 0


async def test_watches_from_before_a_compaction_are_expired() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        first = await client.create(a_config_map("a"))
        second = await client.create(a_config_map("b"))
        assert cluster.compact() >= int(second.resource_version)
        query = {"watch": "1", "resourceVersion": first.resource_version, "timeoutSeconds": "5"}
        watch = ApiRequest("GET", "/api/v1/namespaces/default/configmaps", query)
        async with client.api.transport.stream(watch) as stream:
            body = await stream.read()
        assert b"too old resource version" in body


def test_it_may_be_used_from_another_thread_and_loop() -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EmbeddedCluster()) as cluster:

        async def use() -> list[str]:
            async with cluster.client() as client:
                await client.create(a_config_map("a"))
                await cluster.kill_api_server()
                await cluster.start_api_server()
                assert cluster.snapshot().resource_version
                return await names(client)

        assert asyncio.run(use()) == ["a"]


async def test_it_may_be_stopped_by_another_task_than_the_one_that_started_it() -> None:
    cluster = EmbeddedCluster(simulator=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.start)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.stop)
    await cluster.stop()


def test_in_virtual_time_hours_pass_in_a_moment() -> None:
    clock = VirtualClock()

    async def main() -> tuple[str, float]:
        async with EmbeddedCluster(clock=clock, tls=False) as cluster, cluster.client() as client:
            await anyio.sleep(7200)
            return (await client.create(a_config_map("a"))).metadata["creationTimestamp"], clock.monotonic()

    began = time.monotonic()
    created, passed = clock.run(main)
    assert passed >= 7200
    assert created >= START.replace(hour=2).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert time.monotonic() - began < 5


def test_the_fixture_gives_each_test_a_world_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_fixture.py").write_text("""
from kopylite.objects import Kind, Unstructured

NAMESPACE = Kind("v1", "Namespace")

async def use(cluster):
    async with cluster.client() as client:
        assert await client.find(NAMESPACE, "mine") is None
        await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}))

async def test_one(kube_cluster):
    await use(kube_cluster)

async def test_two(kube_cluster):
    await use(kube_cluster)
""")
    command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_importing_the_room_loads_no_control_plane() -> None:
    code = "import sys, kopylite.testing; print([m for m in sys.modules if m.startswith(('aiohttp', 'kopylite.api'))])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert printed.stdout.strip() == "[]"
