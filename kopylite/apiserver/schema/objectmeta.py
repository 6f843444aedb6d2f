"""apiVersion, kind and metadata of objects and of objects embedded in them: their types, and pruning. Pure.

The real server decodes metadata into a Go struct; its errors show through, so they are worded here like Go's
JSON decoder words them.
"""

from __future__ import annotations

import re
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.field_errors import FieldError, at, child
from kopylite.apiserver.schema.names import dns1035_errors, label_key_errors, label_value_errors, path_segment_errors
from kopylite.apiserver.schema.node import SchemaNode

_TIME = "time"
_ANY = "any"
_OWNER = {
    "apiVersion": "string", "kind": "string", "name": "string", "uid": "types.UID", "controller": "bool",
    "blockOwnerDeletion": "bool",
}  # fmt: skip
_MANAGED = {
    "manager": "string", "operation": "v1.ManagedFieldsOperationType", "apiVersion": "string", "time": _TIME,
    "fieldsType": "string", "fieldsV1": _ANY, "subresource": "string",
}  # fmt: skip
# Go's types of the fields of ObjectMeta; a dict stands for a list of structs with these fields.
_METADATA: dict[str, str | dict[str, str]] = {
    "name": "string", "generateName": "string", "namespace": "string", "selfLink": "string", "uid": "types.UID",
    "resourceVersion": "string", "generation": "int64", "creationTimestamp": _TIME, "deletionTimestamp": _TIME,
    "deletionGracePeriodSeconds": "int64", "labels": "map[string]string", "annotations": "map[string]string",
    "finalizers": "[]string", "ownerReferences": _OWNER, "managedFields": _MANAGED,
}  # fmt: skip
_CONTAINERS: dict[str, tuple[type, str]] = {"map[string]string": (dict, "string"), "[]string": (list, "string")}
_STRUCTS = {"ownerReferences": "OwnerReference", "managedFields": "ManagedFieldsEntry"}
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


class MetadataError(Exception):
    """Metadata that Go could not decode; the text is Go's."""


def decode_metadata(metadata: Any, path: str = "metadata") -> list[str]:
    """Check the types of metadata and drop its unknown fields and nulls, in place.

    Returns:
        The paths of the unknown fields.

    Raises:
        MetadataError: a field has the wrong type.
    """
    if not isinstance(metadata, dict):
        raise MetadataError(f"json: cannot unmarshal {_go_kind(metadata)} into Go value of type v1.ObjectMeta")
    unknown: list[str] = []
    for key in list(metadata):
        declared = _METADATA.get(key)
        value = metadata[key]
        if declared is None:
            unknown.append(f"{path}.{key}")
            del metadata[key]
        elif value is None:
            del metadata[key]
        elif isinstance(declared, dict):
            unknown.extend(_decode_structs(value, declared, key, f"{path}.{key}"))
        else:
            _check(value, declared, "ObjectMeta", key)
    return unknown


def _decode_structs(values: Any, fields: dict[str, str], name: str, path: str) -> list[str]:
    struct = _STRUCTS[name]
    if not isinstance(values, list):
        raise _mismatch(values, "ObjectMeta", name, f"[]v1.{struct}")
    unknown = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise _mismatch(value, "ObjectMeta", name, f"v1.{struct}")
        for key in list(value):
            declared = fields.get(key)
            if declared is None:
                unknown.append(f"{path}[{index}].{key}")
                del value[key]
            elif value[key] is not None:
                _check(value[key], declared, struct, f"{name}.{key}")
    return unknown


def _check(value: Any, declared: str, struct: str, field: str) -> None:
    if declared == _TIME:
        _check_time(value)
        return
    outer, inner = _CONTAINERS.get(declared, (None, None))
    if outer is not None:
        if not isinstance(value, outer):
            raise _mismatch(value, struct, field, declared)
        for element in _elements(value):
            if not isinstance(element, str) and element is not None:
                raise _mismatch(element, struct, field, str(inner))
    elif declared == "int64":
        if not isinstance(value, int) or isinstance(value, bool):
            raise _mismatch(value, struct, field, declared)
    elif declared != _ANY and not isinstance(value, bool if declared == "bool" else str):
        raise _mismatch(value, struct, field, declared)


def _elements(value: Any) -> list[Any]:
    return list(value.values() if isinstance(value, dict) else value)


