"""Each fault, by hand, on an embedded cluster, as its clients meet it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from kopylite import AlreadyExists, ApiError, Client, Kind, TransportError, Unstructured
from kopylite.client import HttpTransport, LineSplitter, ListWatch, ResourceInfo, decode_event, load_config
from kopylite.devcluster.faults import Fault, concerns
from kopylite.errors import UsageError
from kopylite.testing import EmbeddedCluster

ConfigMap = Kind("v1", "ConfigMap", "configmaps", True)


def a_config_map(name: str = "a") -> Unstructured:
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(tls=False, controllers=False) as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with cluster.client() as client:
        yield client


async def test_a_lost_response_hides_a_write_that_has_happened(cluster: EmbeddedCluster, client: Client) -> None:
    fault = cluster.faults.lose_response(verb="create", resource="configmaps")
    with pytest.raises(TransportError):
        await client.create(a_config_map())
    assert fault.hits == 1
    with pytest.raises(AlreadyExists):
        await client.create(a_config_map())


async def test_an_answer_is_given_so_often_and_nothing_happens(cluster: EmbeddedCluster, client: Client) -> None:
    cluster.faults.answer(500, verb="create", resource="configmaps", nth=2, times=2)
    await client.create(a_config_map("a"))
    for _ in range(2):
        with pytest.raises(ApiError) as raised:
            await client.create(a_config_map("b"))
        assert raised.value.code == 500
    assert await client.live.find(ConfigMap, "b", namespace="default") is None
    await client.create(a_config_map("b"))
    with pytest.raises(UsageError, match="200 is no error"):
        cluster.faults.answer(200)


async def test_a_server_that_asks_to_wait_is_asked_again(cluster: EmbeddedCluster, client: Client) -> None:
    fault = cluster.faults.answer(429, retry_after=0, times=2)
    await client.create(a_config_map())
    assert fault.hits == 2


async def test_somebody_can_write_before_and_after_a_write(cluster: EmbeddedCluster, client: Client) -> None:
    seen: list[str] = []

    async def before(request: Any) -> None:
        seen.append(f"before {request.method}")

    async def after(request: Any, response: Any) -> None:
        seen.append(f"after {response.status}")

    first = cluster.faults.before_write(before, times=None)
    cluster.faults.after_write(after, times=None)
    await client.create(a_config_map())
    with pytest.raises(AlreadyExists):
        await client.create(a_config_map())
    assert seen == ["before POST", "after 201", "before POST"]
    first.remove()
    await client.delete(ConfigMap, "a", namespace="default")
    assert seen[3:] == ["after 200"]


async def test_stale_reads_end_with_their_time(cluster: EmbeddedCluster, client: Client) -> None:
    await client.create(a_config_map("a"))
    fault = cluster.faults.serve_stale(0.3, verb="list", resource="configmaps")
    await client.create(a_config_map("b"))
    assert [each.name for each in await client.live.list(ConfigMap, labels="!x", namespace="default")] == ["a"]
    assert await client.live.find(ConfigMap, "b", namespace="default") is not None
    with anyio.fail_after(5):
        while not fault.removed:
            found = [each.name for each in await client.live.list(ConfigMap, namespace="default")]
    assert found == ["a", "b"]


async def test_events_come_late_or_twice_or_the_watch_ends_instead(cluster: EmbeddedCluster, client: Client) -> None:
    late = cluster.faults.delay_events(0.05, resource="configmaps", name="")
    cluster.faults.cut_watch(resource="configmaps", nth=3)
    cluster.faults.repeat_events(resource="configmaps", nth=2)
    seen: list[str] = []
    version = cluster.snapshot().resource_version
    for name in "abc":
        await client.create(a_config_map(name))
    splitter = LineSplitter()
    with anyio.fail_after(10):
        async with HttpTransport(load_config(str(cluster.kubeconfig))) as transport:
            lists = ListWatch(transport, ResourceInfo(ConfigMap, "configmaps", True), "default")
            async with lists.watch(resource_version=version, timeout_seconds=9) as stream:
                async for chunk in stream.chunks():
                    seen += [decode_event(line)[0] for line in splitter.feed(chunk)]
    assert seen == ["ADDED", "ADDED", "ADDED"]
    assert late.hits == 1


def test_what_a_fault_does_not_know_is_refused() -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(UsageError, match="there is no 'kind'; requests are chosen by agent, name"):
        cluster.faults.lose_response(kind="ConfigMap")  # type: ignore[call-arg]


def test_a_fault_counts_what_it_concerns() -> None:
    from kopylite.apiserver.request.request import HttpRequest

    request = HttpRequest.of("PUT", "/apis/apps/v1/namespaces/n/deployments/d/status", headers={"User-Agent": "me/1"})
    assert concerns({"resource": "deployments.apps", "subresource": "status", "agent": "me/"}, request)
    assert not concerns({"subresource": ""}, request)
    assert not concerns({"only": lambda request: False}, request)
    fault = Fault({"nth": 2, "times": 2})
    assert [fault.strikes(request) for _ in range(5)] == [False, True, True, False, False]
    fault.remove()
    assert not fault.strikes(request)
