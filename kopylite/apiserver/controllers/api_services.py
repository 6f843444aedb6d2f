"""ApiServices: an APIService object for each group version that is served, as the aggregator keeps them. Read-only."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.crd.serving import STORAGE as CRD_STORAGE
from kopylite.apiserver.storage.history import StoredChange
from kopylite.apiserver.world import World
from kopylite.apiserver.writes.metadata import timestamp

STORAGE = "apiservices.apiregistration.k8s.io"
_API_VERSION = "apiregistration.k8s.io/v1"
_LABEL = "kube-aggregator.kubernetes.io/automanaged"
# groupPriorityMinimum, as kube-apiserver has it; custom groups have the last.
_GROUPS = {
    "": 18000, "events.k8s.io": 17750, "apps": 17800, "authentication.k8s.io": 17700, "authorization.k8s.io": 17600,
    "autoscaling": 17500, "batch": 17400, "certificates.k8s.io": 17300, "networking.k8s.io": 17200, "policy": 17100,
    "rbac.authorization.k8s.io": 17000, "storage.k8s.io": 16800, "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700, "scheduling.k8s.io": 16600, "coordination.k8s.io": 16500, "node.k8s.io": 16300,
    "discovery.k8s.io": 16200, "resource.k8s.io": 16200, "flowcontrol.apiserver.k8s.io": 16100,
    "storagemigration.k8s.io": 15800,
}  # fmt: skip
_CUSTOM_GROUP, _CUSTOM_VERSION = 1000, 100
# versionPriority where it is not the usual one.
_VERSIONS = {("", "v1"): 1, ("autoscaling", "v2"): 30, ("flowcontrol.apiserver.k8s.io", "v1"): 21,
             ("resource.k8s.io", "v1"): 21}  # fmt: skip
_USUAL_VERSION = 15
_OWNED_LABEL: dict[str, Any] = {"f:labels": {".": {}, f"f:{_LABEL}": {}}}


class ApiServices:
    """Keeps them in step with the registry, within the turn of the write that changes it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._generation = -1
        world.store.observers.append(self._observe)

    def publish(self) -> None:
        """Add what is served and not there, remove what no CRD serves any more."""
        registry, store = self._world.registry, self._world.store
        if self._generation == registry.generation:
            return
        self._generation = registry.generation
        served = {f"{r.version}.{r.group}": (r.group, r.version, r.custom) for r in registry}
        # The registration of APIServices does not register itself.
        served.pop("v1.apiregistration.k8s.io", None)
        present = dict(store.collection(STORAGE).records)
        for name in sorted(served.keys() - present.keys()):
            store.create(STORAGE, name, self._made(name, *served[name]), encoding_version=_API_VERSION)
        for name in sorted(present.keys() - served.keys()):
            if present[name].labels == {_LABEL: "true"}:
                store.delete(STORAGE, name, present[name])

    def _observe(self, storage: str, change: StoredChange) -> None:
        if storage == CRD_STORAGE:
            self.publish()

    def _made(self, name: str, group: str, version: str, custom: bool) -> dict[str, Any]:
        clock = self._world.clock
        now = timestamp(clock.now())
        usual = _CUSTOM_VERSION if custom else _VERSIONS.get((group, version), _USUAL_VERSION)
        spec = {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": _GROUPS.get(group, _CUSTOM_GROUP),
            "versionPriority": usual,
        }
        owned = {"f:metadata": _OWNED_LABEL, "f:spec": {f"f:{name}": {} for name in sorted(spec)}}
        owner = {"manager": "kube-apiserver", "operation": "Update", "apiVersion": _API_VERSION, "time": now,
                 "fieldsType": "FieldsV1", "fieldsV1": owned}  # fmt: skip
        return {
            "kind": "APIService",
            "apiVersion": _API_VERSION,
            "metadata": {
                "name": name,
                "uid": clock.uuid(),
                "creationTimestamp": now,
                "labels": {_LABEL: "true" if custom else "onstart"},
                "managedFields": [owner],
            },
            "spec": spec,
            "status": {
                "conditions": [
                    {"type": "Available", "status": "True", "lastTransitionTime": now, "reason": "Local",
                     "message": "Local APIServices are always available"}
                ]
            },
        }  # fmt: skip
