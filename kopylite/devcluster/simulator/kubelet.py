"""The scheduler and the kubelets: pods get a node, run, end, and go when they are deleted."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from kopylite import App, Conflict, Context, Request, Result, Unstructured
from kopylite.devcluster.simulator.simulation import FAILS_ANNOTATION, Simulation
from kopylite.devcluster.simulator.workloads import (
    NODE,
    POD,
    absence_ends,
    condition_of,
    parse_time,
    stamp,
    write_status,
)

# 10.244.0.0/16, the pod network of many a small cluster.
_NETWORK, _ADDRESSES = "10.244", 65534
_IP_INDEX = "status.podIP"


def kubelet_app(plan: Simulation) -> App:
    """One controller for all pods of the played nodes."""
    app = App("kubelet")
    app.cache(NODE)

    @app.reconciler(POD)
    @absence_ends
    async def reconcile(ctx: Context, request: Request) -> Result | None:
        pod = await ctx.client.find(POD, request)
        if pod is None:
            return None
        phase = pod.status.get("phase", "Pending")
        if not pod["spec"].get("nodeName"):
            await _schedule(ctx, pod)
        elif pod.deletion_timestamp is not None:
            # With 0 left, only finalizers hold it, and they are nobody's here.
            if pod.metadata.get("deletionGracePeriodSeconds"):
                await ctx.client.delete(pod, grace_period=0)
        elif phase == "Pending":
            return await _start(ctx, pod, plan)
        elif phase == "Running" and _is_of_job(pod):
            return await _finish(ctx, pod, plan)
        return None

    return app


async def _schedule(ctx: Context, pod: Unstructured) -> None:
    """Bind a pod to one of the nodes that fit; it waits, and says so, while there is none."""
    if pod.deletion_timestamp is not None or pod["spec"].get("schedulingGates"):
        return
    nodes = sorted(node.name for node in await ctx.client.list(NODE) if _fits(pod, node))
    if not nodes:
        message = "0 nodes are available that fit the node selector and affinity of the pod."
        unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        if condition_of(pod, "PodScheduled").get("message") != message:
            moved = {**unscheduled, "lastProbeTime": None, "lastTransitionTime": stamp(ctx.now())}
            await write_status(ctx, pod, {"conditions": [moved]})
            ctx.event(pod, "FailedScheduling", message, type="Warning", action="Scheduling")
        return
    node = nodes[zlib.crc32(pod.uid.encode()) % len(nodes)]
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
    try:
        await ctx.client.create_subresource(POD, pod, "binding", body)
    except Conflict:
        return  # the cache has yet to see that it is bound
    note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
    ctx.event(pod, "Scheduled", note, action="Binding")


def _fits(pod: Unstructured, node: Unstructured) -> bool:
    """By node selector, and by the names in its affinity, as the pods of DaemonSets have them."""
    spec = pod["spec"]
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    names = {name for term in terms for field in term.get("matchFields", []) for name in field["values"]}
    unschedulable = node["spec"].get("unschedulable") and not names
    return bool(
        spec.get("nodeSelector", {}).items() <= node.labels.items()
        and (not names or node.name in names)
        and not unschedulable
    )


async def _start(ctx: Context, pod: Unstructured, plan: Simulation) -> Result | None:
    """Run the containers, after the delay."""
    age = (ctx.now() - parse_time(pod.metadata["creationTimestamp"])).total_seconds()
    if plan.start_seconds > age:
        return Result(requeue_after=plan.start_seconds - age)
    if _fails(pod, plan):
        if _is_of_job(pod):
            await write_status(ctx, pod, _ended(ctx, pod, exit_code=1))
        else:
            await write_status(ctx, pod, _stuck(ctx, pod))
        return None
    now = stamp(ctx.now())
    address = await _address(ctx, pod)
    state = {"running": {"startedAt": now}}
    status = {
        **_begun(ctx, pod),
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(pod, now, dict.fromkeys(("Initialized", "Ready", "ContainersReady"), ("True",))),
        "containerStatuses": [_container(each, ready=True, state=state) for each in pod["spec"]["containers"]],
    }
    await write_status(ctx, pod, status)
    return None


async def _finish(ctx: Context, pod: Unstructured, plan: Simulation) -> Result | None:
    """End the containers of a Job's pod, after its time."""
    began = parse_time(condition_of(pod, "Ready")["lastTransitionTime"])
    left = plan.job_seconds - (ctx.now() - began).total_seconds()
    if left > 0:
        return Result(requeue_after=left)
    await write_status(ctx, pod, _ended(ctx, pod, exit_code=0))
    return None


