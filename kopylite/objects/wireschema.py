"""From a pydantic model as the user wrote it to the same model as Kubernetes writes it.

pydantic compiles every model from a *core schema*, a tree of plain dicts. `wire_schema` returns a copy of such
a tree, nested models included, in which

- a field without an alias of its own is called by its camelCase name, and its Python name is accepted on input;
- fields that the model does not know are kept instead of dropped (unless the model says `extra="forbid"`), so
  that reading, changing and writing an object loses nothing;
- computed fields are not written, since the server does not know them;
- whole floats are integers, durations are texts like "1h30m", bytes are base64 and times without a zone are UTC,
  as in Kubernetes' own types.

The user's classes are not touched: the validator and serializer compiled from the copy produce and read
instances of the very same classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kopylite.objects.wireformats import (
    read_bytes,
    read_decimal,
    read_duration,
    write_bytes,
    write_duration,
    write_number,
    write_time,
)

# Parts of a core schema that hold data or functions, not schemas.
_OPAQUE = frozenset(
    {"metadata", "default", "default_factory", "expected", "members", "cls", "ref", "function", "config"}
)
# Parts that map names to schemas.
_MAPS = frozenset({"fields", "choices"})
_FIELD_TYPES = frozenset({"model-field", "typed-dict-field", "dataclass-field"})
# Marks a model that is in wire form already, such as one of an ApiModel within another model.
_DONE = "kopylite_wire_form"
_ALIASES = ("validation_alias", "serialization_alias")
# How a type is read from JSON (None: pydantic's own way) and written to it.
_FORMATS: dict[str, tuple[Callable[[Any], Any] | None, Callable[[Any], Any]]] = {
    "bytes": (read_bytes, write_bytes),
    "timedelta": (read_duration, write_duration),
    "datetime": (None, write_time),
    "float": (None, write_number),
}


def camel(name: str) -> str:
    """The wire name of a Python field name: `ready_replicas` is readyReplicas, `from_` is from."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def wire_schema(schema: Any, *, keep_all: bool = False) -> Any:
    """A copy of a core schema with wire names and with unknown fields kept.

    Args:
        schema: a finished core schema, or a part of one.
        keep_all: keep unknown fields also where a model says `extra="forbid"`.
    """
    if isinstance(schema, list):
        return [wire_schema(part, keep_all=keep_all) for part in schema]
    if isinstance(schema, tuple):
        return tuple(wire_schema(part, keep_all=keep_all) for part in schema)
    if not isinstance(schema, dict):
        return schema
    if (schema.get("metadata") or {}).get(_DONE):
        return schema
    copy = {key: _wire_part(key, part, keep_all) for key, part in schema.items()}
    kind = copy.get("type")
    if kind in ("model", "typed-dict") and not copy.get("root_model"):
        _keep_unknown(copy, keep_all)
    if kind in ("model-fields", "typed-dict"):
        copy["computed_fields"] = []
        for name, field in copy["fields"].items():
            _name_field(name, field)
    elif kind == "dataclass-args":
        for field in copy["fields"]:
            _name_field(field["name"], field)
    elif kind == "model":
        copy["metadata"] = {**(copy.get("metadata") or {}), _DONE: True}
    return copy if "serialization" in copy else _with_format(copy)


def _wire_part(key: str, part: Any, keep_all: bool) -> Any:
    if key in _OPAQUE:
        return part
    if key in _MAPS and isinstance(part, dict):
        # The keys are the user's names: a field may well be called "type" or "default".
        return {name: wire_schema(inner, keep_all=keep_all) for name, inner in part.items()}
    return wire_schema(part, keep_all=keep_all)


def _in_order(value: Any, dump: Callable[[Any], list[Any]]) -> list[Any]:
    """A set's items, sorted: else each process would write them in another order, and each write be a change."""
    items = dump(value)
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=str)


def _with_format(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type that Kubernetes writes in its own way; any other schema as it is."""
    kind = schema.get("type")
    if kind == "decimal":
        text = {"type": "function-before", "function": {"type": "no-info", "function": read_decimal}, "schema": schema}
        return {"type": "json-or-python", "json_schema": text, "python_schema": schema}
    if kind in ("set", "frozenset"):
        in_order = {"type": "function-wrap", "function": _in_order, "when_used": "json-unless-none"}
        return {**schema, "serialization": in_order}
    if kind not in _FORMATS:
        return schema
    read, write = _FORMATS[kind]
    serialization = {"type": "function-plain", "function": write, "when_used": "json-unless-none"}
    if read is None:
        return {**schema, "serialization": serialization}
    function = {"type": "no-info", "function": read}
    return {"type": "function-before", "function": function, "schema": schema, "serialization": serialization}


def _keep_unknown(schema: dict[str, Any], keep_all: bool) -> None:
    config = schema.get("config") or {}
    fields = schema
    # Validators around the fields (before, after, wrap) nest them one or more levels down.
    while fields.get("type") not in ("model-fields", "typed-dict") and isinstance(fields.get("schema"), dict):
        fields = fields["schema"]
    if not keep_all and "forbid" in (config.get("extra_fields_behavior"), fields.get("extra_behavior")):
        return
    # The validator reads the field set's own setting, the serializer of a model reads the model's.
    fields["extra_behavior"] = "allow"
    schema["config"] = {**config, "extra_fields_behavior": "allow"}


def _name_field(name: str, field: dict[str, Any]) -> None:
    if field.get("type") in _FIELD_TYPES and not any(alias in field for alias in _ALIASES):
        wire_name = camel(name)
        if wire_name != name:
            field["validation_alias"] = [[wire_name], [name]]
            field["serialization_alias"] = wire_name
