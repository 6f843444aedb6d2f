"""What a controller has given up says so on the object, where people look."""

from __future__ import annotations

import base64
from typing import Any

from kopylite import App, Context, Kind, Request, TerminalError, Unstructured
from kopylite.client import Client
from kopylite.testing import Cluster
from kopylite.workqueue import RateLimit
from tests.operators import eventually

CONFIG_MAP, SECRET, EVENT = Kind("v1", "ConfigMap"), Kind("v1", "Secret"), Kind("events.k8s.io/v1", "Event")
PASSWORD = "correct horse battery staple"


async def events_about(client: Client, obj: Unstructured) -> list[Unstructured]:
    """As `kubectl describe` finds them: by the uid."""
    found = await client.live.list(Kind("v1", "Event"), namespace=obj.namespace, fields={"involvedObject.uid": obj.uid})
    return [event for event in found if event.get("type") == "Warning"]


async def made(client: Client, namespace: str, name: str, **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data=data))


def failing(**options: Any) -> App:
    app = App("failing")

    @app.reconciler(CONFIG_MAP, labels="!kubernetes.io/managed", rate_limit=RateLimit(longest=0.01), **options)
    async def reconcile(ctx: Context, request: Request) -> None:
        config_map = await ctx.client.find(CONFIG_MAP, request)
        if config_map is None or "how" not in config_map.get("data", {}):
            return
        secret = await ctx.client.find(SECRET, "s", namespace=request.namespace)
        password = base64.b64decode(secret["data"]["password"]).decode() if secret else ""
        if config_map["data"]["how"] == "terminal":
            raise TerminalError(f"no such region, said {password}")
        raise ValueError("always")

    return app


async def test_a_terminal_error_and_a_key_given_up_are_events_of_the_object(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    wire = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace}}
    await client.create(Unstructured({**wire, "stringData": {"password": PASSWORD}}))
    terminal = await made(client, namespace, "terminal", how="terminal")
    given_up = await made(client, namespace, "given-up", how="error")
    async with cluster.running(failing(max_retries=2), namespaces=[namespace]):

        async def told() -> bool:
            return bool(await events_about(client, terminal)) and bool(await events_about(client, given_up))

        await eventually(told, "both Events are there")
        for number in range(3):  # a key that fails alike again is the same Event
            await client.patch(CONFIG_MAP, terminal, {"metadata": {"annotations": {"n": str(number)}}})

        async def counted() -> bool:
            [event] = await events_about(client, terminal)
            return bool((event.get("series") or {}).get("count", 1) > 1)

        await eventually(counted, "the repeats are counted")
    [event] = await events_about(client, terminal)
    assert event["reason"] == "TerminalError"
    assert event["message"].startswith("terminal error, waiting for the next event: ")
    assert "no such region" in event["message"]
    assert PASSWORD not in str(event)
    [event] = await events_about(client, given_up)
    assert (event["reason"], event["message"]) == (
        "GaveUp",
        "gave up after 2 retries, waiting for the next event: ValueError: always",
    )


async def test_they_can_be_switched_off(cluster: Cluster, client: Client, namespace: str) -> None:
    terminal = await made(client, namespace, "terminal", how="terminal")
    async with cluster.running(failing(failure_events=False), namespaces=[namespace]) as manager:

        async def failed() -> bool:
            text = manager.metrics.exposition()[0].decode()
            return 'controller_runtime_terminal_reconcile_errors_total{controller="configmap"} 1.0' in text

        await eventually(failed, "the run failed")
    assert await events_about(client, terminal) == []
