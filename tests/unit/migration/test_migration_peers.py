from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite import App, Kind, Unstructured
from kopylite.errors import LifecycleError
from kopylite.migration.bridge import no_kopf_beside
from kopylite.migration.peers import KINDS, KopfStillRuns, live_peers, peers_of, refusal
from kopylite.testing import EmbeddedCluster

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def peering(name: str = "default", **status: Any) -> dict[str, Any]:
    return {"kind": "ClusterKopfPeering", "metadata": {"name": name}, "status": status}


def entry(ago: float, lifetime: Any = 60, zone: str = "+00:00") -> dict[str, Any]:
    return {
        "priority": 0,
        "lifetime": lifetime,
        "lastseen": f"{NOW - timedelta(seconds=ago):%Y-%m-%dT%H:%M:%S.%f}{zone}",
    }


@pytest.mark.parametrize(
    ("found", "lives"),
    [
        (entry(10), True),
        (entry(61), False),
        (entry(61, lifetime=120), True),
        (entry(10, zone=""), True),
        (entry(61, zone=""), False),
        (entry(0, lifetime="60"), True),
        (None, False),  # so kopf says that it has gone
        ({}, True),
        ("?", True),
        ({"lastseen": "yesterday"}, True),
        (entry(0, lifetime="for ever"), True),
    ],
)
def test_a_peer_lives_until_its_entry_runs_out_and_what_cannot_be_read_may_live(found: Any, lives: bool) -> None:
    assert bool(live_peers(peering(someone=found), NOW)) is lives


def test_peers_of_other_peerings_may_run_when_ones_own_is_named() -> None:
    assert live_peers(peering("theirs", someone=entry(1)), NOW)
    assert not live_peers(peering("theirs", someone=entry(1)), NOW, ["mine"])


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4), lambda x: st.dictionaries(st.text(max_size=4), x) | st.lists(x)
    )
)
def test_an_odd_peering_is_no_accident(status: Any) -> None:
    refusal(live_peers({"metadata": status, "status": status}, NOW), "x")


def crd(kind: Kind) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced" if kind.namespaced else "Cluster",
                 "versions": [version]},
    }  # fmt: skip


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_an_app_does_not_start_beside_a_kopf_operator_and_says_which() -> None:
    def app(*names: str) -> App:
        made = App("moved")
        made.on_start(no_kopf_beside(*names))

        @made.reconciler(Kind("v1", "ConfigMap"))
        async def reconcile(ctx: Any, request: Any) -> None: ...

        return made

    async with EmbeddedCluster(controllers=False, crds=[crd(KINDS[0])]) as cluster, cluster.client() as client:
        async with cluster.running(app()):
            pass  # nobody is there, and three of the four kinds are not served
        now = datetime.now(UTC)
        entry = {"lastseen": now.isoformat(), "lifetime": 60, "priority": 100}
        found = {"apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": {"name": "default"}}
        await client.create(Unstructured({**found, "status": {"me@host/1": entry, "gone@host/2": None}}))
        with pytest.raises(LifecycleError) as raised:
            async with cluster.running(app()):
                pass
        assert isinstance(raised.value.__cause__, KopfStillRuns)
        assert "me@host/1 in ClusterKopfPeering default" in str(raised.value.__cause__)
        async with cluster.running(app("mine")):
            pass  # that was another operator's

        async def objects(kind: Kind) -> Any:
            return await client.live.list(kind)

        assert not await peers_of(objects, now + timedelta(seconds=61))
