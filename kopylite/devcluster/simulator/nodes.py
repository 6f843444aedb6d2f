"""The nodes of the played cluster."""

from __future__ import annotations

from kopylite import App, Client, Context, Request, Result, Unstructured
from kopylite.devcluster.simulator.workloads import NODE, absence_ends, parse_time, stamp
from kopylite.errors import AlreadyExists

app = App("node-lifecycle-controller")

# How long a node may take until its kubelet says the first word.
_STARTUP_SECONDS = 60.0
_SILENT = {"status": "Unknown", "reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
_CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


async def create_nodes(client: Client, count: int, now: str) -> None:
    """Make node-0, node-1, … be there and ready."""
    for number in range(count):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        try:
            stored = await client.create(Unstructured(node))
        except AlreadyExists:
            stored = await client.live.get(NODE, name)
        conditions = [
            {"type": kind, "status": status, "reason": reason, "message": message,
             "lastHeartbeatTime": now, "lastTransitionTime": now}
            for kind, status, reason, message in _HEALTHY
        ]  # fmt: skip
        system = {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "v1.37.0-simulated"}
        info = dict.fromkeys(
            ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
             "kubeProxyVersion"), "")  # fmt: skip
        addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": f"172.18.0.{number + 2}"}]
        status = {
            "capacity": _CAPACITY,
            "allocatable": _CAPACITY,
            "addresses": addresses,
            "nodeInfo": {**info, **system},
        }
        if not stored.status.get("conditions"):
            await client.patch_status(stored, {**status, "conditions": conditions})
            # What the server gives a new node, and a node controller takes away once it is ready.
            await client.patch(NODE, name, {"spec": {"taints": None}}, type="merge")


@app.reconciler(NODE)
@absence_ends
async def reconcile(ctx: Context, request: Request) -> Result | None:
    """A node that somebody made, and that no kubelet speaks for, is shown as one of which nothing is known."""
    node = await ctx.client.find(NODE, request)
    if node is None or node.status.get("conditions"):
        return None
    made = node.metadata["creationTimestamp"]
    left = _STARTUP_SECONDS - (ctx.now() - parse_time(made)).total_seconds()
    if left > 0:
        return Result(requeue_after=left)
    times = {"lastHeartbeatTime": made, "lastTransitionTime": stamp(ctx.now())}
    conditions = [{"type": kind, **_SILENT, **times} for kind, *_ in reversed(_HEALTHY)]
    await ctx.client.patch(node, patch={"status": {"conditions": conditions}}, subresource="status")
    return None
