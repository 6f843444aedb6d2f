"""Validation of the volumes of pods, and of persistent volumes. Pure."""

from __future__ import annotations

from collections.abc import Collection

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_claims import VOLUME_MODES, access_modes
from kopylite.apiserver.builtin.validation_scheduling import node_selector
from kopylite.apiserver.builtin.validation_sources import PERSISTENT_SOURCES, persistent_source, pod_source
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, unsupported
from kopylite.objects.amounts import parse_quantity

_RECLAIMING = ("Delete", "Recycle", "Retain")


def volumes(listed: Collection[Object], path: str, pod_name: str) -> tuple[dict[str, Object], Errors]:
    """The volumes of a pod without a fault, by name, and the errors of the others."""
    valid: dict[str, Object] = {}
    found: Errors = []
    made = {f"{pod_name}-{volume['name']}" for volume in listed if pod_name and "ephemeral" in volume}
    for index, volume in enumerate(listed):
        where, name = f"{path}[{index}]", volume["name"]
        errors = pod_source(volume, where, pod_name) + checks.label_name(f"{where}.name", name)
        if name in valid:
            errors.append(duplicate(f"{where}.name", name))
        if not errors:
            valid[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim in made:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim, text))
        found += errors
    return valid, found


def persistent_volume(volume: Object) -> Errors:
    spec = volume["spec"]
    found = access_modes(spec.get("accessModes"), "spec.accessModes", "")
    found += _capacity(spec.get("capacity") or {})
    policy = spec.get("persistentVolumeReclaimPolicy")
    found += checks.one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIMING)
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is None:
        found.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
    elif affinity is not None:
        found += node_selector(affinity["required"], "spec.nodeAffinity.required", strict=True)
    found += persistent_source(spec, "spec", volume["metadata"].get("name", ""))
    if policy == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        found.append(forbidden("spec.persistentVolumeReclaimPolicy", text))
    found += checks.subdomain("spec.storageClassName", spec.get("storageClassName"))
    found += checks.one_of("spec.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    return found + _attributes_class(spec)


def _capacity(capacity: Object) -> Errors:
    path = "spec.capacity"
    found: Errors = [] if capacity else [required(path)]
    if set(capacity) != {"storage"}:
        found.append(unsupported(path, capacity or None, ("storage",)))
    for name, text in capacity.items():
        found += checks.quantity_not_negative(f"{path}[{name}]", text)
        if parse_quantity(text).value <= 0:
            found.append(invalid(f"{path}[{name}]", text, "must be greater than zero"))
    return found


def _attributes_class(spec: Object) -> Errors:
    name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name is None:
        return []
    found = checks.subdomain(path, name) if name else [required(path, "an empty string is disallowed")]
    text = "has to be specified when using volumeAttributesClassName"
    return found if spec.get("csi") is not None else [*found, required("spec.csi", text)]


def update_persistent_volume(volume: Object, old: Object) -> Errors:
    spec, before = volume["spec"], old["spec"]
    found: Errors = []
    if any(_source(spec, kind, before) != before.get(kind) for kind in PERSISTENT_SOURCES):
        text = "spec.persistentvolumesource is immutable after creation"
        found.append(forbidden("spec.persistentvolumesource", text))
    found += checks.immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    affinity, fixed = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if fixed is not None and affinity != fixed:
        text = "field is immutable, except for updating from beta label to GA"
        found.append(invalid("nodeAffinity", affinity, text))
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        text = "update from non-nil value to nil is forbidden"
        found.append(forbidden("spec.volumeAttributesClassName", text))
    return found


def _source(spec: Object, kind: str, before: Object) -> Object | None:
    """A source; that of CSI without a reference that may be added later."""
    source: Object | None = spec.get(kind)
    if kind != "csi" or source is None or "controllerExpandSecretRef" in (before.get(kind) or {}):
        return source
    return {field: value for field, value in source.items() if field != "controllerExpandSecretRef"}
