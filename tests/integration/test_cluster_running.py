from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
from pathlib import Path

import pytest

from kopylite import App, Context, CustomResource, Kind, Request, Unstructured, watch
from kopylite.client import Client
from kopylite.errors import KubeconfigError
from kopylite.objects.yamlread import read_documents
from kopylite.testing import Cluster, EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap")


class Absent(CustomResource[dict[str, str], None], group="absent.example.com", version="v1"):
    pass


def labeller() -> App:
    """An app that puts a label on ConfigMaps."""
    app = App("labeller")

    @app.reconciler(CONFIG_MAP)
    async def reconcile(ctx: Context, request: Request) -> None:
        found = await ctx.client.find(CONFIG_MAP, request)
        if found is not None:
            await ctx.client.patch(found, patch={"metadata": {"labels": {"seen": "yes"}}})

    return app


async def test_an_app_runs_as_long_as_its_block(cluster: Cluster, client: Client, namespace: str) -> None:
    wire = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
    async with cluster.running(labeller(), namespaces=[namespace]) as manager:
        await client.create(wire)

        async def labelled() -> bool:
            return (await client.get(CONFIG_MAP, "a", namespace=namespace)).labels == {"seen": "yes"}

        await eventually(labelled, "the label was there")
    assert [controller.statistics().active for controller in manager.controllers] == [0]


async def test_a_watch_may_be_narrowed_by_fields(cluster: Cluster, client: Client, namespace: str) -> None:
    app, seen = App("narrow"), list[str]()
    secret = Kind("v1", "Secret")

    async def noted(obj: Unstructured, ctx: Context) -> list[Request]:
        seen.append(obj.name)
        return []

    @app.reconciler(CONFIG_MAP, watches=[watch(secret, map=noted, fields="metadata.name=b")])
    async def reconcile(ctx: Context, request: Request) -> None: ...

    async with cluster.running(app, namespaces=[namespace]):
        for name in ("a", "b"):
            metadata = {"name": name, "namespace": namespace}
            await client.create(Unstructured(apiVersion="v1", kind="Secret", metadata=metadata))
        await eventually(lambda: seen, "the Secret was seen")
    assert seen == ["b"]


async def test_a_failing_test_fails_with_its_own_error(embedded_cluster: EmbeddedCluster) -> None:
    with pytest.raises(AssertionError, match="mine"):
        async with embedded_cluster.running(labeller()):
            raise AssertionError("mine")


async def test_an_app_without_its_crd_does_not_get_started(embedded_cluster: EmbeddedCluster) -> None:
    app = App("absent")

    @app.reconciler(Absent)
    async def reconcile(ctx: Context, request: Request) -> None: ...

    with pytest.raises(TimeoutError) as raised:
        async with embedded_cluster.running(app, timeout=2):
            raise AssertionError("it began")
    text = str(raised.value)
    assert "app 'absent' was not in sync after 2 s" in text
    assert "does not serve Absent.absent.example.com/v1: is its CRD installed?" in text


async def test_an_app_without_a_right_is_told_the_rule(embedded_cluster: EmbeddedCluster) -> None:
    user = embedded_cluster.user_kubeconfig("bob")
    with pytest.raises(TimeoutError) as raised:
        async with embedded_cluster.running(labeller(), timeout=2, kubeconfig=user):
            raise AssertionError("it began")
    text = str(raised.value)
    assert 'configmaps is forbidden: User "bob" cannot' in text
    assert 'resources: ["configmaps"]' in text


async def test_an_app_that_cannot_run_fails_with_its_own_error(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    [config] = read_documents(embedded_cluster.kubeconfig.read_bytes())
    config["users"][0]["user"] = {"token": "wrong"}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    with pytest.raises(KubeconfigError):
        async with embedded_cluster.running(labeller(), timeout=5, kubeconfig=path):
            raise AssertionError("it began")


async def test_what_an_earlier_owner_of_the_name_controls_is_waited_for_quietly(
    cluster: Cluster, client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, secret = App("keeper"), Kind("v1", "Secret")

    @app.reconciler(CONFIG_MAP, owns=[secret])
    async def reconcile(ctx: Context, request: Request) -> None:
        owner = await ctx.client.find(CONFIG_MAP, request)
        if owner is not None and owner.name == "owner":
            await ctx.client.create_or_update(secret, request, lambda obj: None, owner=owner)

    def owned_by(uid: str) -> Unstructured:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": True}
        metadata = {"name": "owner", "namespace": namespace, "ownerReferences": [reference]}
        return Unstructured(apiVersion="v1", kind="Secret", metadata=metadata)

    # The child of an owner that is gone already: until the garbage collector has looked, it is in the way.
    metadata = {"name": "owner", "namespace": namespace}
    with caplog.at_level(logging.WARNING):
        async with cluster.running(app, namespaces=[namespace]):
            await client.create(owned_by("00000000-0000-0000-0000-000000000001"))
            owner = await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))

            async def mine() -> bool:
                found = await client.find(secret, "owner", namespace=namespace)
                return found is not None and [ref.uid for ref in found.owner_references] == [owner.uid]

            await eventually(mine, "the new owner has its Secret", limit=60)
    assert [record.message for record in caplog.records if record.name == "kopylite.controller"] == []


def test_an_operator_that_ended_leaves_no_connection_open(
    embedded_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_open: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: left_open.append(unraisable.exc_value))

    async def once() -> None:
        async with embedded_cluster.running(labeller()):
            pass

    for _ in range(5):
        asyncio.run(once())  # the loop ends at once, as a process does
        gc.collect()
    assert left_open == []
