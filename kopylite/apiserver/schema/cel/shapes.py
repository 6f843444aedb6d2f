"""What CEL expressions may see of values: static shapes from schemas, and values in the evaluator's form. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kopylite.apiserver.schema.node import SchemaNode

_RESERVED_TEXT = (
    "true false null in as break const continue else for function if import let loop package namespace return var "
    "void while"
)
_RESERVED = frozenset(_RESERVED_TEXT.split())
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_SCALARS = {"boolean": "bool", "number": "double", "integer": "int"}
_STRINGS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_DURATION_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}

_SPOKEN = (
    (("ns", "nano"), 1e-9), (("us", "µs", "micros", "micro"), 1e-6), (("ms", "millis", "milli"), 1e-3),
    (("s", "sec", "second"), 1.0), (("m", "mi", "min", "minute"), 60.0), (("h", "hr", "hour"), 3600.0),
    (("d", "day"), 86400.0), (("w", "wk", "week"), 604800.0),
)  # fmt: skip


# A size that nobody bounds.
UNBOUNDED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """The static type of an expression.

    Attributes:
        kind: object, map, list, string, bytes, duration, timestamp, bool, double, int, or dyn (nothing is known).
        fields: of an object: by the name that expressions use, the real name and the shape.
        element: of a list's elements or a map's values.
        list_type: of a list: "set" and "map" ones compare and add without regard to order.
        keys: of a list of type map.
        most: the greatest number of characters or elements; 0 for what has one size only.
        least_bytes: the shortest JSON of such a value.
    """

    kind: str
    fields: Mapping[str, tuple[str, Shape]] = field(default_factory=dict)
    element: Shape | None = None
    list_type: str = "atomic"
    keys: tuple[str, ...] = ()
    most: int = UNBOUNDED
    least_bytes: int = 2


# What fits into a request as one text (MaxRequestSizeBytes less its quotes), and the forms of fixed length.
_MAX_TEXT = 3 * 1024 * 1024 - 2
_FIXED = {"duration": 32, "date": 12, "date-time": 32}
_LEAST = {"duration": 3, "date": 12, "date-time": 21}
DYN = Shape("dyn")
_STRING = Shape("string", most=_MAX_TEXT)


def shape_of(schema: SchemaNode, *, root: bool = False, within: tuple[SchemaNode, ...] = ()) -> Shape | None:
    """The shape of values of a schema; None if expressions must not see them (their schema says too little).

    Args:
        within: the schemas around it: of what contains itself, the inner one is not seen.
        root: the schema is that of a whole object: apiVersion, kind, metadata.name and metadata.generateName are
            there even if undeclared, and nothing else of metadata.
    """
    if schema.int_or_string:
        return replace(DYN, most=_text_size(schema), least_bytes=1)
    if any(schema is one for one in within):
        return None
    kind, within = schema.type, (*within, schema)
    if kind == "array":
        items = schema.items
        element = None if items is None else shape_of(items, root=items.embedded, within=within)
        if element is None:
            return None
        most = _limit(schema, "maxItems", _MAX_TEXT // (element.least_bytes + 1))
        return Shape("list", element=element, list_type=schema.list_type, keys=schema.list_map_keys, most=most)
    if kind == "object":
        if schema.additional is not None:
            element = shape_of(schema.additional, root=schema.additional.embedded, within=within)
            if element is None:
                return None
            return Shape(
                "map", element=element, most=_limit(schema, "maxProperties", _MAX_TEXT // (element.least_bytes + 6))
            )
        return _object(schema, root, within)
    if kind == "string":
        return Shape(
            _STRINGS.get(schema.format, "string"), most=_text_size(schema), least_bytes=_LEAST.get(schema.format, 2)
        )
    return Shape(_SCALARS[kind], most=0, least_bytes=4 if kind == "boolean" else 1) if kind in _SCALARS else None


def _limit(schema: SchemaNode, name: str, otherwise: int) -> int:
    given = schema.raw.get(name)
    return otherwise if given is None else max(0, int(given))


def _text_size(schema: SchemaNode) -> int:
    """The greatest number of characters, as upstream estimates it: a code point may be four of them."""
    if schema.format in _FIXED and not schema.int_or_string:
        return _FIXED[schema.format]
    if schema.raw.get("maxLength") is not None:
        given = max(0, int(schema.raw["maxLength"]))
        return given if schema.format == "byte" else given * 4
    texts = [len(text.encode()) for text in schema.raw.get("enum") or () if isinstance(text, str)]
    return max(texts) if schema.raw.get("enum") and not schema.int_or_string else _MAX_TEXT


def _object(schema: SchemaNode, root: bool, within: tuple[SchemaNode, ...]) -> Shape:
    found = {}
    # An object takes at least what its required fields take.
    least = 2
    for name, inner in schema.properties.items():
        shape = shape_of(inner, root=inner.embedded, within=within)
        escaped = escape(name)
        if shape is not None and escaped is not None:
            found[escaped] = (name, shape)
        if shape is not None and name in schema.required and inner.raw.get("default") is None:
            least += len(name) + shape.least_bytes + 4
    if root:
        metadata = Shape("object", {"name": ("name", _STRING), "generateName": ("generateName", _STRING)}, most=0)
        found |= {"apiVersion": ("apiVersion", _STRING), "kind": ("kind", _STRING), "metadata": ("metadata", metadata)}
    return Shape("object", found, most=0, least_bytes=least)


def escape(name: str) -> str | None:
    """The name by which expressions reach a field; None if there is none."""
    if name in _RESERVED:
        return f"__{name}__"
    for plain, escaped in _ESCAPES:
        name = name.replace(plain, escaped)
    return name if _IDENTIFIER.fullmatch(name) else None


def to_cel(value: Any, shape: Shape | None) -> Any:
    """Decoded JSON in the evaluator's types: what the schema calls a number is a double, a date-time a timestamp."""
    if shape is None or value is None:
        return value
    if isinstance(value, dict):
        if shape.kind == "map":
            return {key: to_cel(inner, shape.element) for key, inner in value.items()}
        shapes = dict(shape.fields.values())
        # A null field is one that is not there, for has() too.
        return {key: to_cel(inner, shapes.get(key)) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [to_cel(inner, shape.element) for inner in value]
    return _scalar(value, shape.kind)


def _scalar(value: Any, kind: str) -> Any:
    if kind == "double" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        if kind == "bytes":
            return _bytes(value)
        if kind == "duration":
            return parse_duration(value) or value
        if kind == "timestamp":
            return parse_time(value) or value
    return value


def _bytes(text: str) -> bytes | str:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text


def parse_duration(text: str) -> timedelta | None:
    """A duration in Go's notation (`1h30m`, `-1.5s`) or in words (`2 minutes`); None if it is none."""
    match = re.fullmatch(r"([-+]?)((?:(?:\d++(?:\.\d*+)?|\.\d++)(?:ns|us|µs|μs|ms|s|m|h))++|0)", text)
    if match is None:
        return _spoken_duration(text)
    parts = re.findall(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|μs|ms|s|m|h)", match[2])
    seconds = sum(float(number) * _DURATION_UNITS[unit] for number, unit in parts)
    return timedelta(seconds=-seconds if match[1] == "-" else seconds)


def _spoken_duration(text: str) -> timedelta | None:
    found = re.findall(r"(?<!\d)(\d++)\s*+([A-Za-zµ]++)", text)
    units = [
        next((s for names, s in _SPOKEN if unit.lower() in names or unit.lower().startswith(names[-1])), None)
        for _, unit in found
    ]
    known = [float(number) * unit for (number, _), unit in zip(found, units, strict=True) if unit is not None]
    return timedelta(seconds=sum(known)) if known else None


def parse_time(text: str) -> datetime | None:
    """An RFC 3339 date or time; None if it is none."""
    try:
        parsed = datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
