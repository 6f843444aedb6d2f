"""A whole operator of kopf, moved over and run. `shop_operator.txt` is what kopf itself would run, too."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from kopylite.client import Client
from kopylite.migration import traces
from kopylite.migration.converter import move
from kopylite.migration.sources import parse_source
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])

ORDER = Kind("shop.example.com/v1", "Order")
EVENT = Kind("events.k8s.io/v1", "Event")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "orders.shop.example.com"},
    "spec": {
        "group": "shop.example.com",
        "names": {"kind": "Order", "plural": "orders", "singular": "order", "listKind": "OrderList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}}}],
    },
}  # fmt: skip


def moved_module() -> types.ModuleType:
    path = Path(__file__).with_name("shop_operator.txt")
    [moved] = move([parse_source(path.read_bytes(), "shop.py")], [CRD])
    module = types.ModuleType("moved_shop")
    exec(compile(moved.text, "moved_shop.py", "exec"), vars(module))
    return module


async def order(client: Client, **metadata: Any) -> Unstructured:
    spec = {"item": "tea", "parts": ["a", "b"]}
    metadata = {"name": "one", "namespace": "default", "labels": {"want": "yes"}, **metadata}
    return await client.create(
        Unstructured(apiVersion="shop.example.com/v1", kind="Order", metadata=metadata, spec=spec)
    )


def called(calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Who was called, in the order of the names. The one that needs `old` is tried at each event."""
    return sorted(name for name, _ in calls if name != "compares")


FIRST = [
    *("changed", "child", "child", "created", "daemon begins", "field", "filtered", "gives up", "gives up", "never"),
    *("thread begins", "waits", "waits"),
]


async def test_handlers_are_called_as_often_as_by_kopf_and_with_its_arguments() -> None:
    module = moved_module()
    calls: list[tuple[str, dict[str, Any]]] = module.CALLS

    def named() -> list[str]:
        return called(calls)

    async with EmbeddedCluster(controllers=False, crds=[CRD]) as cluster, cluster.client() as client:
        metadata = {"name": "m", "namespace": "default", "labels": {"indexed": "yes"}}
        await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))
        async with cluster.running(module.app):
            await order(client)

            async def done() -> bool:
                status = (await client.get(ORDER, "one", namespace="default")).status
                return status == {"seen": True, "created": {"ok": 1}, "maps": ["m"]} and named() == FIRST

            await eventually(done, "all were called, and the status is written", limit=20)
            assert ("created", {"name": "one", "item": "tea", "greeting": "hello"}) in calls
            assert ("changed", {"item": "tea", "owner": "one", "name": "one"}) in calls
            assert [more["retry"] for name, more in calls if name == "waits"] == [0, 1]
            found = await client.get(ORDER, "one", namespace="default")
            assert found.finalizers == ["shop.shop.example.com/cleanup"]

            async def published() -> bool:
                return {"Changed", "TerminalError"} <= {each["reason"] for each in await client.list(EVENT)}

            await eventually(published, "its Events are there")
            calls.clear()
            await client.patch(found, {"spec": {"item": "milk"}})
            told = ["changed", "field", "updated"]
            await eventually(lambda: named() == told and "compares" in dict(calls), "they are told", limit=20)
            await client.delete(ORDER, "one", namespace="default")

            async def gone() -> bool:
                return await client.live.find(ORDER, "one", namespace="default") is None and "thread ends" in named()

            await eventually(gone, "it is cleaned up", limit=20)
            assert ("deleted", {"name": "one", "seen": True}) in calls
            assert "compared" not in dict(calls), "nobody acts on an `old` that is not known"
    assert calls[-1][0] == "bye"


async def test_what_kopf_has_handled_is_not_created_again_and_its_change_meanwhile_is_seen() -> None:
    module = moved_module()
    handled = '{"spec": {"item": "tea", "parts": ["a", "b"]}, "metadata": {"labels": {"want": "yes"}}}\n'
    async with EmbeddedCluster(controllers=False, crds=[CRD]) as cluster, cluster.client() as client:
        marks = {
            "annotations": {f"{traces.PREFIX}/{traces.LAST_HANDLED}": handled},
            "finalizers": ["shop.example.com/kopf"],
        }
        await order(client, name="same", **marks)
        await client.patch(await order(client, name="other", **marks), {"spec": {"item": "milk"}})
        async with cluster.running(module.app):

            async def taken_over() -> bool:
                listed = await client.live.list(ORDER)
                return all(each.finalizers == ["shop.shop.example.com/cleanup"] for each in listed) and seen() == wanted

            def seen() -> list[str]:
                return called(module.CALLS)

            daemons = ["daemon begins", "daemon begins", "thread begins", "thread begins"]
            wanted = sorted(["changed", "field", "updated", *daemons])
            await eventually(taken_over, "only the changed one runs", limit=20)
