"""Faults in front of another cluster (relay, faultproxy): the same on the embedded and on a real API server."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from kopylite import App, Context, Kind, Request, Unstructured
from kopylite.client import ApiRequest, Client, load_config
from kopylite.client.transport import HttpTransport
from kopylite.devcluster.faultproxy import FaultProxy
from kopylite.devcluster.relay import JSON
from kopylite.errors import ApiError, StreamBroken
from kopylite.testing import Cluster
from tests.operators import eventually

CONFIG_MAP, SECRET = Kind("v1", "ConfigMap"), Kind("v1", "Secret")


def config_map(name: str, namespace: str, **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data=data)


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(cluster.kubeconfig) as proxy:
        yield proxy


async def test_a_write_whose_answer_is_lost_has_happened(
    proxy: FaultProxy, cluster: Cluster, client: Client, namespace: str
) -> None:
    fault = proxy.faults.lose_response(verb="create", resource="configmaps")
    async with proxy.client() as through:
        with pytest.raises(StreamBroken):
            await through.create(config_map("a", namespace))
        assert fault.hits == 1
        assert await client.live.find(CONFIG_MAP, "a", namespace=namespace) is not None
    config = replace(load_config(str(proxy.kubeconfig)), user_agent="tester/1")
    async with HttpTransport(config) as transport:
        body = json.dumps(config_map("b", namespace, size="1")).encode()
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        assert (await transport.request(ApiRequest("POST", path, body=body, content_type=JSON))).status == 201
    async with HttpTransport(load_config(str(cluster.kubeconfig))) as transport:
        answer = await transport.request(ApiRequest("GET", f"/api/v1/namespaces/{namespace}/configmaps/b"))
    assert b'"manager":"tester"' in answer.body.replace(b" ", b"")  # the writer is the client, and not the proxy


async def test_a_write_is_refused_and_has_not_happened(proxy: FaultProxy, client: Client, namespace: str) -> None:
    proxy.faults.answer(409, verb="create")
    async with proxy.client() as through:
        with pytest.raises(ApiError, match="a fault of the test"):
            await through.create(config_map("a", namespace))
    assert await client.live.find(CONFIG_MAP, "a", namespace=namespace) is None


async def test_reads_are_old_for_a_while(proxy: FaultProxy, client: Client, namespace: str) -> None:
    async with proxy.client() as through:
        await through.create(config_map("a", namespace, size="1"))
        fault = proxy.faults.serve_stale(60)
        await client.create(config_map("b", namespace))
        await client.patch(CONFIG_MAP, "a", {"data": {"size": "2"}}, namespace=namespace)
        assert (await through.live.get(CONFIG_MAP, "a", namespace=namespace))["data"] == {"size": "1"}
        assert await through.live.find(CONFIG_MAP, "b", namespace=namespace) is None
        names = {each.name for each in await through.live.list(CONFIG_MAP, namespace=namespace)}
        assert "a" in names
        assert "b" not in names
        fault.remove()
        assert (await through.live.get(CONFIG_MAP, "a", namespace=namespace))["data"] == {"size": "2"}


async def test_an_operator_behind_it_meets_watches_that_are_cut_late_and_expired(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    app = App("copier")

    @app.reconciler(CONFIG_MAP)
    async def reconcile(ctx: Context, request: Request) -> None:
        found = await ctx.client.find(CONFIG_MAP, request)
        if found is not None and found["data"].get("wanted"):
            await ctx.client.patch(found, {"data": {"seen": found["data"]["wanted"]}})

    async def sees(number: str) -> bool:
        found = await client.live.get(CONFIG_MAP, "a", namespace=namespace)
        answer: bool = found["data"].get("seen") == number
        return answer

    where: Any = {"resource": "configmaps", "agent": "copier/"}
    async with proxy.running(app, namespaces=[namespace]):
        late = proxy.faults.delay_events(0.1, **where)
        await client.create(config_map("a", namespace, wanted="1"))
        await eventually(lambda: sees("1"), "it saw what came late")
        cut = proxy.faults.cut_watch(abrupt=True, **where)
        await client.patch(CONFIG_MAP, "a", {"data": {"wanted": "2"}}, namespace=namespace)
        await eventually(lambda: sees("2"), "it watched again")
        assert (late.hits, cut.hits) == (1, 1)
        assert proxy.faults.compact() > 0
        cut = proxy.faults.cut_watch(**where)
        await client.patch(CONFIG_MAP, "a", {"data": {"wanted": "9"}}, namespace=namespace)
        await eventually(lambda: sees("9"), "it listed anew")
        assert cut.hits == 1


async def test_who_has_no_token_is_refused(proxy: FaultProxy, cluster: Cluster) -> None:
    config = load_config(str(proxy.kubeconfig), anonymous=True)
    async with HttpTransport(config) as transport:
        answer = await transport.request(ApiRequest("GET", "/api/v1/secrets"), timeout=10)
    assert answer.status == 401
    assert b"secret" not in answer.body.lower()


async def test_its_token_is_in_no_log_error_or_list_of_requests(
    proxy: FaultProxy, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = re.findall(r'token"?: "?([0-9a-f-]{36})', proxy.kubeconfig.read_text())[0]
    proxy.faults.lose_response(verb="create")
    async with proxy.client() as through:
        with pytest.raises(StreamBroken) as broken:
            await through.create(config_map("a", namespace))
        proxy.faults.answer(500, verb="patch")
        with pytest.raises(ApiError) as refused:
            await through.patch(CONFIG_MAP, "a", {"data": {"a": "b"}}, namespace=namespace)
    told = [caplog.text, repr(broken.value), str(refused.value), *map(repr, proxy.requests)]
    assert len(told) > 4
    assert [text for text in told if token in text] == []
