"""What a cluster holds before the first client comes: roles, the system namespaces, the `kubernetes` Service."""

from __future__ import annotations

from typing import Any

import msgspec

from kopylite.apiserver.bootstrap.roles import bootstrap_roles
from kopylite.apiserver.core import Core
from kopylite.apiserver.request.request import AUTHENTICATED, MASTERS, Request, User
from kopylite.apiserver.writes.lifecycle import SYSTEM_NAMESPACES

_SERVER = User("system:apiserver", (MASTERS, AUTHENTICATED))
_AGENT = {"user-agent": "kube-apiserver/v1"}
_RBAC = "rbac.authorization.k8s.io"
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
# The first address of kube-apiserver's default range of service addresses.
_KUBERNETES_IP = "10.0.0.1"

_CRITICAL = "Used for system critical pods that must "
_PRIORITY_CLASSES = (
    ("system-node-critical", 2000001000, _CRITICAL + "not be moved from their current node."),
    (
        "system-cluster-critical",
        2000000000,
        _CRITICAL + "run in the cluster, but can be moved to another node if necessary.",
    ),
)


async def bootstrap(core: Core) -> None:
    """Create what is missing; what is there, from a data file, is left as it is."""
    for plural, role in bootstrap_roles():
        if core.world.store.get(f"{plural}.{_RBAC}", role["metadata"]["name"]) is None:
            await _create(core, f"/apis/{_RBAC}/v1/{plural}", role)
    # The order in which a real server comes to create them.
    for name in sorted(SYSTEM_NAMESPACES, key=("kube-system", "kube-public", "default", "kube-node-lease").index):
        if core.world.store.get("namespaces", name) is None:
            await _create(core, "/api/v1/namespaces", {"metadata": {"name": name, "labels": {_NAMESPACE_LABEL: name}}})
    for name, value, text in _PRIORITY_CLASSES:
        if core.world.store.get("priorityclasses.scheduling.k8s.io", name) is None:
            body = {"metadata": {"name": name}, "value": value, "description": text}
            await _create(core, "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    served = core.world.registry.find("", "v1", "services")
    if served is not None and core.world.store.get("services", "default/kubernetes") is None:
        await _create(core, "/api/v1/namespaces/default/services", _kubernetes_service())


def _kubernetes_service() -> dict[str, Any]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    port = {"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}
    return {
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {"ports": [port], "type": "ClusterIP", "clusterIP": _KUBERNETES_IP, "sessionAffinity": "None"},
    }


async def _create(core: Core, path: str, obj: dict[str, Any]) -> None:
    request = Request.of("POST", path, headers=_AGENT, body=msgspec.json.encode(obj), user=_SERVER)
    response = await core.handle(request)
    if response.status != 201:
        raise RuntimeError(f"bootstrap failed: POST {path}: {response.body.decode()}")
