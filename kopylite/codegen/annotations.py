"""The annotation in generated source for a field of a structural schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from kopylite.codegen.text import literal, quoted
from kopylite.crds.jsonschema import PRESERVE_UNKNOWN
from kopylite.crds.patterns import perl_classes
from kopylite.objects.quantity import PATTERN, USUAL_PATTERN, Quantity

Schema = Mapping[str, Any]
AddClass = Callable[[Schema], str]

# What pydantic's Field calls the limits of a type.
_BOUNDS = {
    "string": {"minLength": "min_length", "maxLength": "max_length"},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
}
# Longer ones are left to the server: compiling one can take half a second.
_MAX_PATTERN = 1000
_LIMITS = (("minimum", "exclusiveMinimum", "ge", "gt"), ("maximum", "exclusiveMaximum", "le", "lt"))
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
    value: Callable[[Any], str] = literal

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
        # Other tools write a pattern that is a little wider: kept, lest the CRD refuse what is stored.
        said = {"anyOf", "format"} | ({"pattern"} if schema["pattern"] == PATTERN else set())
        return FieldType("Quantity", _marks(schema, said), _quantity_source)
    return FieldType("IntOrString", _marks(schema, {"anyOf", "format"}))


def _quantity_source(value: Any) -> str:
    try:
        Quantity(value)
    except (TypeError, ValueError):
        return literal(value)
    return f"Quantity({literal(value)})"


def _scalar(schema: Schema) -> FieldType:
    kind, form = schema["type"], schema.get("format")
    if "enum" in schema:
        if all(isinstance(value, (str, int)) or value is None for value in schema["enum"]):
            return FieldType(f"Literal[{', '.join(map(literal, schema['enum']))}]", _marks(schema, {"enum", "format"}))
        return FieldType(_PLAIN[kind], _marks(schema, {"format"}))
    if kind == "string" and form in _MOMENTS and _is_moment(schema.get("default"), _MOMENTS[form]):
        name = _MOMENTS[form].__name__
        return FieldType(name, _marks(schema, {"format"}), lambda value: f"{name}.fromisoformat({literal(value)})")
    if kind == "integer" and form == "int32":
        return FieldType("Int32", _conditions(schema, {"format"}))
    if kind in ("integer", "number"):
        return FieldType(_PLAIN[kind], _conditions(schema, {"format"}))
    return FieldType(_PLAIN[kind], _conditions(schema, set()))


_MOMENTS: dict[str, Any] = {"date-time": datetime, "date": date}


def _is_moment(default: Any, cls: Any) -> bool:
    """Whether a default can be written as a moment; none can."""
    try:
        return default is None or (isinstance(default, str) and bool(cls.fromisoformat(default)))
    except ValueError:
        return False


def _object(schema: Schema, add_class: AddClass) -> FieldType:
    if schema.get("properties"):
        name = add_class(schema)
        return FieldType(name, [], lambda value: f"{name}.model_validate({literal(value)})")
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
        notes.append(f"list_map({', '.join(map(literal, schema.get('x-kubernetes-list-map-keys', ())))})")
    elif kind in ("set", "atomic"):
        notes.append(f"list_{kind}")
    return FieldType(f"list[{text}]", notes, lambda value: _list_source(value, inner))


def _list_source(value: Any, inner: FieldType) -> str:
    return f"[{', '.join(_item_source(item, inner) for item in value)}]" if isinstance(value, list) else literal(value)


def _item_source(value: Any, inner: FieldType) -> str:
    return "None" if value is None else inner.value(value)


def _map_source(value: Any, inner: FieldType) -> str:
    if not isinstance(value, Mapping):
        return literal(value)
    return f"{{{', '.join(f'{quoted(key)}: {_item_source(item, inner)}' for key, item in value.items())}}}"


def _conditions(schema: Schema, said: set[str]) -> list[str]:
    """`Field(...)` with what pydantic checks itself, and marks for the rest."""
    kind = schema.get("type")
    options: dict[str, Any] = {
        name: schema[key] for key, name in _BOUNDS.get(str(kind), {}).items() if schema.get(key, -1) >= 0
    }
    said = said | {key for key, name in _BOUNDS.get(str(kind), {}).items() if name in options}
    if kind in ("integer", "number"):
        for limit, exclusive, inside, outside in _LIMITS:
            if limit in schema and not _bounds(kind, schema[limit]):
                continue
            if limit in schema:
                options[outside if schema.get(exclusive) else inside] = schema[limit]
            said |= {limit, exclusive}
        factor = schema.get("multipleOf", 0)
        if factor <= 0 or _bounds(kind, factor):
            options |= {"multiple_of": factor} if factor > 0 else {}
            said |= {"multipleOf"}
    if kind == "string" and "pattern" in schema and _usable(schema["pattern"]):
        options["pattern"] = schema["pattern"]
        said.add("pattern")
    fields = [f"Field({', '.join(f'{name}={literal(value)}' for name, value in options.items())})"] if options else []
    return [*fields, *_marks(schema, said)]


def _bounds(kind: str, limit: float) -> bool:
    """Whether pydantic takes a limit for a number of this kind: of a whole one, no fraction and not past 64 bits."""
    return kind == "number" or isinstance(limit, int) or (limit.is_integer() and abs(limit) < 2**63)


def _usable(pattern: str) -> bool:
    """Whether pydantic's engine knows the pattern, too, and means the same by it."""
    if len(pattern) > _MAX_PATTERN or perl_classes(pattern):
        return False
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


def _marks(schema: Schema, said: set[str]) -> list[str]:
    """What neither the type nor pydantic says."""
    rest = {key: value for key, value in schema.items() if key not in _SAID and key not in said}
    return [f"Mark({literal(rest)})"] if rest else []
