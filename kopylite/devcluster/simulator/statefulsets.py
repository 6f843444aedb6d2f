"""StatefulSets: numbered pods, made and replaced one after the other."""

from __future__ import annotations

from typing import Any

from kopylite import App, Context, Kind, Request, Result, Unstructured
from kopylite.devcluster.simulator.workloads import (
    POD,
    REVISION,
    STATEFUL_SET,
    absence_ends,
    available_in,
    controlled,
    counts,
    create_pod,
    current_revision,
    is_active,
    is_ready,
    write_status,
)
from kopylite.objects import set_owner

app = App("statefulset-controller")

CLAIM = Kind("v1", "PersistentVolumeClaim")
REVISION_LABEL = "controller-revision-hash"


@app.reconciler(STATEFUL_SET, owns=[POD, REVISION])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> Result | None:
    """The next step for the first pod that is not as it should be, and the status."""
    stateful_set = await ctx.client.find(STATEFUL_SET, request)
    if stateful_set is None:
        return None
    update = (await current_revision(ctx, stateful_set, "controller.kubernetes.io/hash"))[-1].name
    pods = {_ordinal(pod): pod for pod in await controlled(ctx, POD, stateful_set)}
    if stateful_set.deletion_timestamp is None:
        await _step(ctx, stateful_set, pods, update)
    pods = {_ordinal(pod): pod for pod in await controlled(ctx, POD, stateful_set)}
    status, wait = _status(ctx, stateful_set, pods, update)
    await write_status(ctx, stateful_set, status)
    return Result(requeue_after=wait) if wait else None


async def _step(ctx: Context, stateful_set: Unstructured, pods: dict[int, Unstructured], update: str) -> None:
    spec = stateful_set["spec"]
    one_by_one = spec.get("podManagementPolicy") != "Parallel"
    first = (spec.get("ordinals") or {}).get("start", 0)
    wanted = range(first, first + spec["replicas"])
    for ordinal, known in pods.items():
        await _own_claims(ctx, stateful_set, known, condemned=ordinal not in wanted)
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None:
            await _create(ctx, stateful_set, ordinal, update)
        elif pod.status.get("phase") in ("Failed", "Succeeded"):
            await ctx.client.delete(pod)
        if one_by_one and (pod is None or not is_active(pod) or not is_ready(pod)):
            return
    for ordinal in sorted((number for number in pods if number not in wanted), reverse=True):
        if is_active(pods[ordinal]):
            await _delete(ctx, stateful_set, pods[ordinal])
        if one_by_one:
            return
    await _roll(ctx, stateful_set, pods, first, update)


async def _roll(
    ctx: Context, stateful_set: Unstructured, pods: dict[int, Unstructured], first: int, update: str
) -> None:
    """Replace the highest pod of another revision, when all above it are well."""
    strategy = stateful_set["spec"].get("updateStrategy", {})
    if strategy.get("type") == "OnDelete":
        return
    partition = strategy.get("rollingUpdate", {}).get("partition", 0)
    for ordinal in sorted((number for number in pods if number >= first + partition), reverse=True):
        pod = pods[ordinal]
        if is_active(pod) and pod.labels.get(REVISION_LABEL) != update:
            await _delete(ctx, stateful_set, pod)
            return
        if not is_active(pod) or not is_ready(pod):
            return


async def _create(ctx: Context, stateful_set: Unstructured, ordinal: int, update: str) -> None:
    name, spec = f"{stateful_set.name}-{ordinal}", stateful_set["spec"]
    labels = {
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION_LABEL: update,
        "statefulset.kubernetes.io/pod-name": name,
    }
    pod_spec = {**spec["template"]["spec"], "hostname": name}
    if spec.get("serviceName"):
        pod_spec["subdomain"] = spec["serviceName"]
    claims = spec.get("volumeClaimTemplates") or []
    if claims:
        pod_spec["volumes"] = [
            *pod_spec.get("volumes", []),
            *[await _claim(ctx, stateful_set, c, name) for c in claims],
        ]
    template = {**spec["template"], "spec": pod_spec}
    if await create_pod(ctx, stateful_set, template, name=name, generateName=f"{stateful_set.name}-", labels=labels):
        note = f"create Pod {name} in StatefulSet {stateful_set.name} successful"
        ctx.event(stateful_set, "SuccessfulCreate", note)


