"""Deployments: a ReplicaSet for each template, replaced step by step within maxSurge and maxUnavailable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kopylite import App, Context, Request, Result, Unstructured
from kopylite.devcluster.simulator.deploymentstatus import deployment_status, seconds_to_deadline
from kopylite.devcluster.simulator.rollout import Rollout, rollout_of
from kopylite.devcluster.simulator.workloads import (
    DEPLOYMENT,
    REPLICA_SET,
    absence_ends,
    controlled,
    template_hash,
    write_status,
)

app = App("deployment-controller")

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED, MAXIMUM = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
HASH = "pod-template-hash"
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED, MAXIMUM,
               HISTORY, "deprecated.deployment.rollback.to")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sets:
    """The ReplicaSets of a Deployment: the one of its present template (None: not made yet), and the others."""

    new: Unstructured | None
    old: Sequence[Unstructured]

    @property
    def all(self) -> list[Unstructured]:
        return [*self.old, *([self.new] if self.new else [])]


@app.reconciler(DEPLOYMENT, owns=[REPLICA_SET])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> Result | None:
    """One step of the rollout, and the status. The next step follows from what it changes."""
    deployment = await ctx.client.find(DEPLOYMENT, request)
    if deployment is None:
        return None
    sets = _sort(deployment, await controlled(ctx, REPLICA_SET, deployment))
    if deployment.deletion_timestamp is None:
        paused = deployment["spec"].get("paused", False)
        rollout = rollout_of(deployment, sets.new, sets.old)
        if not paused or sets.new is not None:
            sets = await _provide(ctx, deployment, sets, rollout)
        if paused:
            await _scale_paused(ctx, deployment, sets)
        else:
            await _step(ctx, deployment, sets, rollout)
            await _forget(ctx, deployment, sets)
    # As they are after this step.
    sets = _sort(deployment, await controlled(ctx, REPLICA_SET, deployment))
    status = deployment_status(deployment, sets.new, sets.old, ctx.now())
    await write_status(ctx, deployment, status)
    wait = seconds_to_deadline(deployment, status, ctx.now())
    return Result(requeue_after=wait) if wait else None


def _sort(deployment: Unstructured, found: Sequence[Unstructured]) -> Sets:
    wanted = deployment["spec"]["template"]
    new = next((replica_set for replica_set in found if _template_of(replica_set) == wanted), None)
    return Sets(new, [replica_set for replica_set in found if replica_set is not new])


def _template_of(replica_set: Unstructured) -> dict[str, Any]:
    """A ReplicaSet's template, without the label that tells it from others."""
    template: dict[str, Any] = replica_set["spec"]["template"]
    metadata = template.get("metadata", {})
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


async def _provide(ctx: Context, deployment: Unstructured, sets: Sets, rollout: Rollout) -> Sets:
    """The new ReplicaSet with the newest revision, made if it is not there; both carry the revision's number."""
    revisions = [int(replica_set.annotations.get(REVISION, 0)) for replica_set in sets.old]
    revision = max(revisions, default=0) + 1
    present = int(sets.new.annotations.get(REVISION, 0)) if sets.new else 0
    annotations = {
        DESIRED: str(rollout.desired),
        MAXIMUM: str(rollout.desired + rollout.surge),
        REVISION: str(max(revision, present)),
    }
    annotations |= {key: value for key, value in deployment.annotations.items() if key not in _NOT_COPIED}
    if sets.new and 0 < present < revision:  # a rollback: it tells all the numbers that it had
        annotations[HISTORY] = ",".join(filter(None, (sets.new.annotations.get(HISTORY), str(present))))
    if sets.new is None:
        new = await _create(ctx, deployment, annotations, rollout)
    else:
        changed = {key: value for key, value in annotations.items() if sets.new.annotations.get(key) != value}
        new = await ctx.client.patch(sets.new, patch={"metadata": {"annotations": changed}}) if changed else sets.new
    for old in sets.old:
        limits = {DESIRED: annotations[DESIRED], MAXIMUM: annotations[MAXIMUM]}
        if old["spec"]["replicas"] and any(old.annotations.get(key) != value for key, value in limits.items()):
            await ctx.client.patch(old, patch={"metadata": {"annotations": limits}})
    if deployment.annotations.get(REVISION) != annotations[REVISION]:
        shown = {"metadata": {"annotations": {REVISION: annotations[REVISION]}}}
        # By the status endpoint: by the main one, a changed annotation is a new generation of a Deployment.
        await ctx.client.patch(deployment, patch=shown, subresource="status")
    return Sets(new, sets.old)


async def _create(
    ctx: Context, deployment: Unstructured, annotations: dict[str, str], rollout: Rollout
) -> Unstructured:
    spec = deployment["spec"]
    template = spec["template"]
    hashed = template_hash(template)
    labels = {**template.get("metadata", {}).get("labels", {}), HASH: hashed}
    selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), HASH: hashed}}
    new_spec = {
        "replicas": rollout.first_size,
        "selector": selector,
        "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
    } | ({"minReadySeconds": spec["minReadySeconds"]} if "minReadySeconds" in spec else {})
    name = f"{deployment.name}-{hashed}"
    metadata = {"name": name, "namespace": deployment.namespace, "labels": labels, "annotations": annotations}
    wanted = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": new_spec}
    created = await ctx.client.create(Unstructured(wanted), owner=deployment)
    if rollout.first_size:
        _tell(ctx, deployment, created, 0, rollout.first_size)
    return created


async def _step(ctx: Context, deployment: Unstructured, sets: Sets, rollout: Rollout) -> None:
    """Scale up the new, or scale down the old: what the limits allow now."""
    if sets.new is None or sets.new["spec"]["replicas"] != rollout.new_size:
        if sets.new is not None:
            await _scale(ctx, deployment, sets.new, rollout.new_size)
        return
    for old in sets.old:
        await _scale(ctx, deployment, old, rollout.old_sizes.get(old.name, old["spec"]["replicas"]))


async def _scale_paused(ctx: Context, deployment: Unstructured, sets: Sets) -> None:
    """A paused rollout goes no further, but the number of replicas is kept."""
    active = [replica_set for replica_set in sets.all if replica_set["spec"]["replicas"]]
    if len(active) == 1:
        await _scale(ctx, deployment, active[0], deployment["spec"]["replicas"])


async def _scale(ctx: Context, deployment: Unstructured, replica_set: Unstructured, size: int) -> None:
    before = replica_set["spec"]["replicas"]
    if before != size:
        await ctx.client.patch(replica_set, patch={"spec": {"replicas": size}})
        _tell(ctx, deployment, replica_set, before, size)


def _tell(ctx: Context, deployment: Unstructured, replica_set: Unstructured, before: int, after: int) -> None:
    word = "up" if after > before else "down"
    note = f"Scaled {word} replica set {replica_set.name} from {before} to {after}"
    ctx.event(deployment, "ScalingReplicaSet", note, action="ScalingReplicaSet")


async def _forget(ctx: Context, deployment: Unstructured, sets: Sets) -> None:
    """Delete old ReplicaSets beyond the history limit."""
    empty = [old for old in sets.old if not old["spec"]["replicas"] and not old.status.get("replicas")]
    empty.sort(key=lambda old: int(old.annotations.get(REVISION, 0)))
    surplus = len(empty) - deployment["spec"].get("revisionHistoryLimit", 10)
    for old in empty[: max(0, surplus)]:
        await ctx.client.delete(old)
