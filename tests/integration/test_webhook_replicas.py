"""Two replicas as processes: they agree on one authority, and one that is stopped answers what has begun."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import ssl
from pathlib import Path

import aiohttp
import anyio
import pytest

from kopylite import Kind
from kopylite.client import Client
from kopylite.objects.yamlread import read_documents
from kopylite.testing import Cluster
from tests.operators import OperatorProcess, children_of, eventually, operator
from tests.unit.webhooks.test_webhooks_admission import review_of, shop

OPERATOR = """
import anyio
from kopylite import App, Context, Kind, Review

app = App("judge")

@app.validator(Kind("example.com/v1", "Shop", "shops", True))
async def check(ctx: Context, review: Review) -> None:
    if review.object["metadata"]["name"] == "slow":
        await anyio.sleep(2)
        review.warn("took its time")
"""
SECRET = Kind("v1", "Secret")

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]


def port_of(running: OperatorProcess) -> int:
    found = re.search(r"webhooks listen on https://127\.0\.0\.1:(\d+)", running.log)
    return int(found[1]) if found else 0


async def test_two_that_start_at_once_agree_and_one_that_is_stopped_answers_what_has_begun(
    cluster: Cluster, client: Client, namespace: str, tmp_path: Path
) -> None:
    program = tmp_path / "judge.py"
    program.write_text(OPERATOR)
    kubeconfig = tmp_path / "kubeconfig"
    [document] = read_documents(cluster.kubeconfig.read_bytes(), "kubeconfig")
    document["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(json.dumps(document))
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    options = ("--webhook-address", "127.0.0.1:0")
    async with (
        operator(f"{program}:app", kubeconfig, folders[0], *options, wait=False) as one,
        operator(f"{program}:app", kubeconfig, folders[1], *options, wait=False) as two,
    ):
        await eventually(lambda: port_of(one) and port_of(two), "both listened", limit=60)
        secret = await client.live.get(SECRET, "judge-webhooks-certs", namespace=namespace)
        authority = base64.b64decode(secret["data"]["ca.crt"])
        assert authority.count(b"BEGIN CERTIFICATE") == 1
        host = f"judge-webhooks.{namespace}.svc"
        assert await judged(one, host, authority) == await judged(two, host, authority) == (200, None)

        answers: list[tuple[int, str | None]] = []

        async def ask_slowly() -> None:
            answers.append(await judged(one, host, authority, "slow"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_slowly)
            await eventually(lambda: in_flight(one), "the call was in progress")
            one.process.terminate()
            await eventually(lambda: unready(one), "it was not ready any more")
            # Callers that have not heard of it yet are answered, and told to connect anew, so elsewhere.
            assert await judged(one, host, authority) == (200, "close")
        assert answers == [(200, "close")]
        with anyio.fail_after(30):
            assert await one.process.wait() == 0
        assert await judged(two, host, authority) == (200, None)
    assert "PRIVATE" not in one.log + two.log


async def test_processes_of_one_machine_share_an_address_and_one_that_is_killed_loses_no_call(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    program = tmp_path / "judge.py"
    program.write_text(OPERATOR)
    async with embedded_cluster.client() as client:
        with socket.socket() as reserved:  # it does not listen, so nobody is connected to it
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reserved.bind(("127.0.0.1", 0))
            options = ("--processes", "2", "--webhook-address", f"127.0.0.1:{reserved.getsockname()[1]}")
            async with operator(
                f"{program}:app", embedded_cluster.kubeconfig, tmp_path, *options, wait=False
            ) as running:
                await eventually(lambda: listening(running) == 2, "both listened", limit=60)
                secret = await client.live.get(SECRET, "judge-webhooks-certs", namespace="default")
                authority = base64.b64decode(secret["data"]["ca.crt"])
                os.kill(children_of(running.process.pid)[0], signal.SIGKILL)
                await eventually(lambda: "has ended by SIGKILL" in running.log, "its parent saw it")
                for _ in range(10):
                    assert await judged(running, "judge-webhooks.default.svc", authority) == (200, None)
                await eventually(lambda: listening(running) == 3, "another one took its place", limit=60)


def listening(running: OperatorProcess) -> int:
    return running.log.count("webhooks listen on")


async def in_flight(running: OperatorProcess) -> bool:
    return await running.sum_of("controller_runtime_webhook_requests_in_flight") == 1


async def unready(running: OperatorProcess) -> bool:
    return (await running.get("/readyz"))[0] == 500


async def judged(running: OperatorProcess, host: str, authority: bytes, name: str = "quick") -> tuple[int, str | None]:
    """Calls a replica as the API server does: the status, and what becomes of the connection."""
    context = ssl.create_default_context(cadata=authority.decode())
    connector = aiohttp.TCPConnector(ssl=context)
    body = review_of({**shop(), "metadata": {"name": name}})
    url = f"https://127.0.0.1:{port_of(running)}/validate-example-com-v1-shop"
    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post(url, data=body, headers=headers, server_hostname=host) as response,
    ):
        assert (await response.json())["response"]["allowed"]
        return response.status, response.headers.get("Connection")
