"""Lease: the object of coordination.k8s.io that says who leads, as it is read and as it is written.

Its times are for people: nobody here compares them with a clock, so clocks may be wrong by any amount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kopylite.boundary import json_object
from kopylite.errors import StreamBroken
from kopylite.objects import Kind

LEASE = Kind("coordination.k8s.io/v1", "Lease", plural="leases", namespaced=True)

# Of a Lease that was given back; client-go writes the same, and its validation wants at least 1.
RELEASED_SECONDS = 1
# leaseTransitions is an int32.
MOST_TRANSITIONS = 2**31 - 1

_Record = tuple[str, int, str, str, int]


@dataclass(frozen=True, slots=True)
class Lease:
    """One state of the object.

    Attributes:
        holder: the identity of who leads; "" for nobody.
        duration: seconds that it is held from a renewal on; 0: it doesn't say.
        acquired, renewed: times, as text.
        transitions: how often its holder has changed.
        wire: the whole object. What is in it and no part of the above (labels, strategy, preferredHolder) is kept.
    """

    holder: str
    duration: int
    acquired: str
    renewed: str
    transitions: int
    wire: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def record(self) -> _Record:
        """What makes two states differ: labels and such do not count, so whoever writes those renews nothing."""
        return self.holder, self.duration, self.acquired, self.renewed, self.transitions

    @property
    def version(self) -> str:
        """Its resourceVersion; "" of one that does not exist."""
        return str(self.wire["metadata"].get("resourceVersion") or "")

    @property
    def released(self) -> bool:
        """It was given back by its holder, who has stopped. A holder that somebody else took out looks otherwise."""
        return not self.holder and 0 < self.duration <= RELEASED_SECONDS and self.acquired == self.renewed

    @property
    def unused(self) -> bool:
        """It was never held: it came with the manifests of an operator."""
        return not self.holder and not self.duration

    @classmethod
    def of(cls, body: bytes) -> Lease:
        """As the server tells it.

        Raises:
            StreamBroken: it is no Lease that could be written back.
        """
        wire = json_object(body)
        metadata, spec = wire.get("metadata"), {} if wire.get("spec") is None else wire["spec"]
        if not isinstance(metadata, dict) or not metadata.get("resourceVersion") or not isinstance(spec, dict):
            raise StreamBroken("the answer is no Lease")
        return cls(
            _text(spec.get("holderIdentity")),
            _number(spec.get("leaseDurationSeconds")),
            _text(spec.get("acquireTime")),
            _text(spec.get("renewTime")),
            _number(spec.get("leaseTransitions")),
            wire,
        )

    def labelled(self, labels: Mapping[str, str]) -> Lease:
        """The same with these labels, too."""
        metadata = self.wire["metadata"]
        had = metadata.get("labels")
        if not labels or (isinstance(had, dict) and labels.items() <= had.items()):
            return self
        metadata = {**metadata, "labels": {**(had if isinstance(had, dict) else {}), **labels}}
        return replace(self, wire={**self.wire, "metadata": metadata})

    def written(self, *, holder: str, duration: int, acquired: str, renewed: str, transitions: int) -> Lease:
        """The state that a write makes of it, if it is still as it was read: the resourceVersion sees to that."""
        spec = {
            **(self.wire.get("spec") or {}),
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": min(transitions, MOST_TRANSITIONS),
        }
        return Lease(holder, duration, acquired, renewed, spec["leaseTransitions"], {**self.wire, "spec": spec})


def absent(name: str, namespace: str) -> Lease:
    """A Lease that does not exist, to be written: it has no resourceVersion, so it is created."""
    metadata = {"name": name, "namespace": namespace}
    return Lease("", 0, "", "", 0, {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata})


def micro_time(moment: datetime) -> str:
    """A metav1.MicroTime: always six digits, or the server would answer with another text than it was sent."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
