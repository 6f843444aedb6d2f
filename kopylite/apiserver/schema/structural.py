"""Is a schema structural? Every value has one declared shape outside of allOf, anyOf, oneOf and not. Pure.

Schemas of CRDs must be structural: pruning, defaulting and server-side apply follow that one shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.field_errors import FieldError, at, child
from kopylite.apiserver.schema.regex import compile_go

Schema = dict[str, Any]

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
# What a schema under allOf, anyOf, oneOf or not must leave out, and how the server words it, in its order.
_FORBIDDEN_NESTED = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_METADATA_TEXT = "must not specify anything other than name and generateName, but metadata is implicitly specified"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING_FLAG = "x-kubernetes-int-or-string"


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Why a root schema is not structural, sorted by text as the server sorts them."""
    found = [*_node_errors(schema, _ROOT, path), *_completeness(schema, schema, path, path)]
    return sorted(found, key=str)


def branches(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas under not, allOf, anyOf and oneOf, with the rest of their path: `anyOf[0]`."""
    if isinstance(schema.get("not"), dict):
        yield "not", schema["not"]
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(junctor) or ()):
            yield f"{junctor}[{index}]", inner


def _node_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        yield errors.required(child(path, "items"), "must be specified")
    if isinstance(items, dict):
        yield from _node_errors(items, _ITEM, child(path, "items"))
    for name, inner in (schema.get("properties") or {}).items():
        yield from _node_errors(inner, _FIELD, at(child(path, "properties"), name))
    if additional is not None:
        if level == _ROOT:
            yield errors.forbidden(child(path, "additionalProperties"), "must not be used at the root")
        if isinstance(additional, dict):
            yield from _node_errors(additional, _FIELD, child(path, "additionalProperties"))
    if schema.get(_INT_OR_STRING_FLAG):
        for flag in (_PRESERVE, _EMBEDDED):
            if schema.get(flag):
                text = "must be false if x-kubernetes-int-or-string is true"
                yield errors.invalid(child(path, flag), True, text)
    yield from _value_errors(schema, path)
    yield from _type_errors(schema, level, path)
    yield from _meta_errors(schema, level, path)


def _type_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    declared = schema.get("type") or ""
    where = child(path, "type")
    if schema.get(_EMBEDDED) and declared != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield errors.invalid(where, declared, text) if declared else errors.required(where, text)
    elif not declared and not schema.get(_INT_OR_STRING_FLAG) and not schema.get(_PRESERVE):
        yield errors.required(where, f"must not be empty {level}")
    if schema.get(_EMBEDDED) and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield errors.forbidden(child(path, "additionalProperties"), text)
    if level == _ROOT and declared and declared != "object":
        yield errors.invalid(where, declared, "must be object at the root")
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield errors.required(child(path, "properties"), text)


def _meta_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    whole = level == _ROOT or schema.get(_EMBEDDED)
    for name in ("kind", "apiVersion"):
        if whole and name in properties and properties[name].get("type") != "string":
            where = child(at(child(path, "properties"), name), "type")
            yield errors.invalid(where, properties[name].get("type") or "", "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = at(child(path, "properties"), "metadata")
    if whole and metadata.get("type") != "object":
        yield errors.invalid(child(where, "type"), metadata.get("type") or "", "must be object")
    if level == _ROOT:
        inner = set(metadata.get("properties") or {})
        rest = {key for key, value in metadata.items() if value and key not in ("type", "default", "properties")}
        if rest or not inner <= {"name", "generateName"}:
            yield errors.forbidden(where, _METADATA_TEXT)


def _value_errors(schema: Schema, path: str, *, skip_any_of: bool | None = None) -> Iterator[FieldError]:
    """Of the value validations of a node; the two ways to write int-or-string may name types."""
    all_of = schema.get("allOf") or []
    skip = schema.get("anyOf") == _INT_OR_STRING if skip_any_of is None else skip_any_of
    first_skips = skip_any_of is None and bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING
    for step, inner in branches(schema):
        if skip and step.startswith("anyOf"):
            continue
        yield from _nested_errors(inner, child(path, step), skip_any_of=first_skips and step == "allOf[0]")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_go(pattern)
        except ValueError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            yield errors.invalid(child(path, "pattern"), pattern, text)


def _nested_errors(schema: Schema, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    yield from _value_errors(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _nested_errors(schema["items"], child(path, "items"))
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _nested_errors(inner, at(child(path, "properties"), name))
    for key, text in _FORBIDDEN_NESTED:
        value = schema.get(key)
        if value or (value is not None and key == "default"):
            yield errors.forbidden(child(path, key), text)
    if "metadata" in properties:
        where = at(child(path, "properties"), "metadata")
        yield errors.forbidden(where, "must not be specified in a nested context")


def _completeness(nested: Schema, structural: Schema, where: str, source: str) -> Iterator[FieldError]:
    """Fields and items that only a branch specifies."""
    for step, inner in branches(nested):
        yield from _nested_completeness(inner, structural, where, child(source, step))


def _nested_completeness(nested: Schema, structural: Schema, where: str, source: str) -> Iterator[FieldError]:
    yield from _completeness(nested, structural, where, source)
    if isinstance(nested.get("items"), dict):
        inner_where, inner_source = child(where, "items"), child(source, "items")
        if isinstance(structural.get("items"), dict):
            yield from _nested_completeness(nested["items"], structural["items"], inner_where, inner_source)
        else:
            yield errors.required(inner_where, f"because it is defined in {inner_source}")
    for name, inner in (nested.get("properties") or {}).items():
        inner_where, inner_source = at(child(where, "properties"), name), at(child(source, "properties"), name)
        declared = (structural.get("properties") or {}).get(name)
        if declared is None:
            yield errors.required(inner_where, f"because it is defined in {inner_source}")
        else:
            yield from _nested_completeness(inner, declared, inner_where, inner_source)
