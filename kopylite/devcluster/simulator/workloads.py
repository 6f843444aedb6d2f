"""What the workload controllers have in common: kinds, their children, pods from templates, and revisions."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kopylite import Context, Kind, Request, Result, Unstructured
from kopylite.controller import Reconcile
from kopylite.errors import AlreadyExists, Forbidden, Invalid, NotFound

DEPLOYMENT = Kind("apps/v1", "Deployment")
REPLICA_SET = Kind("apps/v1", "ReplicaSet")
REPLICATION_CONTROLLER = Kind("v1", "ReplicationController")
STATEFUL_SET = Kind("apps/v1", "StatefulSet")
DAEMON_SET = Kind("apps/v1", "DaemonSet")
REVISION = Kind("apps/v1", "ControllerRevision")
JOB = Kind("batch/v1", "Job")
POD = Kind("v1", "Pod")
NODE = Kind("v1", "Node")

OWNER_INDEX = "metadata.ownerReferences.uid"
# Consonants and digits, so that no name comes out as a word; upstream's alphabet of hashes.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def absence_ends(reconcile: Reconcile) -> Reconcile:
    """A run whose object, or child, has gone by the time it writes has nothing more to do: the deletion itself starts
    the run that may be needed then."""

    @functools.wraps(reconcile)
    async def wrapped(ctx: Context, request: Request) -> Result | None:
        try:
            return await reconcile(ctx, request)
        except NotFound:
            return None
        except Invalid as error:
            if any(cause.field == "metadata.uid" for cause in error.causes):
                return None  # another object of its name is there by now
            raise

    return wrapped


async def write_status(ctx: Context, obj: Unstructured, status: Mapping[str, Any]) -> None:
    """Set the status of this very object: a new one of its name, which a Deployment that is deleted and made again
    gets for its ReplicaSet, must not show what was true of the old one."""
    await ctx.client.patch(obj, patch={"metadata": {"uid": obj.uid}, "status": status}, subresource="status")


async def controlled(ctx: Context, kind: Kind, owner: Unstructured) -> list[Unstructured]:
    """The objects of a kind whose controller is `owner`, oldest first."""
    found = await ctx.client.list(kind, namespace=owner.namespace, index={OWNER_INDEX: owner.uid})
    own = [obj for obj in found if any(ref.uid == owner.uid and ref.controller for ref in obj.owner_references)]
    return sorted(own, key=lambda obj: (obj.metadata.get("creationTimestamp", ""), obj.name))


async def create_pod(
    ctx: Context, owner: Unstructured, template: Mapping[str, Any], **metadata: Any
) -> Unstructured | None:
    """Create a pod from a template; None when it may not be now (its namespace goes) or is there already.

    Args:
        metadata: added to the template's own; maps are merged.
    """
    merged = {"namespace": owner.namespace, **template.get("metadata", {})}
    for name, value in metadata.items():
        merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value
    pod = Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": merged, "spec": template["spec"]})
    try:
        return await ctx.client.create(pod, owner=owner)
    except (AlreadyExists, Forbidden):
        return None


def template_hash(template: Mapping[str, Any]) -> str:
    """A short name for what a template says; same text, same hash."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    number = str(int.from_bytes(digest[:4], "big"))
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in number)


def is_active(pod: Unstructured) -> bool:
    """Neither finished nor on its way out."""
    return pod.status.get("phase") not in ("Succeeded", "Failed") and pod.deletion_timestamp is None


def condition_of(obj: Unstructured, kind: str) -> dict[str, Any]:
    """The condition of a type; {} if there is none."""
    return next((c for c in obj.status.get("conditions") or () if c["type"] == kind), {})


def is_ready(pod: Unstructured) -> bool:
    return condition_of(pod, "Ready").get("status") == "True"


def available_in(pod: Unstructured, min_ready_seconds: float, now: datetime) -> float | None:
    """Seconds until a pod has been ready for long enough; 0: it has; None: it is not ready."""
    if not is_ready(pod):
        return None
    since = parse_time(condition_of(pod, "Ready")["lastTransitionTime"])
    return max(0.0, min_ready_seconds - (now - since).total_seconds()) if min_ready_seconds else 0.0


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def stamp(now: datetime) -> str:
    """A time as the API writes it."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def put_condition(conditions: list[dict[str, Any]], new: dict[str, Any], now: str, *, updated: bool = False) -> None:
    """Add or replace a condition in place; its transition time moves with its status only.

    Args:
        updated: it has a `lastUpdateTime` too, which moves with any change, as it goes to the end of the list: both
            are ways of Deployments.
    """
    old = next((c for c in conditions if c["type"] == new["type"]), None)
    if old is not None and all(old.get(key) == value for key, value in new.items()):
        return
    moved = old["lastTransitionTime"] if old and old["status"] == new["status"] else now
    condition = {**new, "lastTransitionTime": moved} | ({"lastUpdateTime": now} if updated else {})
    if old is not None and not updated:
        conditions[conditions.index(old)] = condition
        return
    if old is not None:
        conditions.remove(old)
    conditions.append(condition)


def counts(**numbers: int) -> dict[str, int | None]:
    """Status fields that are left out when they are 0, as the API's own types do."""
    return {name: number or None for name, number in numbers.items()}


def share_of(value: int | str | None, total: int, *, up: bool) -> int:
    """A number or a percentage of `total`, rounded up or down."""
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1]) * total
        return -(-percent // 100) if up else percent // 100
    return int(value or 0)


async def current_revision(ctx: Context, owner: Unstructured, hash_label: str) -> list[Unstructured]:
    """Keep a ControllerRevision for each template that `owner` had. Returns all, the present one last.

    Args:
        hash_label: where a revision tells its hash; StatefulSets and DaemonSets have ways of their own.
    """
    hashed = template_hash(owner["spec"]["template"])
    name = f"{owner.name}-{hashed}"
    revisions = await controlled(ctx, REVISION, owner)
    revisions.sort(key=lambda revision: int(revision.get("revision", 0)))
    newest = int(revisions[-1].get("revision", 0)) if revisions else 0
    present = next((revision for revision in revisions if revision.name == name), None)
    if present is None:
        labels = {**owner["spec"]["template"].get("metadata", {}).get("labels", {}), hash_label: hashed}
        metadata = {"name": name, "namespace": owner.namespace, "labels": labels, "annotations": owner.annotations}
        wanted = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}},
            "revision": newest + 1,
        }
        present = await ctx.client.create(Unstructured(wanted), owner=owner)
    elif present["revision"] != newest:
        present = await ctx.client.patch(present, patch={"revision": newest + 1})
    others = [revision for revision in revisions if revision.name != name]
    surplus = len(others) - owner["spec"].get("revisionHistoryLimit", 10)
    for old in others[: max(0, surplus)]:
        await ctx.client.delete(old)
    return [*others[max(0, surplus) :], present]
