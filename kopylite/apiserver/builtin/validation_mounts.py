"""Validation of what containers mount: volumes as files, volumes as block devices. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import forbidden, invalid, not_found, required, unsupported

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mounts(container: Object, path: str, volumes: Mapping[str, Object]) -> Errors:
    """The mounts and devices of a container. Args: volumes: the valid ones of the pod, by name."""
    mounted = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts") or ()}
    devices = {device["name"]: device["devicePath"] for device in container.get("volumeDevices") or ()}
    found = _mounts(container, f"{path}.volumeMounts", volumes, devices)
    return found + _devices(container.get("volumeDevices") or (), f"{path}.volumeDevices", volumes, mounted)


def _mounts(container: Object, path: str, volumes: Mapping[str, Object], devices: Mapping[str, str]) -> Errors:
    found: Errors = []
    points: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where, name, point = f"{path}[{index}]", mount["name"], mount["mountPath"]
        if not name:
            found.append(required(f"{where}.name"))
        if name not in volumes:
            found.append(not_found(f"{where}.name", name))
        if not point:
            found.append(required(f"{where}.mountPath"))
        if point in points:
            found.append(invalid(f"{where}.mountPath", point, "must be unique"))
        points.add(point)
        if name in devices:
            found.append(invalid(f"{where}.name", name, "must not already exist in volumeDevices"))
        if point in devices.values():
            found.append(invalid(f"{where}.mountPath", point, "must not already exist as a path in volumeDevices"))
        found += _sub_paths(mount, path, where)
        found += _propagation(mount, container, f"{path}.mountPropagation")
        found += _recursive_read_only(mount, f"{path}.recursiveReadOnly")
    return found


def _sub_paths(mount: Object, path: str, where: str) -> Errors:
    """The server names the list of mounts, and not the mount, where a path leads out of its volume."""
    plain, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    found = checks.descending_path(f"{path}.subPath", plain)
    if plain and expression:
        text = "subPathExpr and subPath are mutually exclusive"
        found.append(invalid(f"{where}.subPathExpr", expression, text))
    return found + checks.descending_path(f"{path}.subPathExpr", expression)


def _propagation(mount: Object, container: Object, path: str) -> Errors:
    mode = mount.get("mountPropagation")
    if mode is None:
        return []
    if mode not in _PROPAGATIONS:
        return [unsupported(path, mode, _PROPAGATIONS)]
    if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        return [forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def _recursive_read_only(mount: Object, path: str) -> Errors:
    mode = mount.get("recursiveReadOnly")
    if mode in (None, "Disabled"):
        return []
    if mode not in _RECURSIVE:
        return [unsupported(path, mode, _RECURSIVE)]
    found: Errors = []
    if not mount.get("readOnly"):
        found.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        found.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return found


def _devices(
    devices: Collection[Object], path: str, volumes: Mapping[str, Object], mounted: Mapping[str, str]
) -> Errors:
    found: Errors = []
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        where, name, point = f"{path}[{index}]", device["name"], device["devicePath"]
        if not name:
            found.append(required(f"{where}.name"))
        if name in names:
            found.append(invalid(f"{where}.name", name, "must be unique"))
        if name not in volumes:
            found.append(not_found(f"{where}.name", name))
        elif not volumes[name].keys() & {"persistentVolumeClaim", "ephemeral"}:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            found.append(invalid(f"{where}.name", name, text))
        if not point:
            found.append(required(f"{where}.devicePath"))
        if point in paths:
            found.append(invalid(f"{where}.devicePath", point, "must be unique"))
        if checks.no_backsteps(path, point):
            found.append(invalid(f"{where}.devicePath", point, "can not contain backsteps ('..')"))
        else:
            paths.add(point)
        if name in mounted:
            found.append(invalid(f"{where}.name", name, "must not already exist in volumeMounts"))
        if point in mounted.values():
            found.append(invalid(f"{where}.devicePath", point, "must not already exist as a path in volumeMounts"))
        names |= {name} if name else set()
    return found
