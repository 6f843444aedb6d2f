"""Volumes in use are kept: a claim goes when no pod has it any more, a volume when no claim is bound to it."""

from __future__ import annotations

from kopylite import App, Context, Kind, Request, Unstructured
from kopylite.controller import watch
from kopylite.devcluster.simulator.workloads import POD, absence_ends, is_active

app = App("volume-protection")

CLAIM = Kind("v1", "PersistentVolumeClaim")
VOLUME = Kind("v1", "PersistentVolume")
# The server puts them on each new object; somebody has to take them off again.
_CLAIM_IN_USE, _VOLUME_IN_USE = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


def _claims_of(pod: Unstructured) -> list[Request]:
    volumes = pod["spec"].get("volumes") or []
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]
    return [Request(pod.namespace, name) for name in names]


async def _used_claims(pod: Unstructured, ctx: Context) -> list[Request]:
    return _claims_of(pod)


@app.reconciler(CLAIM, watches=[watch(POD, map=_used_claims)])
@absence_ends
async def reconcile_claim(ctx: Context, request: Request) -> None:
    claim = await ctx.client.find(CLAIM, request)
    if claim is None or claim.deletion_timestamp is None:
        return
    pods = await ctx.client.list(POD, namespace=claim.namespace)
    if not any(request in _claims_of(pod) for pod in pods if is_active(pod)):
        await _release(ctx, claim, _CLAIM_IN_USE)


@app.reconciler(VOLUME)
@absence_ends
async def reconcile_volume(ctx: Context, request: Request) -> None:
    volume = await ctx.client.find(VOLUME, request)
    if volume is not None and volume.deletion_timestamp is not None and volume.status.get("phase") != "Bound":
        await _release(ctx, volume, _VOLUME_IN_USE)


async def _release(ctx: Context, obj: Unstructured, finalizer: str) -> None:
    """Take the finalizer off, and no other's."""
    left = [name for name in obj.finalizers if name != finalizer]
    if len(left) < len(obj.finalizers):
        await ctx.client.patch(obj, {"metadata": {"finalizers": left}})
