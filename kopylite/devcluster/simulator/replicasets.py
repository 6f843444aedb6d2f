"""ReplicaSets and ReplicationControllers: as many pods as desired, and a status that counts them."""

from __future__ import annotations

from typing import Any

import anyio

from kopylite import App, Context, Kind, Request, Result, Unstructured
from kopylite.devcluster.simulator.workloads import (
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    absence_ends,
    available_in,
    controlled,
    counts,
    create_pod,
    is_active,
    is_ready,
    write_status,
)

app = App("replicaset-controller")
replication_app = App("replication-controller")


@app.reconciler(REPLICA_SET, owns=[POD])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Keep a ReplicaSet at its size."""
    return await _keep_size(ctx, REPLICA_SET, request)


@replication_app.reconciler(REPLICATION_CONTROLLER, owns=[POD])
@absence_ends
async def reconcile_controller(ctx: Context, request: Request) -> Result | None:
    """Keep a ReplicationController at its size."""
    return await _keep_size(ctx, REPLICATION_CONTROLLER, request)


async def _keep_size(ctx: Context, kind: Kind, request: Request) -> Result | None:
    """Create what is missing, delete what is too much, count what is there."""
    replica_set = await ctx.client.find(kind, request)
    if replica_set is None:
        return None
    pods = await controlled(ctx, POD, replica_set)
    active = [pod for pod in pods if is_active(pod)]
    missing = replica_set["spec"]["replicas"] - len(active)
    if missing > 0:
        # Pods that went because it is being deleted, of which the cache may not know yet, are not replaced.
        replica_set = await ctx.client.live.get(kind, request)
    if replica_set.deletion_timestamp is None and missing:
        async with anyio.create_task_group() as tasks:
            for pod in sorted(active, key=_worth)[: max(0, -missing)]:
                tasks.start_soon(_delete, ctx, replica_set, pod)
            for _ in range(max(0, missing)):
                tasks.start_soon(_create, ctx, replica_set)
    waits = [available_in(pod, replica_set["spec"].get("minReadySeconds", 0), ctx.now()) for pod in active]
    status = _status(replica_set, pods, active, available=waits.count(0.0))
    await write_status(ctx, replica_set, status)
    later = [wait for wait in waits if wait]
    return Result(requeue_after=min(later)) if later else None


def _status(
    replica_set: Unstructured, pods: list[Unstructured], active: list[Unstructured], *, available: int
) -> dict[str, Any]:
    labels = replica_set["spec"]["template"].get("metadata", {}).get("labels", {})
    status = {
        "replicas": len(active),
        "observedGeneration": replica_set.generation,
        **counts(
            fullyLabeledReplicas=sum(labels.items() <= pod.labels.items() for pod in active),
            readyReplicas=sum(is_ready(pod) for pod in active),
            availableReplicas=available,
        ),
    }
    if replica_set.kind == REPLICA_SET.kind:
        status["terminatingReplicas"] = sum(pod.deletion_timestamp is not None for pod in pods)
    return status


async def _create(ctx: Context, replica_set: Unstructured) -> None:
    template = replica_set["spec"]["template"]
    pod = await create_pod(ctx, replica_set, template, generateName=f"{replica_set.name}-")
    if pod is not None:
        ctx.event(replica_set, "SuccessfulCreate", f"Created pod: {pod.name}")


async def _delete(ctx: Context, replica_set: Unstructured, pod: Unstructured) -> None:
    if await ctx.client.delete(pod):
        ctx.event(replica_set, "SuccessfulDelete", f"Deleted pod: {pod.name}")


def _worth(pod: Unstructured) -> tuple[bool, bool, bool]:
    """What to keep sorts last: assigned, running, ready pods."""
    return bool(pod["spec"].get("nodeName")), pod.status.get("phase") == "Running", is_ready(pod)
