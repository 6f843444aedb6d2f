"""Validation of persistent volume claims, and of their templates. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors
from kopylite.objects.amounts import parse_quantity

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def access_modes(modes: Any, path: str, missing: str) -> Errors:
    found: Errors = [] if modes else [required(path, missing)]
    found += [unsupported(path, mode, _ACCESS_MODES) for mode in modes or () if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in (modes or ()) and len(modes) > 1:
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def claim_spec(spec: Object, path: str) -> Errors:
    found = checks.label_selector(spec.get("selector"), f"{path}.selector")
    found = access_modes(spec.get("accessModes"), f"{path}.accessModes", "at least 1 access mode is required") + found
    storage = _size(spec)
    where = f"{path}.resources[storage]"
    if storage is None:
        found.append(required(where))
    elif parse_quantity(storage).value <= 0:
        found.append(invalid(where, storage, "must be greater than zero"))
    found += checks.subdomain(f"{path}.storageClassName", spec.get("storageClassName"))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        found.append(unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))
    found += _data_sources(spec, path)
    return found + checks.subdomain(f"{path}.volumeAttributesClassName", spec.get("volumeAttributesClassName"))


def _data_sources(spec: Object, path: str) -> Errors:
    plain, typed = spec.get("dataSource"), spec.get("dataSourceRef")
    found: Errors = []
    for field, source in (("dataSource", plain), ("dataSourceRef", typed)):
        if source is not None:
            found += _data_source(source, f"{path}.{field}")
    if plain is None or typed is None:
        return found
    if typed.get("namespace"):
        found.append(invalid(path, "dataSource", "may not be specified when dataSourceRef.namespace is specified"))
    elif any(plain.get(field) != typed.get(field) for field in ("apiGroup", "kind", "name")):
        found.append(invalid(path, "dataSource", "must match dataSourceRef"))
    return found


def _data_source(source: Object, path: str) -> Errors:
    found: Errors = [required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        found.append(invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
    found += checks.subdomain(f"{path}.apiGroup", group)
    return found + checks.optional(label_errors, f"{path}.namespace", source.get("namespace"))


def _size(spec: Object) -> str | None:
    size: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return size


def persistent_volume_claim(claim: Object) -> Errors:
    return claim_spec(claim["spec"], "spec")


def update_claim(claim: Object, old: Object) -> Errors:
    """Once bound, only the requested size may grow; before, the volume's name may be set too."""
    spec, before = dict(claim["spec"]), dict(old["spec"])
    found: Errors = []
    if not before.get("volumeName"):
        _take(spec, before, "volumeName")
    if before.get("storageClassName") is None:  # a claim without a class may still get one
        _take(spec, before, "storageClassName")
    if (claim.get("status") or {}).get("phase") == "Bound":
        _take(spec, before, "volumeAttributesClassName")
        if (spec.get("resources") or {}).get("requests"):
            _take(spec, before, "resources")
    if spec != before:
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        found.append(forbidden("spec", text))
    size, earlier = (parse_quantity(_size(one["spec"]) or "0").value for one in (claim, old))
    held = parse_quantity(((old.get("status") or {}).get("capacity") or {}).get("storage") or "0").value
    if size < earlier and size <= held:
        text = "field can not be less than status.capacity"
        found.append(forbidden("spec.resources.requests.storage", text))
    found += checks.immutable("volumeMode", claim["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
    return found


def _take(spec: Object, before: Object, field: str) -> None:
    """Leave a field out of the comparison."""
    spec.pop(field, None)
    before.pop(field, None)
