from __future__ import annotations

import base64
import logging
from collections.abc import Iterator

import pytest

from kopylite import App, Context, Kind, Request
from kopylite.client import Client
from kopylite.diagnostics import JsonFormatter, TextFormatter
from kopylite.testing import Cluster
from tests.operators import eventually

SECRET, EVENT = Kind("v1", "Secret"), Kind("events.k8s.io/v1", "Event")
# As a password may be: nothing about its form says what it is.
CANARY = "correct horse battery staple"


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """Everything that is logged, in both forms."""
    seen: list[str] = []

    class Both(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.extend(formatter.format(record) for formatter in (TextFormatter(), JsonFormatter()))

    handler, root = Both(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield seen
    root.removeHandler(handler)
    root.setLevel(level)


async def test_what_a_secret_holds_is_in_no_log_event_or_metric(
    cluster: Cluster, client: Client, namespace: str, lines: list[str]
) -> None:
    app = App("leaky")

    @app.reconciler(SECRET)
    async def reconcile(ctx: Context, request: Request) -> None:
        secret = await ctx.client.find(SECRET, request)
        if secret is None or "password" not in secret.get("data", {}):
            return
        password = base64.b64decode(secret["data"]["password"]).decode()
        logging.getLogger("leaky").info("read %s", secret)
        logging.getLogger("leaky").info("it is %s", password, extra={"fields": {"value": password}})
        ctx.event(secret, "Leaks", f"cannot sign in with {password}", type="Warning")
        raise ValueError(f"{password} does not fit")

    async with cluster.running(app, namespaces=[namespace]) as manager:
        wire = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": namespace}}
        await client.create({**wire, "stringData": {"password": CANARY}})

        async def told() -> bool:
            events = await client.live.list(EVENT, namespace=namespace)
            return any(event.get("reason") == "Leaks" for event in events)

        await eventually(told, "the Event was there")
        await eventually(lambda: any("does not fit" in line for line in lines), "the error was logged")
        everything = [*lines, *(str(event) for event in await client.live.list(EVENT, namespace=namespace))]
        everything.append(manager.metrics.exposition()[0].decode())
    assert any("[redacted] does not fit" in line for line in lines)
    for form in (CANARY, base64.b64encode(CANARY.encode()).decode()):
        assert [text for text in everything if form in text] == []
