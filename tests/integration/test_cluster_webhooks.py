"""The webhooks of an app that runs in a test: configured while its block lasts, and no longer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import anyio
import pytest

from kopylite import App, Context, Kind, Review, Unstructured
from kopylite.client import Client
from kopylite.devcluster.appcrds import crds_of_app
from kopylite.errors import ApiError
from kopylite.testing import EmbeddedCluster
from kopylite.webhooks.registration import CONFIGURATIONS, CRD
from samples.shop.operator import app as shop
from tests.webhookserver import webhook_server

NAME = "orders.shop.example.com"


async def configured(client: Client) -> list[str]:
    names = [obj.name for kind in CONFIGURATIONS.values() for obj in await client.live.list(kind)]
    return [*names, (await client.live.get(CRD, NAME))["spec"]["conversion"]["strategy"]]


async def test_nothing_stays_configured_however_the_block_ends(
    embedded_cluster: EmbeddedCluster, client_of_embedded: Client, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, client = embedded_cluster, client_of_embedded
    await cluster.install_crds(*crds_of_app(shop))
    async with cluster.running(shop):
        assert await configured(client) == ["shop", "shop", "Webhook"]
    assert await configured(client) == ["None"]
    with pytest.raises(ZeroDivisionError):
        async with cluster.running(shop):
            raise ZeroDivisionError
    assert await configured(client) == ["None"]
    with anyio.CancelScope() as scope:
        async with cluster.running(shop):
            scope.cancel()
            await anyio.sleep(1)
    assert await configured(client) == ["None"]
    # The conversion is known before the first watch begins: none is ended by it.
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []


@pytest.fixture
async def client_of_embedded(embedded_cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with embedded_cluster.client() as client:
        yield client


async def test_a_service_is_reached_at_a_port_of_this_machine() -> None:
    async with (
        webhook_server(names=("hook.prod.svc",)) as hooks,
        EmbeddedCluster(webhook_services={"prod/hook": hooks.port}) as cluster,
        cluster.client() as client,
    ):
        service = {"name": "hook", "namespace": "prod", "path": "/deny-message"}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        webhook = {
            "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule],
            "clientConfig": {"service": service, "caBundle": hooks.bundle},
        }  # fmt: skip
        kind = CONFIGURATIONS["validate"]
        wire = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, "webhooks": [webhook]}
        await client.create(Unstructured(wire))
        with pytest.raises(ApiError, match="not today"):
            await client.create(config_map("default"))


def config_map(namespace: str) -> Unstructured:
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "a", "namespace": namespace})


async def test_what_an_app_writes_when_it_starts_passes_its_own_webhook(embedded_cluster: EmbeddedCluster) -> None:
    app = App("early")
    seen: list[str] = []

    @app.on_start
    async def begin(ctx: Context) -> None:
        await ctx.client.create(config_map("default"))

    @app.validator(Kind("v1", "ConfigMap"))
    async def check(ctx: Context, review: Review[Unstructured]) -> None:
        seen.append(review.name)

    async with embedded_cluster.running(app):
        assert seen == ["a"]
