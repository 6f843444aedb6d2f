"""What a client writes, and reads afterwards, on both servers: finalizers, statuses, namespaces that go."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kopylite import App, Context, Request, finalize
from kopylite.client import Client
from kopylite.errors import (
    ApplyConflict,
    BeingDeleted,
    NamespaceNotFound,
    NameStillTaken,
    NotFound,
    SubresourceNotFound,
)
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap")
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
PLAIN = Kind("own.example.com/v1", "Plain")
OWN, OLD, FOREIGN = "own.example.com/cleanup", "kopf.zalando.org/KopfFinalizerMarker", "own.example.com/foreign"


def config_map(namespace: str, name: str, *finalizers: str, **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace, "finalizers": list(finalizers)}
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data=data)


@pytest.fixture
async def plain(client: Client) -> None:
    """A kind whose CRD declares no status sub-resource."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "plains", "singular": "plain", "kind": "Plain"}
    spec = {"group": "own.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    if await client.find(CRD, "plains.own.example.com") is None:
        metadata = {"name": "plains.own.example.com"}
        await client.create(Unstructured(apiVersion=CRD.api_version, kind=CRD.kind, metadata=metadata, spec=spec))

    async def served() -> bool:
        found = await client.get(CRD, "plains.own.example.com")
        return any(c["type"] == "Established" and c["status"] == "True" for c in found.status.get("conditions") or ())

    await eventually(served, "the CRD is established")


async def test_a_status_without_a_sub_resource_is_written_to_the_object(
    client: Client, namespace: str, plain: None
) -> None:
    metadata = {"name": "a", "namespace": namespace}
    made = await client.create(Unstructured(apiVersion=PLAIN.api_version, kind="Plain", metadata=metadata))
    with pytest.raises(SubresourceNotFound, match="has no sub-resource 'status'"):
        await client.live.patch(PLAIN, made, {"status": {"phase": "Up"}}, subresource="status")
    first = await client.patch_status(made, {"phase": "Up"})
    assert first.status == {"phase": "Up"}
    second = await client.patch_status(first, {"phase": "Down"})
    assert second.status == {"phase": "Down"}
    assert second.generation == 3, "a status without a sub-resource is a field like any other"
    await client.delete(second)
    with pytest.raises(NotFound):
        await client.patch_status(second, {"phase": "Gone"})


async def test_refusals_are_told_apart(client: Client, namespace: str) -> None:
    with pytest.raises(NamespaceNotFound):
        await client.create(config_map("there-is-none", "a"))
    held = await client.create(config_map(namespace, "held", FOREIGN))
    await client.delete(held)
    with pytest.raises(NameStillTaken):
        await client.create(config_map(namespace, "held"))
    with pytest.raises(BeingDeleted):
        await client.add_finalizer(await client.get(CONFIG_MAP, held), OWN)
    await client.remove_finalizer(held, FOREIGN)
    assert await client.find(CONFIG_MAP, held) is None
    mine = config_map(namespace, "mine", color="red")
    del mine["metadata"]["finalizers"]
    await client.apply(mine, field_manager="first")
    mine["data"] = {"color": "blue"}
    with pytest.raises(ApplyConflict, match="force=True") as refused:
        await client.apply(mine, field_manager="second")
    assert [cause.field for cause in refused.value.causes] == [".data.color"]


async def test_a_cleanup_runs_once_and_the_next_read_shows_nothing(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    cleaned: list[str] = []
    seen_again: list[str] = []
    app = App("cleaner")

    async def cleanup(ctx: Context, obj: Any) -> None:
        cleaned.append(ctx.request.name)

    @app.reconciler(CONFIG_MAP, workers=8, labels="own=yes")
    async def reconcile(ctx: Context, request: Request) -> None:
        if await finalize(ctx, CONFIG_MAP, OWN, cleanup, replaces=[OLD]) and request.name in cleaned:
            found = await ctx.client.find(CONFIG_MAP, request)
            if found is not None and OWN in found.finalizers:
                seen_again.append(request.name)

    names = [f"c{number}" for number in range(30)]
    async with anyio.create_task_group() as group:
        for name in names:
            made = config_map(namespace, name, OLD)
            made["metadata"]["labels"] = {"own": "yes"}
            group.start_soon(client.create, made)
    for name in names[:10]:  # their deletion begins while no operator runs
        await client.delete(CONFIG_MAP, name, namespace=namespace)

    async def others_are_taken_over() -> bool:
        found = await client.list(CONFIG_MAP, namespace=namespace, labels="own=yes")
        return len(found) == 20 and all(obj.finalizers == [OWN] for obj in found)

    async with cluster.running(app, namespaces=[namespace]):
        await eventually(others_are_taken_over, "the living ones have the new finalizer alone")
        for name in names[10:]:
            await client.delete(CONFIG_MAP, name, namespace=namespace)

        async def gone() -> bool:
            return not await client.list(CONFIG_MAP, namespace=namespace, labels="own=yes")

        await eventually(gone, "all are freed")
    assert sorted(cleaned) == sorted(names), "each once"
    assert seen_again == []


async def test_owners_in_a_namespace_that_goes_give_no_error(
    cluster: Cluster, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    namespace_kind = Kind("v1", "Namespace")
    made = await client.create(
        Unstructured(apiVersion="v1", kind="Namespace", metadata={"generateName": "going-", "finalizers": []})
    )
    namespace, count = made.name, 60
    app = App("going")
    refused: set[str] = set()

    @app.reconciler(CONFIG_MAP, workers=8, labels="own=yes")
    async def reconcile(ctx: Context, request: Request) -> None:
        owner = await ctx.client.find(CONFIG_MAP, request)
        if owner is None:
            return
        try:
            child = config_map(namespace, f"{request.name}-child-{ctx.reconcile_id[:8]}")
            await ctx.client.create(child, owner=owner)
        except Exception:
            refused.add(request.name)
            raise

    async with anyio.create_task_group() as group:
        for number in range(count):
            owner = config_map(namespace, f"o{number}", FOREIGN)
            owner["metadata"]["labels"] = {"own": "yes"}
            group.start_soon(client.create, owner)
    with caplog.at_level(logging.INFO):
        async with cluster.running(app, namespaces=[namespace]):
            await client.delete(namespace_kind, namespace)
            await eventually(lambda: len(refused) == count, "each owner's child was refused", limit=40)
            for number in range(count):
                key = f"o{number}"
                owner = await client.get(CONFIG_MAP, key, namespace=namespace)
                await client.remove_finalizer(owner, FOREIGN)

            async def gone() -> bool:
                return await client.find(namespace_kind, namespace) is None

            await eventually(gone, "the namespace is gone", limit=40)
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [text for text in errors if "kopylite.controller" in text or "reconcile failed" in text] == []
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR and r.name == "kopylite.controller"]
