"""Bodies in Kubernetes' protobuf: Go clients and `kubectl create` send built-in kinds in this form. Pure."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kopylite.apiserver.request.protobuf.layouts import (
    EXTENSIONS,
    MAGIC,
    META,
    RUNTIME,
    WireField,
    is_list,
    layout_of,
    message_name,
)

# A varint has at most ten bytes.
_LAST_SHIFT = 63

Message = dict[str, Any]


class MalformedProtobuf(ValueError):
    """The bytes are no protobuf object of a known kind."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in an enveloped body. Raises MalformedProtobuf."""
    if not body.startswith(MAGIC):
        raise MalformedProtobuf(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = {number: value for number, _, value in wire_fields(body[len(MAGIC) :])}
        type_meta = {number: value.decode() for number, _, value in wire_fields(envelope.get(1, b""))}
        api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
        obj = _message(message_name(api_version, kind), envelope.get(2, b""))
    except (KeyError, IndexError, TypeError, ValueError, struct.error, AttributeError) as error:
        raise MalformedProtobuf(f"cannot decode a protobuf object: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **obj}


def wire_fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
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
    layout = layout_of(name)
    if is_list(layout):
        return [value.decode() for number, _, value in wire_fields(data) if number == 1]
    obj: Message = {}
    for number, _, value in wire_fields(data):
        field = layout.get(number)
        if field is not None:
            _take(obj, field, value)
    return obj


def _take(obj: Message, field: WireField, value: Any) -> None:
    name, kind, of = field
    if kind == "inline":
        obj.update(_message(of, value))
    elif kind == "many":
        obj.setdefault(name, []).append(_value(of, value))
    elif kind == "map":
        entry = {number: inner for number, _, inner in wire_fields(value)}
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
    return {number: value for number, _, value in wire_fields(data)}


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


def _schema(data: bytes) -> dict[str, Any]:
    """A schema inside of `items` or `additionalProperties`, where no OpenAPI schema says which zeros mean nothing."""
    found: dict[str, Any] = _message(f"{EXTENSIONS}.JSONSchemaProps", data)
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
    found = [(number, _schema(value)) for number, _, value in wire_fields(data)]
    single = next((value for number, value in found if number == 1), None)
    return single if single is not None else [value for number, value in found if number == 2]


def _schema_or_strings(data: bytes) -> Any:
    found = _numbers(data)
    return (
        _schema(found[1]) if 1 in found else [value.decode() for number, _, value in wire_fields(data) if number == 2]
    )


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    f"{META}.Time": _time,
    f"{META}.MicroTime": _micro_time,
    f"{META}.FieldsV1": _raw_json,
    f"{RUNTIME}.RawExtension": _raw_json,
    f"{EXTENSIONS}.JSON": _raw_json,
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_array,
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_strings,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda data: _value("string", _numbers(data).get(1, b"")),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
}