def _begun(ctx: Context, pod: Unstructured) -> dict[str, Any]:
    """What a status holds from the first moment on a node."""
    now = stamp(ctx.now())
    status: dict[str, Any] = {"startTime": pod.status.get("startTime") or now}
    if inits := pod["spec"].get("initContainers"):
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        status["initContainerStatuses"] = [_container(container, ready=True, state=done) for container in inits]
    return status


def _ended(ctx: Context, pod: Unstructured, *, exit_code: int) -> dict[str, Any]:
    now = stamp(ctx.now())
    reason = "Error" if exit_code else "Completed"
    ready = ("False", "PodFailed" if exit_code else "PodCompleted")
    conditions = {"Initialized": ("True", ready[1]), "Ready": ready, "ContainersReady": ready}
    statuses = []
    for container in pod["spec"]["containers"]:
        began = pod.status.get("startTime") or now
        terminated = {"exitCode": exit_code, "reason": reason, "startedAt": began, "finishedAt": now}
        statuses.append(_container(container, ready=False, state={"terminated": terminated}))
    return {
        **_begun(ctx, pod),
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": _conditions(pod, now, conditions),
        "containerStatuses": statuses,
    }


def _stuck(ctx: Context, pod: Unstructured) -> dict[str, Any]:
    """A pod whose image cannot be had."""
    names = ", ".join(container["name"] for container in pod["spec"]["containers"])
    why = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    conditions = {"Initialized": ("True", ""), "Ready": why, "ContainersReady": why}
    statuses = []
    for container in pod["spec"]["containers"]:
        waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{container["image"]}"'}
        statuses.append(_container(container, ready=False, state={"waiting": waiting}))
    return {
        **_begun(ctx, pod),
        "phase": "Pending",
        "conditions": _conditions(pod, stamp(ctx.now()), conditions),
        "containerStatuses": statuses,
    }


def _container(container: Mapping[str, Any], *, ready: bool, state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "lastState": {},
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }


def _conditions(pod: Unstructured, now: str, wanted: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """The pod's conditions, with transition times that move only with their status."""
    conditions = []
    for kind, (status, *texts) in wanted.items():
        old = condition_of(pod, kind)
        since = old["lastTransitionTime"] if old.get("status") == status else now
        named = {key: text for key, text in zip(("reason", "message"), texts, strict=False) if text}
        times = {"lastProbeTime": None, "lastTransitionTime": since}
        conditions.append({"type": kind, "status": status, **named, **times})
    scheduled = condition_of(pod, "PodScheduled")
    return [*conditions, *([scheduled] if scheduled else [])]


async def _address(ctx: Context, pod: Unstructured) -> str:
    """An address that no other pod has; its own again after a restart of this program."""
    if pod.status.get("podIP"):
        return str(pod.status["podIP"])
    number = zlib.crc32(pod.uid.encode())
    while True:
        place = number % _ADDRESSES + 1
        address = f"{_NETWORK}.{place >> 8}.{place & 255}"
        if not await ctx.client.list(POD, index={_IP_INDEX: address}):
            return address
        number += 1


def _is_of_job(pod: Unstructured) -> bool:
    return any(reference.kind == "Job" and reference.controller for reference in pod.owner_references)


def _fails(pod: Unstructured, plan: Simulation) -> bool:
    images = [container.get("image", "") for container in pod["spec"]["containers"]]
    named = any(part in image for part in plan.failing_images for image in images)
    return named or pod.annotations.get(FAILS_ANNOTATION) == "true"
