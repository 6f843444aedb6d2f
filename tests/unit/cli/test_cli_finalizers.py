from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from kopylite.cli.finalizers import REFUSED
from kopylite.client import connect
from kopylite.errors import AlreadyExists
from kopylite.objects import Kind
from kopylite.testing import EmbeddedCluster

Capture = pytest.CaptureFixture[str]
CONFIG_MAP = Kind("v1", "ConfigMap")


class Stuck:
    """A ConfigMap that waits for finalizers, and what a test may do to the cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = str(kubeconfig)

    def make(self, version: str, kind: str, name: str, *, delete: bool = False, **content: Any) -> None:
        async def carry_out() -> None:
            async with connect(self.kubeconfig) as client:
                metadata = {"name": name, "namespace": "default", **content.pop("metadata", {})}
                try:
                    await client.create({"apiVersion": version, "kind": kind, "metadata": metadata, **content})
                except AlreadyExists:
                    return
                if delete:
                    await client.delete(Kind(version, kind), name, namespace="default")

        anyio.run(carry_out)

    def finalizers(self, name: str) -> list[str] | None:
        async def look() -> list[str] | None:
            async with connect(self.kubeconfig) as client:
                found = await client.live.find(CONFIG_MAP, name, namespace="default")
                return None if found is None else list(found.finalizers)

        return anyio.run(look)


@pytest.fixture
def stuck(embedded_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Stuck:
    monkeypatch.setenv("KUBECONFIG", str(embedded_cluster.kubeconfig))
    return Stuck(embedded_cluster.kubeconfig)


def clear(name: str, finalizer: str, *options: str) -> int:
    return main(["finalizers", "clear", "configmaps", name, "-n", "default", "--finalizer", finalizer, *options])


def test_it_shows_first_and_does_it_when_told(stuck: Stuck, capsys: Capture) -> None:
    both = ["one.example.com/a", "two.example.com/b"]
    stuck.make("v1", "ConfigMap", "a", delete=True, metadata={"finalizers": both})
    assert clear("a", both[0]) == 0
    out = capsys.readouterr().out
    assert "nothing was changed" in out
    assert f"leaves {both[1]}" in out
    assert stuck.finalizers("a") == both
    assert clear("a", both[0], "--yes") == 0
    assert stuck.finalizers("a") == both[1:]
    assert main(["finalizers", "clear", "cm", "a", "-n", "default", "--all-finalizers", "--yes"]) == 0
    assert stuck.finalizers("a") is None
    assert "the object is gone" in capsys.readouterr().out
    assert clear("a", both[0], "--yes") == 0, "what is gone waits for nothing"


def test_it_refuses_what_is_not_being_deleted_and_what_has_an_owner_that_runs(stuck: Stuck, capsys: Capture) -> None:
    stuck.make("v1", "ConfigMap", "b", metadata={"finalizers": ["three.example.com/a"]})
    assert clear("b", "three.example.com/a", "--yes") == REFUSED
    assert "REFUSED: it is not being deleted" in capsys.readouterr().out
    stuck.make("v1", "ConfigMap", "c", delete=True, metadata={"finalizers": ["four.example.com/a"]})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {"holderIdentity": "pod_1", "leaseDurationSeconds": 15, "renewTime": now}
    stuck.make("coordination.k8s.io/v1", "Lease", "four", spec=lease)
    assert clear("c", "four.example.com/a", "--yes") == REFUSED
    assert "of four, which runs" in capsys.readouterr().out
    assert stuck.finalizers("c") == ["four.example.com/a"]
    assert clear("c", "four.example.com/a", "--yes", "--force") == 0
    assert stuck.finalizers("c") is None


def test_they_are_listed_with_who_is_to_remove_them(stuck: Stuck, capsys: Capture) -> None:
    stuck.make("v1", "ConfigMap", "d", delete=True, metadata={"finalizers": ["five.example.com/a"]})
    assert main(["finalizers", "list", "--kind", "configmaps", "-n", "default", "--deleting"]) == 0
    out = capsys.readouterr().out
    assert "ConfigMap default/d: being deleted for" in out
    assert "five.example.com/a: of whoever added it" in out
    assert main(["finalizers", "list", "-n", "default", "--deleting", "--output", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["objects"]
    assert ["five.example.com/a"] in [[each["name"] for each in row["finalizers"]] for row in listed]
    assert all(row["deletingFor"] for row in listed)


def test_a_resource_that_is_not_there_and_a_server_that_is_not(stuck: Stuck, capsys: Capture) -> None:
    assert main(["finalizers", "list", "--kind", "nothing"]) == REFUSED
    assert "no resource 'nothing'" in capsys.readouterr().err
    assert main(["finalizers", "list", "--kubeconfig", "/no/such/file"]) == Exit.KUBECONFIG
