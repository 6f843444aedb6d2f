"""The annotation in generated source for a field of a structural schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from kopylite.objects.jsonschema import PRESERVE_UNKNOWN
from kopylite.objects.quantity import PATTERN, USUAL_PATTERN

Schema = Mapping[str, Any]
AddClass = Callable[[Schema], str]

_BOUNDS = {"minLength": "min_length", "maxLength": "max_length", "minItems": "min_length", "maxItems": "max_length"}
_PLAIN = {"integer": "int", "number": "float", "boolean": "bool", "string": "str"}
# Said by the annotation, by the field, or by the class itself.
_SAID = frozenset({
    "type", "description", "default", "nullable", "properties", "required", "items", "additionalProperties", "title",
    "example", "externalDocs", "x-kubernetes-int-or-string", PRESERVE_UNKNOWN,
})  # fmt: skip
_LIST_KEYS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")


@dataclass(slots=True)
class FieldType:
    """An annotation in parts, as source text.

    Attributes:
        base: the type.
        notes: what stands beside it in `Annotated[...]`.
        value: the source of a value, given the value in wire form.
    """

    base: str
    notes: list[str] = field(default_factory=list)
    value: Callable[[Any], str] = repr

    def __str__(self) -> str:
        return f"Annotated[{self.base}, {', '.join(self.notes)}]" if self.notes else self.base


def field_type(schema: Schema, add_class: AddClass) -> FieldType:
    """The type for a schema. `add_class` is told of each object schema with fields, and names its class."""
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string(schema)
    if kind == "object":
        return _object(schema, add_class)
    if kind == "array":
        return _list(schema, add_class)
    if kind in _PLAIN:
        return _scalar(schema)
    return FieldType("Any", _marks(schema, {"x-kubernetes-embedded-resource"} & set(schema)))


def optional(found: FieldType) -> str:
    """The annotation that also allows None."""
    return "Any" if found.base == "Any" else f"{found} | None"


def _int_or_string(schema: Schema) -> FieldType:
    if schema.get("pattern") in (PATTERN, USUAL_PATTERN):
        return FieldType(
            "Quantity", _marks(schema, {"pattern", "anyOf", "format"}), lambda value: f"Quantity({value!r})"
        )
    return FieldType("IntOrString", _marks(schema, {"anyOf", "format"}))


def _scalar(schema: Schema) -> FieldType:
    kind, form = schema["type"], schema.get("format")
    if "enum" in schema:
        return FieldType(f"Literal[{', '.join(map(repr, schema['enum']))}]", _marks(schema, {"enum", "format"}))
    if kind == "string" and form == "date-time":
        return FieldType("datetime", _marks(schema, {"format"}), lambda value: f"datetime.fromisoformat({value!r})")
    if kind == "string" and form == "date":
        return FieldType("date", _marks(schema, {"format"}), lambda value: f"date.fromisoformat({value!r})")
    if kind == "integer" and form == "int32":
        return FieldType("Int32", _conditions(schema, {"format"}))
    if kind in ("integer", "number"):
        return FieldType(_PLAIN[kind], _conditions(schema, {"format"}))
    return FieldType(_PLAIN[kind], _conditions(schema, set()))


def _object(schema: Schema, add_class: AddClass) -> FieldType:
    if schema.get("properties"):
        name = add_class(schema)
        return FieldType(name, [], lambda value: f"{name}.model_validate({value!r})")
    if schema.get("x-kubernetes-embedded-resource"):
        return FieldType("dict[str, Any]", ["embedded_resource", *_marks(schema, {"x-kubernetes-embedded-resource"})])
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and values:
        inner = field_type(values, add_class)
        text = optional(inner) if values.get("nullable") else str(inner)
        return FieldType(f"dict[str, {text}]", _marks(schema, set()), lambda value: _map_source(value, inner))
    return FieldType("dict[str, Any]", _marks(schema, set()))


def _list(schema: Schema, add_class: AddClass) -> FieldType:
    items = schema.get("items", {})
    inner = field_type(items, add_class)
    text = optional(inner) if items.get("nullable") else str(inner)
    notes = _conditions(schema, set(_LIST_KEYS))
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        notes.append(f"list_map({', '.join(map(repr, schema['x-kubernetes-list-map-keys']))})")
    elif kind in ("set", "atomic"):
        notes.append(f"list_{kind}")
    return FieldType(f"list[{text}]", notes, lambda value: f"[{', '.join(inner.value(item) for item in value)}]")


def _map_source(value: Mapping[str, Any], inner: FieldType) -> str:
    return f"{{{', '.join(f'{key!r}: {inner.value(item)}' for key, item in value.items())}}}"


def _conditions(schema: Schema, said: set[str]) -> list[str]:
    """`Field(...)` with what pydantic checks itself, and marks for the rest."""
    options: dict[str, Any] = {name: schema[key] for key, name in _BOUNDS.items() if key in schema}
    for limit, exclusive, inside, outside in (
        ("minimum", "exclusiveMinimum", "ge", "gt"),
        ("maximum", "exclusiveMaximum", "le", "lt"),
    ):
        if limit in schema:
            options[outside if schema.get(exclusive) else inside] = schema[limit]
    if "multipleOf" in schema:
        options["multiple_of"] = schema["multipleOf"]
    said = said | {*_BOUNDS, "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"}
    if "pattern" in schema and _usable(schema["pattern"]):
        options["pattern"] = schema["pattern"]
        said.add("pattern")
    fields = [f"Field({', '.join(f'{name}={value!r}' for name, value in options.items())})"] if options else []
    return [*fields, *_marks(schema, said)]


def _usable(pattern: str) -> bool:
    """Whether pydantic's engine knows the pattern, too."""
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


def _marks(schema: Schema, said: set[str]) -> list[str]:
    """What neither the type nor pydantic says."""
    rest = {key: value for key, value in schema.items() if key not in _SAID and key not in said}
    return [f"Mark({rest!r})"] if rest else []
