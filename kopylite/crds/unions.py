"""Unions of structural schemas: one schema that says the type, with the differences as validations.

A structural schema may say `anyOf` and `oneOf` only about values, never about types, and every field that is
mentioned there must be declared outside.
"""

from __future__ import annotations

from typing import Any

from kopylite.crds.jsonschema import PRESERVE_UNKNOWN

Schema = dict[str, Any]

_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_INT_OR_STRING = "x-kubernetes-int-or-string"
# What may stand inside anyOf and oneOf.
_VALIDATIONS = frozenset({
    "enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "pattern", "format", "minItems", "maxItems", "minProperties", "maxProperties", "required",
    "anyOf", "oneOf", "allOf", "not",
})  # fmt: skip
_UNCHECKED = "the server does not check which of the union's types a value has"


def union(variants: list[Schema], tag: str | None) -> tuple[Schema, str | None]:
    """One schema that accepts what any variant accepts, and what it cannot express (None: nothing).

    Args:
        variants: structural schemas, at least one.
        tag: the field that tells the variants apart, if there is one.
    """
    if all(variant == variants[0] for variant in variants):
        return variants[0], None
    types = {"int-or-string" if _INT_OR_STRING in variant else variant.get("type") for variant in variants}
    nullable = {"nullable": True} if any(variant.get("nullable") for variant in variants) else {}
    if types == {"object"} and all("properties" in variant for variant in variants):
        merged, problem = _objects(variants, tag)
    elif types <= {"integer", "string", "int-or-string"} and len(types) > 1:
        merged, problem = _int_or_string(variants), None
    elif types <= {"integer", "number"}:
        merged, problem = {"type": "number"} | ({} if len(types) > 1 else {"type": next(iter(types))}), None
        _add_choices(merged, [validations(variant) for variant in variants])
    elif len(types) == 1 and types <= _SCALARS:
        merged, problem = {"type": types.pop()}, None
        _add_choices(merged, [validations(variant) for variant in variants])
    elif types == {"array"}:
        items, problem = union([variant["items"] for variant in variants], None)
        merged = {"type": "array", "items": items}
        _add_choices(merged, [validations(variant) for variant in variants])
    else:
        merged, problem = {PRESERVE_UNKNOWN: True}, _UNCHECKED
    return merged | nullable, problem


def validations(schema: Schema) -> Schema:
    """What of a schema may stand inside anyOf or oneOf: conditions on values."""
    result = {key: value for key, value in schema.items() if key in _VALIDATIONS}
    if result.get("format") in ("int64", "double"):
        del result["format"]
    inner = {name: found for name, part in schema.get("properties", {}).items() if (found := validations(part))}
    if inner:
        result["properties"] = inner
    if "items" in schema and (items := validations(schema["items"])):
        result["items"] = items
    return result


def _add_choices(merged: Schema, choices: list[Schema], word: str = "anyOf") -> None:
    if not all(choices):
        return  # one variant accepts every value of the type
    if all(set(choice) == {"enum"} for choice in choices):
        merged["enum"] = list(dict.fromkeys(value for choice in choices for value in choice["enum"]))
    elif all(choice == choices[0] for choice in choices):
        merged.update(choices[0])
    else:
        merged[word] = choices


def _int_or_string(variants: list[Schema]) -> Schema:
    numbers = [validations(variant) for variant in variants if variant.get("type") == "integer"]
    texts = [validations(variant) for variant in variants if variant.get("type") == "string"]
    merged: Schema = {_INT_OR_STRING: True}
    if len(numbers) <= 1 and len(texts) <= 1:
        # A condition on numbers says nothing about texts, and the other way round: both can stand side by side.
        for choice in (*numbers, *texts):
            merged |= {key: value for key, value in choice.items() if key not in ("enum", "format", "anyOf")}
        enums = [choice["enum"] for choice in (*numbers, *texts) if "enum" in choice]
        if len(enums) == len(variants):
            merged["enum"] = [value for enum in enums for value in enum]
    return merged


def _objects(variants: list[Schema], tag: str | None) -> tuple[Schema, str | None]:
    names = dict.fromkeys(name for variant in variants for name in variant["properties"])
    properties: Schema = {}
    choices: list[Schema] = [{} for _ in variants]
    problems = []
    for name in names:
        found = [variant["properties"].get(name) for variant in variants]
        present = [schema for schema in found if schema is not None]
        shared, problem = union([_without_notes(schema) for schema in present], None)
        problems.append(problem)
        if len(present) == len(variants) and all(schema == present[0] for schema in present):
            properties[name] = present[0]
            continue
        properties[name] = {**_loosened(shared), **_common_notes(present)}
        for choice, schema in zip(choices, found, strict=True):
            if schema is not None and (conditions := validations(schema)):
                choice.setdefault("properties", {})[name] = conditions
    for choice, variant in zip(choices, variants, strict=True):
        required = sorted({*variant.get("required", ()), *([tag] if tag else ())})
        if required:
            choice["required"] = required
    merged: Schema = {"type": "object", "properties": properties}
    always = set.intersection(*(set(choice.get("required", ())) for choice in choices))
    if always:
        merged["required"] = [name for name in names if name in always]
    if any(variant.get(PRESERVE_UNKNOWN) for variant in variants):
        merged[PRESERVE_UNKNOWN] = True
    _add_choices(merged, choices, "oneOf" if tag else "anyOf")
    return merged, next((problem for problem in problems if problem), None)


def _without_notes(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("description", "default")}


def _common_notes(schemas: list[Schema]) -> Schema:
    first = schemas[0].get("description")
    return {"description": first} if first and all(schema.get("description") == first for schema in schemas) else {}


def _loosened(schema: Schema) -> Schema:
    """The types of a schema without its conditions: these are said variant by variant."""
    result = {key: value for key, value in schema.items() if key not in _VALIDATIONS - {"format"}}
    if "properties" in result:
        result["properties"] = {name: _loosened(part) for name, part in result["properties"].items()}
    if "items" in result:
        result["items"] = _loosened(result["items"])
    return {key: value for key, value in result.items() if key != "default"}
