"""Answers in Kubernetes' protobuf: objects, lists, and the frames of watches. Pure.

Go's encoder writes zero values of fields that are no pointers; a reader cannot tell them from absent ones, and here
they are left out.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from kopylite.apiserver.request.protobuf.layouts import (
    EXTENSIONS,
    MAGIC,
    META,
    RUNTIME,
    is_list,
    layout_of,
    message_name,
)
from kopylite.apiserver.request.protobuf.wire import block, double, integer

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FieldEncoder = Callable[[Any], bytes]


def encode(obj: Mapping[str, Any]) -> bytes:
    """An object with its kind, in its envelope.

    Raises:
        KeyError: the kind has no message.
    """
    return _enveloped(obj, _message(message_name(obj.get("apiVersion", ""), obj["kind"]))(obj))


def encode_list(head: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> bytes:
    """A list, whose items are taken one by one.

    Args:
        head: the list without its items.

    Raises:
        KeyError: the kind has no message.
    """
    name = message_name(head.get("apiVersion", ""), head["kind"])
    number, of = next((n, of) for n, (field, _, of) in layout_of(name).items() if field == "items")
    one = _single(number, of)
    return _enveloped(head, _message(name)(head) + b"".join([one(item) for item in items]))


def _enveloped(obj: Mapping[str, Any], content: bytes) -> bytes:
    head = block(1, obj.get("apiVersion", "").encode()) + block(2, obj["kind"].encode())
    return MAGIC + block(1, head) + block(2, content)


def encode_event(kind: str, obj: Mapping[str, Any]) -> bytes:
    """A watch event as one frame: its length in four bytes, then a WatchEvent without an envelope of its own."""
    event = block(1, kind.encode()) + block(2, block(1, encode(obj)))
    return struct.pack(">I", len(event)) + event


@cache
def _message(name: str) -> FieldEncoder:
    """The encoder of a message's content. Raises KeyError."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    layout = layout_of(name)
    if is_list(layout):
        return _texts
    # Types refer to themselves: the encoders of fields are looked up when they are needed.
    fields = [(_field(number, kind, of), json_name, kind) for number, (json_name, kind, of) in sorted(layout.items())]

    def message(obj: Any) -> bytes:
        parts = []
        for field, json_name, kind in fields:
            value = obj if kind == "inline" else obj.get(json_name)
            if value is not None:
                parts.append(field(value))
        return b"".join(parts)

    return message


def _field(number: int, kind: str, of: str) -> FieldEncoder:
    """The encoder of a field with its tag."""
    one = _single(number, of)
    if kind == "many":
        return lambda values: b"".join([one(value) for value in values])
    if kind == "map":
        value = _single(2, of)
        return lambda entries: b"".join(
            [block(number, block(1, key.encode()) + value(entries[key])) for key in sorted(entries)]
        )
    if kind == "inline":

        def inline(obj: Any) -> bytes:
            content = _message(of)(obj)
            return block(number, content) if content else b""

        return inline
    return one


def _single(number: int, of: str) -> FieldEncoder:
    if of == "string":
        return lambda value: block(number, (value or "").encode())
    if of == "bytes":
        return lambda value: block(number, base64.b64decode(value or ""))
    if of in ("int32", "int64", "bool"):
        return lambda value: integer(number, int(value or 0))
    if of == "double":
        return lambda value: double(number, value or 0)
    # A null in a list is an empty object to Go.
    return lambda value: block(number, b"" if value is None else _message(of)(value))


def _time(text: str) -> bytes:
    """Time and MicroTime: seconds and nanoseconds."""
    since = datetime.fromisoformat(text) - _EPOCH
    return integer(1, since.days * 86400 + since.seconds) + integer(2, since.microseconds * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return integer(1, 1) + integer(2, 0) + block(3, value.encode())
    return integer(1, 0) + integer(2, value) + block(3, b"")


def _raw_json(value: Any) -> bytes:
    return block(1, msgspec.json.encode(value))


def _texts(values: list[str]) -> bytes:
    return b"".join([block(1, value.encode()) for value in values])


def _schema(number: int, value: Any) -> bytes:
    return block(number, _message(f"{EXTENSIONS}.JSONSchemaProps")(value))


def _schema_or_bool(value: Any) -> bytes:
    return integer(1, value) if isinstance(value, bool) else integer(1, 1) + _schema(2, value)


def _schema_or_array(value: Any) -> bytes:
    return b"".join([_schema(2, inner) for inner in value]) if isinstance(value, list) else _schema(1, value)


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join([block(2, text.encode()) for text in value])
    return _schema(1, value)


_SPECIAL: dict[str, FieldEncoder] = {
    f"{META}.Time": _time,
    f"{META}.MicroTime": _time,
    f"{META}.FieldsV1": _raw_json,
    f"{RUNTIME}.RawExtension": _raw_json,
    f"{EXTENSIONS}.JSON": _raw_json,
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_array,
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_strings,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda value: block(1, str(value).encode()),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
}
