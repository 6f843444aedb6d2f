from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from kopylite.cli.kopfobjects import LEFT
from kopylite.client import Client, connect
from kopylite.errors import Conflict
from kopylite.migration.cleaning import Cleaning
from kopylite.migration.traces import FINALIZER, LAST_HANDLED, PREFIX
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster

Capture = pytest.CaptureFixture[str]
THING = Kind("example.com/v1", "Thing")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(group: str, kind: str, *, status: bool = True, scope: str = "Namespaced") -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"status": OPEN, "spec": OPEN}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    version |= {"subresources": {"status": {}}} if status else {}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": scope, "versions": [version]},
    }


@pytest.fixture(scope="module")
def things(embedded_cluster: EmbeddedCluster) -> EmbeddedCluster:
    async def install() -> None:
        crds = [crd("example.com", "Thing"), crd("example.com", "Plain", status=False),
                crd("kopf.dev", "ClusterKopfPeering", status=False, scope="Cluster")]  # fmt: skip
        await embedded_cluster.install_crds(*crds)

    anyio.run(install)
    return embedded_cluster


def do(cluster: EmbeddedCluster, work: Any) -> Any:
    async def carry_out() -> Any:
        async with connect(cluster.kubeconfig) as client:
            return await work(client)

    return anyio.run(carry_out)


async def make(client: Client, name: str, kind: str = "Thing", *, deleting: bool = False) -> None:
    annotations = {f"{PREFIX}/{LAST_HANDLED}": "{}", f"{PREFIX}/create": "{}", "mine.example.com/a": "b"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations,
                "finalizers": ["other.example.com/x", FINALIZER]}  # fmt: skip
    made = await client.create(Unstructured(apiVersion="example.com/v1", kind=kind, metadata=metadata, spec={"a": 1}))
    await client.patch_status(made, {"phase": "Up", "kopf": {"progress": {"create": {}}}})
    if deleting:
        await client.delete(made)


def clean(cluster: EmbeddedCluster, *options: str) -> int:
    return main(["migrate", "kopf-objects", "--kubeconfig", str(cluster.kubeconfig), *options])


def test_marks_of_kopf_are_shown_and_with_yes_taken_off_and_nothing_else(
    things: EmbeddedCluster, capsys: Capture
) -> None:
    async def prepare(client: Client) -> None:
        await make(client, "a")
        await make(client, "b", "Plain")
        await make(client, "going", deleting=True)

    async def look(client: Client) -> list[Any]:
        return [await client.live.get(Kind("example.com/v1", kind), name, namespace="default")
                for name, kind in (("a", "Thing"), ("b", "Plain"), ("going", "Thing"))]  # fmt: skip

    do(things, prepare)
    before = do(things, look)
    assert clean(things, "things.example.com", "plains") == LEFT
    shown = capsys.readouterr().out
    assert "Nothing was changed: add --yes" in shown
    assert "Thing default/going (being deleted since 20" in shown
    assert f"Thing default/a: would be cleaned\n    {FINALIZER}" in shown
    assert do(things, look) == before
    assert clean(things, "things.example.com", "plains", "--yes") == LEFT, "one is left"
    assert "--release-deleting" in capsys.readouterr().out
    a, b, going = do(things, look)
    for each in (a, b, going):
        assert each.annotations == {"mine.example.com/a": "b"}
        assert each.status == {"phase": "Up"}
        assert each.spec == {"a": 1}
    assert a.finalizers == b.finalizers == ["other.example.com/x"]
    assert going.finalizers == ["other.example.com/x", FINALIZER], "nobody has cleaned up what it stands for"
    assert clean(things, "things.example.com", "-n", "default", "--yes", "--release-deleting") == Exit.STOPPED
    assert do(things, look)[2].finalizers == ["other.example.com/x"]
    assert clean(things, "things.example.com", "plains", "--yes") == Exit.STOPPED, "done twice is done"
    assert "\nnothing" in capsys.readouterr().out.split("1 cleaned")[-1]


def test_nothing_is_written_beside_a_kopf_operator(things: EmbeddedCluster, capsys: Capture) -> None:
    peering = Kind("kopf.dev/v1", "ClusterKopfPeering")

    async def begin(client: Client) -> None:
        await make(client, "guarded")
        status = {"me@host/1": {"lastseen": datetime.now(UTC).isoformat(), "lifetime": 600}}
        await client.create(Unstructured(apiVersion="kopf.dev/v1", kind="ClusterKopfPeering",
                                         metadata={"name": "default"}, status=status))  # fmt: skip

    do(things, begin)
    try:
        assert clean(things, "things.example.com", "--yes") == LEFT
        assert "me@host/1 in ClusterKopfPeering default" in capsys.readouterr().err
        assert clean(things, "things.example.com") == Exit.STOPPED
        assert "--yes would be refused" in capsys.readouterr().err
        found = do(things, lambda client: client.live.get(THING, "guarded", namespace="default"))
        assert FINALIZER in found.finalizers
        assert clean(things, "things.example.com", "--yes", "--peering", "mine") == Exit.STOPPED
    finally:
        do(things, lambda client: client.delete(peering, "default"))


def test_who_writes_in_between_loses_nothing(things: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    original, writes = Cleaning._send, list[str]()

    async def raced(self: Cleaning, request: Any) -> Any:
        if request.method == "PATCH" and len(writes) < 2:
            writes.append(request.path)
            async with connect(things.kubeconfig) as client:
                stored = await client.live.get(THING, "raced", namespace="default")
                stored["metadata"]["finalizers"] = [*stored.finalizers, f"late.example.com/{len(writes)}"]
                await client.update(stored)
            with pytest.raises(Conflict):
                await original(self, request)
        return await original(self, request)

    do(things, lambda client: make(client, "raced"))
    monkeypatch.setattr(Cleaning, "_send", raced)
    assert clean(things, "things.example.com", "--yes") == Exit.STOPPED
    found = do(things, lambda client: client.live.get(THING, "raced", namespace="default"))
    assert found.finalizers == ["other.example.com/x", "late.example.com/1", "late.example.com/2"]
    assert not [name for name in found.annotations if name.startswith(PREFIX)]


def test_a_resource_that_is_not_there_is_said(things: EmbeddedCluster, capsys: Capture) -> None:
    assert clean(things, "nothings.example.com") == LEFT
    assert "has no resource 'nothings.example.com'" in capsys.readouterr().err
