"""OpenAPI v2 made from v3 schemas. Pure.

kubectl falls back to it for kinds that v3 does not know; older clients check and explain with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_V3_PREFIX, _V2_PREFIX = "#/components/schemas/", "#/definitions/"
_DROPPED = frozenset({"anyOf", "oneOf", "not", "allOf", "default", "nullable"})
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"


def definition(schema: Mapping[str, Any], *, custom: bool) -> Schema:
    """A v3 schema in the form of v2, which has no alternatives, defaults or nulls.

    Args:
        custom: a root of a custom resource: one that keeps unknown fields says nothing at all, as kubectl would
            take anything it says for the whole.
    """
    gvk = "x-kubernetes-group-version-kind"
    if custom and schema.get(_PRESERVE):
        return {"type": "object", gvk: schema[gvk]}
    return _converted(schema)


def reference(text: str) -> str:
    """A reference of v3 in the form of v2."""
    return text.replace(_V3_PREFIX, _V2_PREFIX)


def _converted(schema: Mapping[str, Any]) -> Schema:
    parts: list[Schema] = schema.get("allOf") or []
    if len(parts) == 1 and "$ref" in parts[0]:
        found = {"$ref": reference(parts[0]["$ref"])}
        return found | {key: value for key, value in schema.items() if key == "description" or key[:2] == "x-"}
    if "$ref" in schema:
        return {**schema, "$ref": reference(schema["$ref"])}
    result = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "oneOf" in schema and "type" not in schema:
        result["type"] = "string"  # int-or-string and quantities, which are written as strings
    open_ended = bool(schema.get(_PRESERVE))
    if open_ended or schema.get("nullable"):
        # kubectl fails on values without a type whose parts are described.
        result.pop("items", None)
        result.pop("properties", None)
    if schema.get("nullable") or (open_ended and result.get("type") == "object"):
        result.pop("type", None)
    if result.get("type") == "array" and "items" not in result:
        del result["type"]
    return _convert_parts(schema, result)


def _convert_parts(schema: Mapping[str, Any], result: Schema) -> Schema:
    if properties := result.get("properties"):
        result["properties"] = {name: _converted(inner) for name, inner in properties.items()}
        nullable = {name for name, inner in properties.items() if inner.get("nullable")}
        if "required" in result:
            result["required"] = [name for name in result["required"] if name not in nullable]
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), Mapping):
            if key == "additionalProperties" and result[key].get("nullable"):
                result.pop("required", None)
            result[key] = _converted(result[key])
    if schema.get(_PRESERVE) and schema.get(_EMBEDDED) and "required" in result:
        result["required"] = [name for name in result["required"] if name not in ("kind", "apiVersion")]
    if not result.get("required", True):
        del result["required"]
    return result


def document(
    paths: Mapping[str, Any], parameters: Mapping[str, Any], definitions: Mapping[str, Schema], minor: int
) -> dict[str, Any]:
    """The whole document; `parameters` are those that paths share."""
    info = {"title": "Kubernetes", "version": f"1.{minor}"}
    token = {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
    return {
        "swagger": "2.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(definitions),
        "parameters": dict(sorted(parameters.items())),
        "securityDefinitions": {"BearerToken": token},
        "security": [{"BearerToken": []}],
    }