def _check_time(value: Any) -> None:
    if not isinstance(value, str):
        raise MetadataError(f"json: cannot unmarshal {_go_kind(value)} into Go value of type string")
    if not _TIMESTAMP.fullmatch(value):
        quoted = errors.go_quote(value)
        layout = '"2006-01-02T15:04:05Z07:00"'
        raise MetadataError(f'parsing time {quoted} as {layout}: cannot parse {quoted} as "2006"')


def _mismatch(value: Any, struct: str, field: str, declared: str) -> MetadataError:
    return MetadataError(
        f"json: cannot unmarshal {_go_kind(value)} into Go struct field {struct}.{field} of type {declared}"
    )


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    kinds: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def coerce_embedded(value: Any, schema: SchemaNode | None, path: str = "") -> list[str]:
    """Check and prune the metadata of all embedded resources below `value`, in place.

    Returns:
        The paths of unknown metadata fields, sorted.

    Raises:
        MetadataError: an embedded apiVersion, kind or metadata has the wrong type; the text names the field.
    """
    unknown: list[str] = []
    _coerce(value, schema, path, unknown)
    return sorted(unknown)


def _coerce(value: Any, schema: SchemaNode | None, path: str, unknown: list[str]) -> None:
    if schema is None or not schema.has_embedded:
        return
    if isinstance(value, dict):
        if schema.embedded:
            _coerce_embedded_resource(value, path, unknown)
        for key, inner in value.items():
            if isinstance(inner, (dict, list)):
                declared = schema.properties.get(key)
                inner_path = child(path, key) if declared is not None else at(path, key)
                _coerce(inner, declared or schema.additional, inner_path, unknown)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _coerce(inner, schema.items, at(path, index), unknown)


def _coerce_embedded_resource(value: dict[str, Any], path: str, unknown: list[str]) -> None:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            raise MetadataError(str(errors.invalid(child(path, key), value[key], "must be a string")))
    if "metadata" in value:
        where = child(path, "metadata")
        try:
            unknown.extend(decode_metadata(value["metadata"], where))
        except MetadataError as error:
            raise MetadataError(str(errors.invalid(where, value["metadata"], str(error)))) from error


def embedded_errors(value: Any, schema: SchemaNode | None, path: str = "") -> list[FieldError]:
    """What is wrong with apiVersion, kind and metadata of the embedded resources below `value`."""
    if schema is None or not schema.has_embedded:
        return []
    found: list[FieldError] = []
    if isinstance(value, dict):
        if schema.embedded:
            found.extend(_embedded_resource_errors(value, path))
        for key, inner in value.items():
            if isinstance(inner, (dict, list)):
                declared = schema.properties.get(key)
                inner_path = child(path, key) if declared is not None else at(path, key)
                found.extend(embedded_errors(inner, declared or schema.additional, inner_path))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if isinstance(inner, (dict, list)):
                found.extend(embedded_errors(inner, schema.items, at(path, index)))
    return found


def _embedded_resource_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = [errors.required(child(path, key)) for key in ("apiVersion", "kind") if key not in value]
    version, kind, metadata = value.get("apiVersion"), value.get("kind"), value.get("metadata")
    where = child(path, "apiVersion")
    if version == "":
        found.append(errors.invalid(where, version, "must not be empty"))
    elif isinstance(version, str) and version.count("/") > 1:
        found.append(errors.invalid(where, version, f"unexpected GroupVersion string: {version}"))
    where = child(path, "kind")
    if kind == "":
        found.append(errors.invalid(where, kind, "must not be empty"))
    elif isinstance(kind, str) and (problems := dns1035_errors(kind.lower())):
        text = "may have mixed case, but should otherwise match: " + ",".join(problems)
        found.append(errors.invalid(where, kind, text))
    if isinstance(metadata, dict):
        found.extend(_embedded_metadata_errors(metadata, child(path, "metadata")))
    return found


def _embedded_metadata_errors(metadata: dict[str, Any], path: str) -> list[FieldError]:
    name = metadata.get("name") or ""
    found = [errors.invalid(child(path, "name"), name, text) for text in path_segment_errors(name)]
    where = child(path, "labels")
    for key, value in (metadata.get("labels") or {}).items():
        found.extend(errors.invalid(where, key, text) for text in label_key_errors(key))
        found.extend(errors.invalid(where, value, text) for text in label_value_errors(value))
    where = child(path, "annotations")
    for key in metadata.get("annotations") or {}:
        found.extend(errors.invalid(where, key, text) for text in label_key_errors(key.lower()))
    return found
