"""What a fresh cluster holds, object by object: the embedded server beside a real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kopylite.client import Client
from kopylite.objects import Kind
from kopylite.testing import Cluster, EmbeddedCluster, EnvTest
from tests.machine import require_real_server
from tests.operators import eventually

RBAC = "rbac.authorization.k8s.io/v1"
SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice")
KINDS = [
    *(Kind("v1", kind) for kind in ("Namespace", "Service", "Endpoints", "ConfigMap", "ServiceAccount", "Secret")),
    *(Kind(RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    *(Kind("flowcontrol.apiserver.k8s.io/v1", kind) for kind in ("FlowSchema", "PriorityLevelConfiguration")),
    *(Kind("networking.k8s.io/v1", kind) for kind in ("ServiceCIDR", "IPAddress")),
    SLICE,
    Kind("scheduling.k8s.io/v1", "PriorityClass"),
    Kind("apiregistration.k8s.io/v1", "APIService"),
]
# What each server has of its own: times and names that it made up, its addresses, certificates and ports.
OWN = {"uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime", "lastHeartbeatTime", "since"}
ADDRESSES = {"addresses", "port", "targetPort", "cidrs", "clusterIP", "clusterIPs", "client-ca-file"}
# Keys of the proxy in front of extension servers; the embedded one has none in front.
PROXY = "requestheader-"


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {name: part for name, part in value.items() if not name.startswith((PROXY, f"f:{PROXY}"))}
        return {name: "…" if name in OWN | ADDRESSES else comparable(part) for name, part in parts.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


async def contents(client: Client, kind: Kind) -> dict[str, Any]:
    found = {}
    for obj in await client.live.list(kind):
        if obj.name not in ("kube-root-ca.crt",) and obj.namespace in ("", "default", "kube-system", "kube-public"):
            found[f"{obj.namespace}/{obj.name}"] = comparable(json.loads(json.dumps(obj)))
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both() -> AsyncIterator[tuple[Cluster, Cluster]]:
    require_real_server()
    async with EmbeddedCluster(controllers=False) as embedded, EnvTest() as real:
        yield embedded, real


@pytest.mark.realserver
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
async def test_a_fresh_cluster_holds_the_same_objects(kind: Kind, both: tuple[Cluster, Cluster]) -> None:
    embedded, real = both
    async with embedded.client() as ours, real.client() as theirs:
        # A real server publishes itself a moment after it is ready.
        await eventually(lambda: theirs.live.find(SLICE, "kubernetes", namespace="default"), "the server is published")
        expected, found = await contents(theirs, kind), await contents(ours, kind)
    assert sorted(found) == sorted(expected)
    for name, obj in expected.items():
        assert found[name] == obj, name
