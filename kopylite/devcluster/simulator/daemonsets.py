"""DaemonSets: one pod on each node."""

from __future__ import annotations

from typing import Any

from kopylite import App, Context, Request, Unstructured
from kopylite.controller import watch
from kopylite.devcluster.simulator.workloads import (
    DAEMON_SET,
    NODE,
    POD,
    REVISION,
    absence_ends,
    controlled,
    counts,
    create_pod,
    current_revision,
    is_active,
    is_ready,
    share_of,
    write_status,
)

app = App("daemonset-controller")

HASH, GENERATION = "controller-revision-hash", "pod-template-generation"
_TOLERATED = {
    "NoExecute": ("not-ready", "unreachable"),
    "NoSchedule": ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"),
}


async def _all_of_them(node: Unstructured, ctx: Context) -> list[Request]:
    return [Request.of(daemon_set) for daemon_set in await ctx.client.list(DAEMON_SET)]


@app.reconciler(DAEMON_SET, owns=[POD, REVISION], watches=[watch(NODE, map=_all_of_them)])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> None:
    """A pod for each node that has none, none twice, and those of an old template replaced in turn."""
    daemon_set = await ctx.client.find(DAEMON_SET, request)
    if daemon_set is None:
        return
    revision = (await current_revision(ctx, daemon_set, HASH))[-1]
    hashed = revision.labels[HASH]
    nodes = [node for node in await ctx.client.list(NODE) if _wanted_on(daemon_set, node)]
    if daemon_set.deletion_timestamp is None:
        await _place(ctx, daemon_set, sorted(node.name for node in nodes), hashed)
    active = [pod for pod in await controlled(ctx, POD, daemon_set) if is_active(pod)]
    ready = sum(is_ready(pod) for pod in active)
    status = {
        "currentNumberScheduled": len({_node_of(pod) for pod in active}),
        "desiredNumberScheduled": len(nodes),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "observedGeneration": daemon_set.generation,
        **counts(
            numberAvailable=ready,
            numberUnavailable=len(nodes) - ready,
            updatedNumberScheduled=sum(pod.labels.get(HASH) == hashed for pod in active),
        ),
    }
    await write_status(ctx, daemon_set, status)


async def _place(ctx: Context, daemon_set: Unstructured, nodes: list[str], hashed: str) -> None:
    pods = await controlled(ctx, POD, daemon_set)
    by_node = {_node_of(pod): pod for pod in pods}
    for node in nodes:
        if node not in by_node:
            await _create(ctx, daemon_set, node, hashed)
        elif by_node[node].status.get("phase") == "Failed":
            await _delete(ctx, daemon_set, by_node[node])
    for node, pod in by_node.items():
        if node not in nodes and is_active(pod):
            await _delete(ctx, daemon_set, pod)
    strategy = daemon_set["spec"].get("updateStrategy", {})
    if strategy.get("type") == "OnDelete":
        return
    limit = share_of(strategy.get("rollingUpdate", {}).get("maxUnavailable", 1), len(nodes), up=True)
    room = limit - sum(node not in by_node or not is_ready(by_node[node]) for node in nodes)
    outdated = [pod for pod in pods if is_active(pod) and pod.labels.get(HASH) != hashed]
    for pod in outdated:
        # One that is not ready takes nothing away.
        if not is_ready(pod) or room > 0:
            room -= is_ready(pod)
            await _delete(ctx, daemon_set, pod)


async def _create(ctx: Context, daemon_set: Unstructured, node: str, hashed: str) -> None:
    template = daemon_set["spec"]["template"]
    labels = {HASH: hashed, GENERATION: str(daemon_set.generation)}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    tolerations: list[dict[str, Any]] = [
        {"effect": effect, "key": f"node.kubernetes.io/{key}", "operator": "Exists"}
        for effect, keys in _TOLERATED.items()
        for key in keys
    ]
    spec = {
        **template["spec"],
        "affinity": {**template["spec"].get("affinity", {}), **affinity},
        "tolerations": [*template["spec"].get("tolerations", []), *tolerations],
    }
    name = f"{daemon_set.name}-"
    pod = await create_pod(ctx, daemon_set, {**template, "spec": spec}, generateName=name, labels=labels)
    if pod is not None:
        ctx.event(daemon_set, "SuccessfulCreate", f"Created pod: {pod.name}")


async def _delete(ctx: Context, daemon_set: Unstructured, pod: Unstructured) -> None:
    if await ctx.client.delete(pod):
        ctx.event(daemon_set, "SuccessfulDelete", f"Deleted pod: {pod.name}")


def _wanted_on(daemon_set: Unstructured, node: Unstructured) -> bool:
    selector = daemon_set["spec"]["template"]["spec"].get("nodeSelector", {})
    return bool(selector.items() <= node.labels.items())


def _node_of(pod: Unstructured) -> str:
    """The node that a pod is for, also before it is scheduled."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
