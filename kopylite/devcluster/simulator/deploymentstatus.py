"""The status of a Deployment, as the real controller writes it. Pure: the time is an argument."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kopylite import Unstructured
from kopylite.devcluster.simulator.rollout import limits_of
from kopylite.devcluster.simulator.workloads import counts, parse_time, put_condition, stamp

AVAILABLE = ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
UNAVAILABLE = ("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


def deployment_status(
    deployment: Unstructured, new: Unstructured | None, old: Sequence[Unstructured], now: datetime
) -> dict[str, Any]:
    """All fields that the controller keeps; None for those that are left out."""
    everything = [*old, *([new] if new else [])]
    total = {
        field: sum(replica_set.status.get(field) or 0 for replica_set in everything)
        for field in ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")
    }
    wanted = sum(replica_set["spec"]["replicas"] for replica_set in everything)
    updated = new.status.get("replicas") or 0 if new else 0
    conditions = copy.deepcopy(deployment.status.get("conditions") or [])
    enough = total["availableReplicas"] >= deployment["spec"]["replicas"] - limits_of(deployment)[1]
    _put(conditions, *(AVAILABLE if enough else UNAVAILABLE), now)
    _progressing(conditions, deployment, new, total, updated, now)
    return {
        "observedGeneration": deployment.generation,
        "terminatingReplicas": total.pop("terminatingReplicas"),
        **counts(**total, updatedReplicas=updated, unavailableReplicas=max(0, wanted - total["availableReplicas"])),
        "conditions": conditions,
    }


def _progressing(
    conditions: list[dict[str, Any]],
    deployment: Unstructured,
    new: Unstructured | None,
    total: dict[str, int],
    updated: int,
    now: datetime,
) -> None:
    """The Progressing condition: begun, going on, done, paused, or too slow."""
    desired, name = deployment["spec"]["replicas"], f'ReplicaSet "{new.name}"' if new else "Deployment"
    present = next((c for c in conditions if c["type"] == "Progressing"), None)
    if deployment["spec"].get("paused"):
        _put(conditions, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)
        return
    complete = updated == desired == total["replicas"] == total["availableReplicas"]
    before = deployment.status
    steps = ("updatedReplicas", "readyReplicas", "availableReplicas")
    after = {**total, "updatedReplicas": updated}
    moved = any(after[step] > (before.get(step) or 0) for step in steps) or (
        (before.get("replicas") or 0) - (before.get("updatedReplicas") or 0) > total["replicas"] - updated
    )
    if complete:
        done = f"{name} has successfully progressed."
        _put(conditions, "Progressing", "True", "NewReplicaSetAvailable", done, now)
    elif present is None:
        created = f'Created new replica set "{new.name}"' if new else "Deployment is progressing."
        _put(conditions, "Progressing", "True", "NewReplicaSetCreated", created, now)
    elif moved or present["reason"] in ("NewReplicaSetAvailable", "DeploymentPaused"):
        going = f"{name} is progressing."
        _put(conditions, "Progressing", "True", "ReplicaSetUpdated", going, now, touch=moved)
    elif (now - parse_time(present["lastUpdateTime"])).total_seconds() > _deadline(deployment):
        late = f"{name} has timed out progressing."
        _put(conditions, "Progressing", "False", "ProgressDeadlineExceeded", late, now)


def seconds_to_deadline(deployment: Unstructured, status: Mapping[str, Any], now: datetime) -> float:
    """How long a rollout still has to make progress; 0: there is no rollout that goes on."""
    present = next(c for c in status["conditions"] if c["type"] == "Progressing")
    if present["status"] != "True" or present["reason"] == "NewReplicaSetAvailable":
        return 0.0
    # A second more than the limit: it has to be exceeded, by time stamps of whole seconds.
    return max(0.1, _deadline(deployment) + 1 - (now - parse_time(present["lastUpdateTime"])).total_seconds())


def _deadline(deployment: Unstructured) -> float:
    seconds: float = deployment["spec"].get("progressDeadlineSeconds", 600)
    return seconds


def _put(
    conditions: list[dict[str, Any]],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    touch: bool = False,
) -> None:
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    put_condition(conditions, new, stamp(now), updated=True)
    if touch:
        next(c for c in conditions if c["type"] == kind)["lastUpdateTime"] = stamp(now)
