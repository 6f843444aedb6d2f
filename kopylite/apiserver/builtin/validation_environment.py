"""Validation of environment variables of containers, and of references to fields of a pod. Pure."""

from __future__ import annotations

from collections.abc import Collection

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import invalid, not_found, required, unsupported
from kopylite.apiserver.schema.names import label_key_errors, subdomain_errors
from kopylite.objects.amounts import parse_quantity

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
ENVIRONMENT_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
     "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
)  # fmt: skip
VOLUME_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_KNOWN_FIELDS = (ENVIRONMENT_FIELDS | VOLUME_FIELDS
                 | {"spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"})  # fmt: skip
_AMOUNTS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_NAME_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def variable_name(field: str, name: str) -> Errors:
    if name and ("=" in name or not all(" " <= c <= "~" for c in name)):
        return [invalid(field, name, _NAME_TEXT)]
    return []


def environment(variables: Collection[Object], path: str) -> Errors:
    found: Errors = []
    for index, variable in enumerate(variables):
        where = f"{path}[{index}]"
        found += [] if variable["name"] else [required(f"{where}.name")]
        found += variable_name(f"{where}.name", variable["name"])
        if variable.get("valueFrom") is not None:
            found += _value_from(variable, variable["valueFrom"], f"{where}.valueFrom")
    return found


def _value_from(variable: Object, source: Object, path: str) -> Errors:
    found: Errors = []
    given = [name for name in _SOURCES if name in source]
    if "fieldRef" in source:
        found += field_ref(source["fieldRef"], f"{path}.fieldRef", ENVIRONMENT_FIELDS)
    if "resourceFieldRef" in source:
        found += resource_field_ref(source["resourceFieldRef"], f"{path}.resourceFieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            found += _key_ref(source[name], f"{path}.{name}")
    if "fileKeyRef" in source:
        found += _file_ref(source["fileKeyRef"], f"{path}.fileKeyRef")
    if not given:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        found.append(invalid(path, "", text))
    elif variable.get("value"):
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(invalid(path, "", "may not have more than one field specified at a time"))
    return found


def _key_ref(reference: Object, path: str) -> Errors:
    name, key = reference.get("name", ""), reference.get("key", "")
    found = checks.texts(f"{path}.name", name, subdomain_errors(name))
    return found + (checks.config_key(f"{path}.key", key) if key else [required(f"{path}.key")])


def _file_ref(reference: Object, path: str) -> Errors:
    key, name = reference.get("key", ""), reference.get("path", "")
    found: Errors = [] if key else [required(f"{path}.key")]
    found += variable_name(f"{path}.key", key)
    found += checks.label_name(f"{path}.volumeName", reference.get("volumeName", ""))
    return found + (checks.no_backsteps(f"{path}.path", name) if name else [required(f"{path}.path")])


def file_ref_volumes(container: Object, path: str, volumes: Collection[Object]) -> Errors:
    """Variables from files: their volumes are emptyDir of this pod."""
    found: Errors = []
    for index, variable in enumerate(container.get("env") or ()):
        reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if reference is None:
            continue
        where, name = f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName", reference.get("volumeName", "")
        volume = next((one for one in volumes if one["name"] == name), None)
        if volume is None:
            found.append(not_found(where, name))
        elif "emptyDir" not in volume:
            found.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return found


def environment_sources(sources: Collection[Object], path: str) -> Errors:
    found: Errors = []
    for index, source in enumerate(sources):
        found += variable_name(f"{path}[{index}].prefix", source.get("prefix", ""))
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in given:
            reference = source[name].get("name", "")
            where = f"{path}[{index}].{name}.name"
            found += checks.subdomain(where, reference) if reference else [required(where)]
        if not given:
            found.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(invalid(path, "", "may not have more than one field specified at a time"))
    return found


def field_ref(reference: Object, path: str, allowed: Collection[str]) -> Errors:
    """A field of the pod itself."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    for name, value in (("apiVersion", version), ("fieldPath", field)):
        if not value:
            return [required(f"{path}.{name}")]
    head, bracket, key = field.removesuffix("']").partition("['")
    subscript = bool(bracket and head and field.endswith("']"))
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscript and head not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    elif not subscript and field not in _KNOWN_FIELDS:
        problem = f"field label not supported: {field}"
    if problem:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
    if subscript:
        key = key.lower() if head == "metadata.annotations" else key
        return checks.texts(path, key, label_key_errors(key))
    field = "spec.nodeName" if field == "spec.host" else field
    return [] if field in allowed else [unsupported(f"{path}.fieldPath", field, sorted(allowed))]


def resource_field_ref(reference: Object, path: str, *, volume: bool = False) -> Errors:
    """An amount of a container; `volume`: the container must be named."""
    name, divisor = reference.get("resource", ""), reference.get("divisor") or "0"
    huge = name.startswith(("requests.hugepages-", "limits.hugepages-"))
    found: Errors = []
    if volume and not reference.get("containerName"):
        found.append(required(f"{path}.containerName"))
    elif not name:
        found.append(required(f"{path}.resource"))
    elif name not in _AMOUNTS and not huge:
        found.append(unsupported(f"{path}.resource", name, _AMOUNTS))
    if parse_quantity(divisor).value == 0 or not (name in _AMOUNTS or huge):
        return found
    kind = "hugepages" if huge else name.partition(".")[2]
    sizes = ("1m", "1") if kind == "cpu" else _SIZES
    if divisor not in sizes:
        listed = " and ".join(sizes) if kind == "cpu" else ", ".join(sizes)
        shown = "local ephemeral storage" if kind == "ephemeral-storage" else kind
        text = f"only divisor's values {listed} are supported with the {shown} resource"
        found.append(invalid(f"{path}.divisor", name, text))
    return found
