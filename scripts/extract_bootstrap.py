"""Writes what a real API server holds before its first client comes to kopylite/apiserver/bootstrap/objects.jsonl.

    python scripts/extract_bootstrap.py KUBECONFIG

The server is one that was just started, without controllers. One object a line, in the order in which the server made
them; what differs from server to server (uids, times, versions, who wrote which field) is left out, and so is what
belongs to that server alone: its address, its identity Lease.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kopylite.client.cached import connect
from kopylite.objects import Kind

TARGET = Path(__file__).parent.parent / "kopylite/apiserver/bootstrap/objects.jsonl"

KINDS = [
    Kind("v1", "Namespace"),
    Kind("v1", "Service"),
    Kind("scheduling.k8s.io/v1", "PriorityClass"),
    Kind("networking.k8s.io/v1", "ServiceCIDR"),
    Kind("networking.k8s.io/v1", "IPAddress"),
    *(Kind("rbac.authorization.k8s.io/v1", k) for k in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    *(Kind("flowcontrol.apiserver.k8s.io/v1", k) for k in ("PriorityLevelConfiguration", "FlowSchema")),
]
OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
# What the server fills in by itself, so that nobody owns it.
FILLED_IN = {"Namespace": ("finalizers",), "Service": ("clusterIPs", "ipFamilies")}


def line_of(obj: dict[str, Any]) -> str:
    metadata = {name: part for name, part in obj["metadata"].items() if name not in OWN}
    for name in FILLED_IN.get(obj["kind"], ()):
        obj["spec"].pop(name)
    for condition in obj.get("status", {}).get("conditions") or []:
        del condition["lastTransitionTime"]
        if not condition["reason"]:
            del condition["reason"]
    ordered = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    return json.dumps(ordered | {name: part for name, part in obj.items() if name not in ordered})


async def main(kubeconfig: Path) -> None:
    found: list[dict[str, Any]] = []
    async with connect(kubeconfig) as client:
        for kind in KINDS:
            found += [{**obj} for obj in await client.live.list(kind)]
    found.sort(key=lambda obj: int(obj["metadata"]["resourceVersion"]))
    TARGET.write_text("".join(line_of(obj) + "\n" for obj in found))
    sys.stdout.write(f"{len(found)} objects\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
