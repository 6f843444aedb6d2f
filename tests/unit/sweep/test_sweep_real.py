"""Sweeps on a real server (real, realworld, realserver): the same verdicts, and nothing else is touched."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from kopylite import Kind, Unstructured
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.client import ApiRequest, ApiResponse
from kopylite.client.transport import Transport
from kopylite.errors import UsageError
from kopylite.sweep import Scenario, Step
from kopylite.sweep.engine import Settings
from kopylite.sweep.real import PREFIX, sweep_on_real
from kopylite.sweep.realserver import RealCore
from kopylite.sweep.realworld import FASTER, FastClock
from kopylite.sweep.source import source_of
from kopylite.testing import EnvTest
from samples.shop import operator as shop
from tests.unit.sweep import operators

CONFIG_MAP, SECRET, NAMESPACE = Kind("v1", "ConfigMap"), Kind("v1", "Secret"), Kind("v1", "Namespace", namespaced=False)


def a_config_map(namespace: str = "default") -> Unstructured:
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "a", "namespace": namespace})


@pytest.mark.realserver
@pytest.mark.timeout(300)
async def test_a_real_server_says_the_same_and_holds_nothing_of_it_afterwards(real_cluster: EnvTest) -> None:
    scenario = Scenario((Step("apply", a_config_map()),), name="two Secrets")
    settings = Settings(("crash",), budget=200, jobs=2)
    async with real_cluster.client() as client:
        kept = await client.create(a_config_map())
        work = partial(
            sweep_on_real, source_of(operators.pair), scenario, settings, str(real_cluster.kubeconfig), "", remote=False
        )
        report = await anyio.to_thread.run_sync(work)
        assert (report.on_real, report.differences) == (2, []), report
        assert [finding.object for finding in report.findings] == ["Secret default/two"]
        stored = await client.live.get(CONFIG_MAP, "a", namespace="default")
        assert stored.resource_version == kept.resource_version
        assert await client.live.find(SECRET, "one", namespace="default") is None
        left = [n for n in await client.live.list(NAMESPACE) if n.name.startswith(PREFIX)]
        assert all("deletionTimestamp" in n.metadata for n in left)
        await client.delete(CONFIG_MAP, "a", namespace="default")


def kubeconfig(folder: Path, server: str) -> str:
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_what_a_real_server_is_not_asked_for(tmp_path: Path) -> None:
    there = kubeconfig(tmp_path, "https://prod.example.com")
    refused = partial(sweep_on_real, settings=Settings(), kubeconfig=there, context="a", remote=False)
    mine = Scenario((Step("apply", a_config_map()),))
    with pytest.raises(UsageError, match=r"prod\.example\.com is not this machine.*--real-remote"):
        refused(source_of(operators.pair), mine)
    with pytest.raises(UsageError, match="the App has webhooks"):
        refused(source_of(shop.app), mine)
    with pytest.raises(UsageError, match=r"all steps have to be in namespace default.*: other"):
        refused(source_of(operators.pair), Scenario((Step("apply", a_config_map("other")),)))


class Recorded(Transport):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ApiRequest] = []

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        self.asked.append(request)
        return ApiResponse(200, {}, b'{"items": [], "metadata": {"namespace": "ours-1", "resourceVersion": "7"}}')

    def stream(self, request: ApiRequest) -> None:  # type: ignore[override]
        raise AssertionError("nobody watches")


async def test_one_namespace_is_seen_and_written_and_no_other() -> None:
    world, transport = ApiServer(ApiServerOptions(listen=False)).world, Recorded()
    core = RealCore(transport, world, "ours-1")

    async def ask(method: str, path: str, body: object = None) -> Response:
        data = json.dumps(body).encode() if body is not None else b""
        return await core.pass_on(HttpRequest.of(method, path, body=data))

    for path, there in (
        ("/api/v1/namespaces/default/secrets/x", "/api/v1/namespaces/ours-1/secrets/x"),
        ("/api/v1/secrets", "/api/v1/namespaces/ours-1/secrets"),
        ("/api/v1/namespaces", "/api/v1/namespaces?fieldSelector=metadata.name%3Dours-1"),
    ):
        answer = await ask("GET", path)
        assert b"ours-1" not in answer.body
        assert transport.asked[-1].target == there
    await ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"namespace": "default"}})
    assert transport.asked[-1].body == b'{"spec": {"namespace": "ours-1"}}'
    asked = len(transport.asked)
    for method, path, status in (
        ("POST", "/api/v1/namespaces", 403),
        ("DELETE", "/api/v1/namespaces/default", 403),
        ("DELETE", "/api/v1/namespaces/kube-system/secrets/x", 403),
        ("GET", "/api/v1/namespaces/kube-system/secrets", 403),
        ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin", 403),
        ("DELETE", "/api/v1/pods", 403),
        ("GET", "/apis/others.example.com/v1/things", 404),
    ):
        assert (await ask(method, path)).status == status, path
    assert len(transport.asked) == asked


def test_time_passes_faster() -> None:
    clock, woken = FastClock(), []

    async def main() -> None:
        began = clock.monotonic()
        await anyio.sleep(FASTER / 100)
        woken.append(clock.monotonic() - began)

    clock.run(main)
    assert woken[0] >= FASTER / 100
