"""From a pydantic model as the user wrote it to the same model as Kubernetes writes it.

pydantic compiles every model from a *core schema*, a tree of plain dicts. `wire_schema` returns a copy of such
a tree, nested models included, in which

- a field without an alias of its own is called by its camelCase name, and its Python name is accepted on input;
- fields that the model does not know are kept instead of dropped (unless the model says `extra="forbid"`), so
  that reading, changing and writing an object loses nothing;
- computed fields are not written, since the server does not know them;
- whole floats are integers, durations are texts like "1h30m", bytes are base64, and times that are read without a zone
  are UTC, as in Kubernetes' own types; secrets are what they hide, and values of type Any follow `wirevalues`.

A model of which a value would be lost on the way is refused: see `_check_fields`.

The user's classes are not touched: the validator and serializer compiled from the copy produce and read
instances of the very same classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kopylite.errors import RegistrationError
from kopylite.objects.wireformats import (
    assume_utc,
    read_bytes,
    read_decimal,
    read_duration,
    read_naive_time,
    write_bytes,
    write_duration,
    write_naive_time,
    write_number,
    write_secret,
    write_time,
)
from kopylite.objects.wirevalues import wire_value

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
    "float": (None, write_number),
    "any": (None, wire_value),
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
        _check_fields(copy.get("model_name") or copy.get("cls_name") or _name_of(copy), copy["fields"])
    elif kind == "dataclass-args":
        for field in copy["fields"]:
            _name_field(field["name"], field)
        _check_fields(copy["dataclass_name"], {field["name"]: field for field in copy["fields"]})
    elif kind == "model":
        copy["metadata"] = {**(copy.get("metadata") or {}), _DONE: True}
    if _is_secret(copy):
        copy["serialization"] = _writer(write_secret)
    return copy if "serialization" in copy else _with_format(copy)


def _name_of(schema: dict[str, Any]) -> str:
    return getattr(schema.get("cls"), "__name__", "a typed dict")


def _is_secret(schema: dict[str, Any]) -> bool:
    """Whether pydantic would write asterisks for the value."""
    function = (schema.get("serialization") or {}).get("function")
    return getattr(function, "__module__", "") == "pydantic.types" and "secret" in getattr(function, "__name__", "")


def _writer(function: Callable[[Any], Any]) -> dict[str, Any]:
    return {"type": "function-plain", "function": function, "when_used": "json-unless-none"}


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
    if kind == "datetime":
        return _with_zone(schema)
    if kind == "generator":
        raise RegistrationError("a field of type Iterable, Iterator or Generator can be read only once: make it a list")
    if kind == "enum" and any(isinstance(member.value, float) for member in schema["members"]):
        return {**schema, "serialization": _writer(lambda member: write_number(getattr(member, "value", member)))}
    if kind not in _FORMATS:
        return schema
    read, write = _FORMATS[kind]
    if read is None:
        return {**schema, "serialization": _writer(write)}
    function = {"type": "no-info", "function": read}
    return {"type": "function-before", "function": function, "schema": schema, "serialization": _writer(write)}


def _with_zone(schema: dict[str, Any]) -> dict[str, Any]:
    """On the wire a time has a zone; in Python it has one too, unless the field is declared without."""
    naive = schema.get("tz_constraint") == "naive"
    free = {key: value for key, value in schema.items() if key != "tz_constraint"} if naive else schema
    function = {"type": "no-info", "function": read_naive_time if naive else assume_utc}
    return {
        "type": "json-or-python",
        "json_schema": {"type": "function-after", "function": function, "schema": free},
        "python_schema": schema,
        "serialization": _writer(write_naive_time if naive else write_time),
    }


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


def _check_fields(owner: str, fields: dict[str, dict[str, Any]]) -> None:
    """Refuse a model of which a value would be lost: one that is written where it is not read, or not written at all,
    and two that are written or read under one name.

    Raises:
        RegistrationError: naming the fields.
    """
    seen: dict[str, str] = {}
    for name, field in fields.items():
        if field.get("type") not in _FIELD_TYPES:
            continue
        read, written = _names_read(name, field), field.get("serialization_alias", name)
        if field.get("serialization_exclude"):
            raise RegistrationError(
                f"{owner}.{name} is read and, with exclude=True, never written: what an object holds there would be "
                "lost at the next update; use a PrivateAttr for what is not part of the object"
            )
        if not read or read[0] != written:
            found = " or ".join(map(repr, read)) or "a part of another"
            raise RegistrationError(
                f"{owner}.{name} is written as {written!r} and read as {found}: what is written would not be read "
                f"back; say alias={read[0] if read else written!r}, or the same name on both sides"
            )
        for wire in dict.fromkeys(read):
            other = seen.setdefault(wire, name)
            if other != name:
                raise RegistrationError(
                    f"{owner}.{other} and {owner}.{name} are both called {wire!r} on the wire: one of them would be "
                    "lost; give one an alias"
                )


def _names_read(name: str, field: dict[str, Any]) -> list[str]:
    """The names under which a field is looked for; a way into another field (AliasPath) is none."""
    alias = field.get("validation_alias")
    if alias is None:
        return [name]
    if isinstance(alias, str):
        return [alias]
    choices = alias if alias and isinstance(alias[0], list) else [alias]
    return [path[0] for path in choices if len(path) == 1 and isinstance(path[0], str)]