async def _claim(ctx: Context, stateful_set: Unstructured, template: dict[str, Any], pod: str) -> dict[str, Any]:
    """The volume for a claim template; its claim outlives the pod."""
    volume = template["metadata"]["name"]
    name = f"{volume}-{pod}"

    def mutate(claim: Unstructured) -> None:
        if not claim.resource_version:
            claim["metadata"]["labels"] = dict(stateful_set["spec"]["selector"].get("matchLabels", {}))
            claim["spec"] = template["spec"]
            if _goes(stateful_set, "whenDeleted"):
                set_owner(stateful_set, claim)

    await ctx.client.create_or_update(CLAIM, name, mutate, namespace=stateful_set.namespace)
    return {"name": volume, "persistentVolumeClaim": {"claimName": name}}


async def _own_claims(ctx: Context, stateful_set: Unstructured, pod: Unstructured, *, condemned: bool) -> None:
    """Have the claims of a pod go with the StatefulSet, or with a pod that it is to have no more, or stay."""
    owner = stateful_set if _goes(stateful_set, "whenDeleted") else None
    if condemned and _goes(stateful_set, "whenScaled"):
        owner = pod
    ours = {stateful_set.uid, pod.uid}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or []:
        claim = await ctx.client.find(CLAIM, f"{template['metadata']['name']}-{pod.name}", namespace=pod.namespace)
        if claim is None or any(ref.controller and ref.uid not in ours for ref in claim.owner_references):
            continue  # it is somebody else's
        if {ref.uid for ref in claim.owner_references} & ours == ({owner.uid} if owner is not None else set()):
            continue
        references = claim.metadata.get("ownerReferences") or []
        claim["metadata"]["ownerReferences"] = [ref for ref in references if ref["uid"] not in ours]
        if owner is not None:
            set_owner(owner, claim)
        await ctx.client.update(claim)


def _goes(stateful_set: Unstructured, when: str) -> bool:
    """Whether claims are to go, `whenDeleted` or `whenScaled`."""
    return (stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when) == "Delete"


async def _delete(ctx: Context, stateful_set: Unstructured, pod: Unstructured) -> None:
    if await ctx.client.delete(pod):
        note = f"delete Pod {pod.name} in StatefulSet {stateful_set.name} successful"
        ctx.event(stateful_set, "SuccessfulDelete", note)


def _status(
    ctx: Context, stateful_set: Unstructured, pods: dict[int, Unstructured], update: str
) -> tuple[dict[str, Any], float]:
    """The status, and the seconds until it changes by itself (0: it does not)."""
    active = [pod for pod in pods.values() if is_active(pod)]
    waits = [available_in(pod, stateful_set["spec"].get("minReadySeconds", 0), ctx.now()) for pod in active]
    updated = sum(pod.labels.get(REVISION_LABEL) == update for pod in active)
    before = stateful_set.status.get("currentRevision") or update
    done = updated == stateful_set["spec"]["replicas"] == len(active) and all(is_ready(pod) for pod in active)
    current = update if done else before
    status = {
        "observedGeneration": stateful_set.generation,
        "replicas": len(active),
        "availableReplicas": waits.count(0.0),
        "collisionCount": 0,
        **counts(
            readyReplicas=sum(is_ready(pod) for pod in active),
            currentReplicas=sum(pod.labels.get(REVISION_LABEL) == current for pod in active),
            updatedReplicas=updated,
        ),
        "currentRevision": current,
        "updateRevision": update,
    }
    return status, min((wait for wait in waits if wait), default=0.0)


def _ordinal(pod: Unstructured) -> int:
    return int(pod.name.rpartition("-")[2])
