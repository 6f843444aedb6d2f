"""Validation of pod volumes, persistent volumes and claims. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.quantities import parse_quantity
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_BAD_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
# The volume sources whose own fields are checked, in the server's order.
_ORDER = ("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
          "glusterfs", "flocker", "rbd", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume", "configMap",
          "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos",
          "projected", "scaleIO", "csi", "ephemeral", "image", "persistentVolumeClaim", "cinder")  # fmt: skip


def volumes(listed: Any, path: str) -> Errors:
    """The volumes of a pod."""
    found: Errors = []
    names: set[str] = set()
    for index, volume in enumerate(listed or ()):
        where = f"{path}[{index}]"
        found += _source(volume, where)
        name = volume["name"]
        if not name:
            found.append(required(f"{where}.name"))
        else:
            wrong = label_errors(name)
            found += checks.texts(f"{where}.name", name, wrong)
            if not wrong and name in names:
                found.append(duplicate(f"{where}.name", name))
            names.add(name)
    return found


def _source(volume: Object, path: str) -> Errors:
    found: Errors = []
    seen = 0
    for kind in _ORDER:
        if kind not in volume:
            continue
        if seen:
            found.append(forbidden(f"{path}.{kind}", "may not specify more than 1 volume type"))
        elif kind in _CHECKS:
            found += _CHECKS[kind](volume[kind], f"{path}.{kind}")
        seen += 1
    return found


def _host_path(source: Object, path: str) -> Errors:
    if not source["path"]:
        return [required(f"{path}.path")]
    found: Errors = []
    if ".." in source["path"].split("/"):
        found.append(invalid(f"{path}.path", source["path"], "must not contain '..'"))
    kinds = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
    kind = source.get("type") or ""
    return found if kind in kinds else [*found, unsupported(f"{path}.type", kind, kinds)]


def _items(source: Object, path: str) -> Errors:
    found: Errors = []
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        found.append(invalid(f"{path}.defaultMode", mode, _BAD_MODE))
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        if not item.get("key"):
            found.append(required(f"{where}.key"))
        if not item.get("path"):
            found.append(required(f"{where}.path"))
        elif item["path"].startswith("/"):
            found.append(invalid(f"{where}.path", item["path"], "must be a relative path"))
        elif ".." in item["path"].split("/"):
            found.append(invalid(f"{where}.path", item["path"], "must not contain '..'"))
        if item.get("mode") is not None and not 0 <= item["mode"] <= 0o777:
            found.append(invalid(f"{where}.mode", item["mode"], _BAD_MODE))
    return found


def _secret(source: Object, path: str) -> Errors:
    found: Errors = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return found + _items(source, path)


def _config_map(source: Object, path: str) -> Errors:
    found: Errors = [] if source.get("name") else [required(f"{path}.name")]
    return found + _items(source, path)


def _claim(source: Object, path: str) -> Errors:
    return [] if source["claimName"] else [required(f"{path}.claimName")]


def _nfs(source: Object, path: str) -> Errors:
    found: Errors = [] if source["server"] else [required(f"{path}.server")]
    if not source["path"]:
        found.append(required(f"{path}.path"))
    elif not source["path"].startswith("/"):
        found.append(invalid(f"{path}.path", source["path"], "must be an absolute path"))
    return found


def _csi(source: Object, path: str) -> Errors:
    return [] if source["driver"] else [required(f"{path}.driver")]


def _empty_dir(source: Object, path: str) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).value < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


_CHECKS: dict[str, Callable[[Object, str], Errors]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "configMap": _config_map,
    "persistentVolumeClaim": _claim,
    "nfs": _nfs,
    "csi": _csi,
}


def _access_modes(modes: Any, path: str, missing: str) -> Errors:
    found: Errors = [] if modes else [required(path, missing)]
    found += [unsupported(path, mode, ACCESS_MODES) for mode in modes or () if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in (modes or ()) and len(modes) > 1:
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def claim_spec(spec: Object, path: str) -> Errors:
    found = checks.label_selector(spec.get("selector"), f"{path}.selector")
    found = _access_modes(spec.get("accessModes"), f"{path}.accessModes", "at least 1 access mode is required") + found
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    where = f"{path}.resources[storage]"
    if storage is None:
        found.append(required(where))
    elif parse_quantity(storage).value <= 0:
        found.append(invalid(where, storage, "must be greater than zero"))
    found += checks.subdomain(f"{path}.storageClassName", spec.get("storageClassName"))
    mode = spec.get("volumeMode")
    return found + checks.one_of(f"{path}.volumeMode", mode, ("Block", "Filesystem"))


def persistent_volume_claim(claim: Object) -> Errors:
    return claim_spec(claim["spec"], "spec")


def update_claim(claim: Object, old: Object) -> Errors:
    """Once bound, only the requested size may grow; before, the volume's name may be set too."""
    new_spec, old_spec = dict(claim["spec"]), dict(old["spec"])
    found: Errors = []
    if not old_spec.get("volumeName"):
        for spec in (new_spec, old_spec):
            spec.pop("volumeName", None)
    if old_spec.get("storageClassName") is None:
        # A claim without a class may still get one.
        new_spec.pop("storageClassName", None)
    new_size = ((new_spec.get("resources") or {}).get("requests") or {}).get("storage")
    old_size = ((old_spec.get("resources") or {}).get("requests") or {}).get("storage")
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if bound and new_size and old_size and parse_quantity(new_size).value < parse_quantity(old_size).value:
        path = "spec.resources.requests.storage"
        found.append(forbidden(path, "field can not be less than status.capacity"))
    for spec in (new_spec, old_spec):
        spec.pop("volumeAttributesClassName", None)
        if bound:
            spec["resources"] = None
    if new_spec != old_spec:
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        found.append(forbidden("spec", text))
    return found


def persistent_volume(volume: Object) -> Errors:
    spec = volume["spec"]
    found = _access_modes(spec.get("accessModes"), "spec.accessModes", "")
    capacity = spec.get("capacity")
    if not capacity:
        found.append(required("spec.capacity"))
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        found.append(unsupported("spec.capacity", capacity, ("storage",)))
    for name, text in (capacity or {}).items():
        if parse_quantity(text).value <= 0:
            found.append(invalid(f"spec.capacity[{name}]", text, "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    found += checks.one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    sources = [kind for kind in (*_ORDER, "local") if kind in spec]
    if not sources:
        found.append(required("spec", "must specify a volume type"))
    for kind in sources[1:]:
        found.append(forbidden(f"spec.{kind}", "may not specify more than 1 volume type"))
    if "hostPath" in sources and policy == "Recycle" and spec["hostPath"]["path"] == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        found.append(forbidden("spec.persistentVolumeReclaimPolicy", text))
    found += checks.subdomain("spec.storageClassName", spec.get("storageClassName"))
    return found + checks.one_of("spec.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))


def update_persistent_volume(volume: Object, old: Object) -> Errors:
    kinds = (*_ORDER, "local")
    if any(volume["spec"].get(kind) != old["spec"].get(kind) for kind in kinds):
        return [forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")]
    return checks.immutable("spec.volumeMode", volume["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
