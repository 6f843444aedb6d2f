"""Rollout: how large each ReplicaSet of a Deployment may be now. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kopylite import Unstructured
from kopylite.devcluster.simulator.workloads import share_of


@dataclass(frozen=True, slots=True)
class Rollout:
    """The next sizes.

    Attributes:
        desired: the desired number of replicas.
        surge: how many more there may be meanwhile.
        unavailable: how many of them may be unavailable meanwhile.
        first_size: of a new ReplicaSet that is about to be made.
        new_size: of the new ReplicaSet.
        old_sizes: of the others, by name.
    """

    desired: int
    surge: int
    unavailable: int
    first_size: int
    new_size: int
    old_sizes: Mapping[str, int] = field(default_factory=dict)


def limits_of(deployment: Unstructured) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers: a surge is rounded up, the unavailable down, never both 0."""
    desired, strategy = deployment["spec"]["replicas"], deployment["spec"].get("strategy", {})
    if strategy.get("type") == "Recreate":
        return 0, desired
    rolling = strategy.get("rollingUpdate", {})
    surge = share_of(rolling.get("maxSurge"), desired, up=True)
    unavailable = share_of(rolling.get("maxUnavailable"), desired, up=False)
    return surge, unavailable or (0 if surge else 1)


def rollout_of(deployment: Unstructured, new: Unstructured | None, old: Sequence[Unstructured]) -> Rollout:
    """The next step from here."""
    desired = deployment["spec"]["replicas"]
    surge, unavailable = limits_of(deployment)
    old_total = sum(_size(replica_set) for replica_set in old)
    present = _size(new) if new else 0
    if deployment["spec"].get("strategy", {}).get("type") == "Recreate":
        gone = not old_total and not any(replica_set.status.get("replicas") for replica_set in old)
        size = desired if gone else present
        return Rollout(desired, 0, desired, size, size, {replica_set.name: 0 for replica_set in old})
    room = max(0, desired + surge - old_total - present)
    size = desired if present > desired else present + min(room, desired - present)
    if size != present:
        return Rollout(desired, surge, unavailable, size, size)
    return Rollout(desired, surge, unavailable, size, size, _shrunk(old, new, desired - unavailable))


def _shrunk(old: Sequence[Unstructured], new: Unstructured | None, minimum: int) -> dict[str, int]:
    """Old sizes such that at least `minimum` replicas stay available: the unhealthy go first, then the oldest."""
    everything = [*old, *([new] if new else [])]
    new_unavailable = _size(new) - _available(new) if new else 0
    may_go = sum(_size(replica_set) for replica_set in everything) - minimum - new_unavailable
    sizes = {replica_set.name: _size(replica_set) for replica_set in old}
    for replica_set in old:
        unhealthy = max(0, _size(replica_set) - _available(replica_set))
        going = max(0, min(may_go, unhealthy))
        sizes[replica_set.name] -= going
        may_go -= going
    spare = min(may_go, sum(_available(replica_set) for replica_set in everything) - minimum)
    for replica_set in old:
        going = max(0, min(spare, sizes[replica_set.name]))
        sizes[replica_set.name] -= going
        spare -= going
    return sizes


def _size(replica_set: Unstructured) -> int:
    size: int = replica_set["spec"]["replicas"]
    return size


def _available(replica_set: Unstructured) -> int:
    available: int = replica_set.status.get("availableReplicas") or 0
    return available
