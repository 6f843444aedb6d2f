"""Kubernetes' protobuf bodies, read only: Go clients and `kubectl create` send built-in kinds in this form.

Answers are never protobuf: those clients name JSON as their second choice. Pure.
"""

from __future__ import annotations

import base64
import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any

import msgspec

PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
# A varint has at most ten bytes.
_LAST_SHIFT = 63
_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_RUNTIME = "k8s.io.apimachinery.pkg.runtime"
_EXTENSIONS = "k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1"
# The packages of groups whose path is not k8s.io.api.GROUP.VERSION.
_PACKAGES = {
    "": "k8s.io.api.core",
    "apiextensions.k8s.io": "k8s.io.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube-aggregator.pkg.apis.apiregistration",
}

Field = tuple[str, str, str]
Message = dict[str, Any]


class MalformedProtobuf(ValueError):
    """The bytes are no protobuf object of a known kind."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in an enveloped body. Raises MalformedProtobuf."""
    if not body.startswith(_MAGIC):
        raise MalformedProtobuf(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = {number: value for number, _, value in _fields(body[len(_MAGIC) :])}
        type_meta = {number: value.decode() for number, _, value in _fields(envelope.get(1, b""))}
        api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
        obj = _message(_message_name(api_version, kind), envelope.get(2, b""))
    except (KeyError, IndexError, TypeError, ValueError, struct.error, AttributeError) as error:
        raise MalformedProtobuf(f"cannot decode a protobuf object: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind.endswith("Options") and kind in _layout(_META):
        return f"{_META}.{kind}"
    package = _PACKAGES.get(group) or f"k8s.io.api.{group.split('.')[0]}"
    return f"{package}.{version}.{kind}"


@cache
def _archive() -> zipfile.ZipFile:
    # Read through one open file for the life of the process.
    return zipfile.ZipFile(io.BytesIO(resources.files(__package__).joinpath("messages.zip").read_bytes()))


@cache
def _layout(package: str) -> dict[str, dict[int, Field]]:
    raw: dict[str, dict[str, list[str]]] = msgspec.json.decode(_archive().read(f"{package}.json"))
    return {
        message: {int(number): (name, kind, of) for number, (name, kind, of) in fields.items()}
        for message, fields in raw.items()
    }


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value): an int for varints, bytes for everything else."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire = tag & 7
        value: Any
        if wire == 0:
            value, position = _varint(data, position)
        elif wire == 2:
            size, position = _varint(data, position)
            value = data[position : position + size]
            if len(value) < size:
                raise MalformedProtobuf("unexpected EOF")
            position += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = data[position : position + size]
            position += size
        else:
            raise MalformedProtobuf(f"illegal wire type {wire}")
        yield tag >> 3, wire, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > _LAST_SHIFT:
            raise MalformedProtobuf("proto: integer overflow")


def _message(name: str, data: bytes) -> Any:
    special = _SPECIAL.get(name)
    if special is not None:
        return special(data)
    package, _, message = name.rpartition(".")
    layout = _layout(package)[message]
    obj: Message = {}
    for number, _, value in _fields(data):
        field = layout.get(number)
        if field is not None:
            _take(obj, field, value)
    return obj


def _take(obj: Message, field: Field, value: Any) -> None:
    name, kind, of = field
    if kind == "inline":
        obj.update(_message(of, value))
    elif kind == "many":
        obj.setdefault(name, []).append(_value(of, value))
    elif kind == "map":
        entry = {number: inner for number, _, inner in _fields(value)}
        obj.setdefault(name, {})[entry.get(1, b"").decode()] = _value(of, entry.get(2, b""))
    else:
        obj[name] = _value(of, value)


def _value(of: str, value: Any) -> Any:
    if of == "string":
        return value.decode()
    if of == "bool":
        return bool(value)
    if of in ("int32", "int64"):
        return value - (1 << 64) if value >= 1 << 63 else value
    if of == "bytes":
        return base64.b64encode(value).decode()
    if of == "double":
        return struct.unpack("<d", value)[0]
    return _message(of, value)


def _numbers(data: bytes) -> dict[int, Any]:
    return {number: value for number, _, value in _fields(data)}


def _time(data: bytes) -> str | None:
    """metav1.Time: whole seconds; an empty message is the zero time."""
    if not data:
        return None
    fields = _numbers(data)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=_value("int64", fields.get(1, 0)))
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(data: bytes) -> str | None:
    if not data:
        return None
    fields = _numbers(data)
    seconds, nanoseconds = _value("int64", fields.get(1, 0)), _value("int64", fields.get(2, 0))
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _int_or_string(data: bytes) -> int | str:
    fields = _numbers(data)
    if fields.get(1, 0):
        return str(_value("string", fields.get(3, b"")))
    return int(_value("int64", fields.get(2, 0)))


def _raw_json(data: bytes) -> Any:
    raw = _numbers(data).get(1, b"")
    return msgspec.json.decode(raw) if raw else None


def _items(data: bytes) -> list[str]:
    """A named list of strings."""
    return [value.decode() for number, _, value in _fields(data) if number == 1]


def _schema(data: bytes) -> dict[str, Any]:
    """A schema inside of `items` or `additionalProperties`, where no OpenAPI schema says which zeros mean nothing."""
    found: dict[str, Any] = _message(f"{_EXTENSIONS}.JSONSchemaProps", data)
    _drop_zeros(found)
    return found


def _drop_zeros(schema: dict[str, Any]) -> None:
    # The one whose false differs from nothing.
    kept = "x-kubernetes-preserve-unknown-fields"
    for key in [key for key, value in schema.items() if value is False or value == ""]:
        if key not in (kept, "default", "example"):
            del schema[key]
    for parts in ("properties", "definitions", "patternProperties"):
        for inner in (schema.get(parts) or {}).values():
            _drop_zeros(inner)
    for parts in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(parts) or ():
            _drop_zeros(inner)
    if "not" in schema:
        _drop_zeros(schema["not"])


def _schema_or_bool(data: bytes) -> Any:
    fields = _numbers(data)
    return _schema(fields[2]) if 2 in fields else bool(fields.get(1, 0))


def _schema_or_array(data: bytes) -> Any:
    found = [(number, _schema(value)) for number, _, value in _fields(data)]
    single = next((value for number, value in found if number == 1), None)
    return single if single is not None else [value for number, value in found if number == 2]


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": _raw_json,
    f"{_RUNTIME}.RawExtension": _raw_json,
    f"{_EXTENSIONS}.JSON": _raw_json,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_array,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda data: _value("string", _numbers(data).get(1, b"")),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.api.authentication.v1.ExtraValue": _items,
    "k8s.io.api.authorization.v1.ExtraValue": _items,
    "k8s.io.api.certificates.v1.ExtraValue": _items,
}
