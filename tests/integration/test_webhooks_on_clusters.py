"""The same operator with validators, mutators and a converter on the embedded and on a real API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from kopylite import App, Context, Denied, Invalid, Kind, Review, Unstructured
from kopylite.client import Client
from kopylite.errors import ApiError, Forbidden, InternalError
from kopylite.testing import Cluster
from samples.shop.operator import Line, OldOrder, Order
from samples.shop.operator import app as shop

OLD = Kind("shop.example.com/v1beta1", "Order", "orders", True)
NEW = Kind("shop.example.com/v1", "Order", "orders", True)

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]


def order(namespace: str, name: str = "a", **spec: Any) -> Unstructured:
    spec = {"customer": "ann", "items": [{"name": "egg", "count": 2}], **spec}
    metadata = {"name": name, "namespace": namespace}
    return Unstructured(apiVersion=NEW.api_version, kind="Order", metadata=metadata, spec=spec)


async def until(refuses: Callable[[], Awaitable[object]], error: type[ApiError]) -> ApiError:
    """A real API server learns of new webhooks a moment after they are stored."""
    with anyio.fail_after(30):
        while True:
            try:
                await refuses()
            except error as found:
                return found
            await anyio.sleep(0.05)


async def test_orders_are_checked_completed_and_converted(client: Client, cluster: Cluster, namespace: str) -> None:
    await cluster.install_crds(_crd())
    async with cluster.running(shop, timeout=30):
        bad = order(namespace, items=[{"name": "egg", "count": 0}, {"name": "ham", "count": 0}])
        error = await until(lambda: client.create(bad, dry_run=True), Invalid)
        assert [cause.field for cause in error.causes] == ["spec.items[0].count", "spec.items[1].count"]
        assert "validate.order.shop.example.com" in error.message

        created = await client.create(order(namespace, "b"))
        assert created.spec["currency"] == "EUR"
        with pytest.raises(Invalid, match="field is immutable"):
            await client.live.patch(NEW, "b", {"spec": {"customer": "bob"}}, namespace=namespace)

        old = await client.live.get(OldOrder, "b", namespace=namespace)
        assert (old.spec.item, old.spec.count, old.spec.currency) == ("egg", 2, "EUR")
        metadata = {"name": "c", "namespace": namespace, "labels": {"x": "y"}}
        spec = {"customer": "ann", "item": "ham", "count": 3}
        await client.create(Unstructured(apiVersion=OLD.api_version, kind="Order", metadata=metadata, spec=spec))
        new = await client.live.get(Order, "c", namespace=namespace)
        assert (new.spec.items, new.spec.currency) == ([Line(name="ham", count=3)], "EUR")
        assert new.metadata.labels == {"x": "y"}
        assert {each.name for each in await client.live.list(OLD, namespace=namespace)} == {"b", "c"}


async def test_failures_are_never_an_allow_and_users_are_asked_about(
    client: Client, cluster: Cluster, namespace: str
) -> None:
    app = App("judge")

    @app.validator(CONFIG_MAP, labels={"judge": "yes"}, failure_policy="Ignore")
    async def check(ctx: Context, review: Review[Unstructured]) -> None:
        match review.object["data"]["do"]:
            case "crash":
                raise ValueError("hunter2")
            case "ask":
                assert await review.user_can("get", CONFIG_MAP)
                review.warn("asked")
            case "deny":
                raise Denied("not you, " + review.user.username)

    def config_map(do: str) -> Unstructured:
        metadata = {"name": do, "namespace": namespace, "labels": {"judge": "yes"}}
        return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"do": do})

    async with cluster.running(app, timeout=30):
        error = await until(lambda: client.create(config_map("deny"), dry_run=True), Forbidden)
        assert "not you, " in error.message
        with pytest.raises(InternalError) as caught:
            await client.create(config_map("crash"))
        assert "ValueError" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        await client.create(config_map("ask"))


CONFIG_MAP = Kind("v1", "ConfigMap")


def _crd() -> dict[str, Any]:
    """As manifests have it: a Service converts; the operator that runs here is reached by a URL instead."""
    from kopylite.deploy.hooks import converted
    from kopylite.devcluster.appcrds import crds_of_app

    [crd] = converted(crds_of_app(shop), [shop], "elsewhere")
    return crd
