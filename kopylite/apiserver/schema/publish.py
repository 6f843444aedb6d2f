"""The schema of a CRD as the server publishes it in its OpenAPI documents. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.schema.structural import Schema

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_OBJECT_META: Schema = {"allOf": [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]}
_TYPE_META: dict[str, Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


def published(schema: Schema) -> Schema:
    """A root schema with apiVersion, kind and metadata, here and in embedded resources; int-or-string spelled out.

    The result shares no mutable part with its argument at the levels that it changes.
    """
    result = _node(schema)
    result["type"] = result.get("type") or "object"
    result["properties"] = {**result.get("properties", {}), **_TYPE_META, "metadata": _OBJECT_META}
    return result


def published_list(item: str) -> Schema:
    """The schema of the list kind of a resource whose schema has the name `item`."""
    list_meta = {"allOf": [{"$ref": f"#/components/schemas/{META}.ListMeta"}]}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{item}"}}
    return {
        "type": "object",
        "required": ["items"],
        "properties": {**_TYPE_META, "items": items, "metadata": list_meta},
    }


def _node(schema: Schema) -> Schema:
    result: dict[str, Any] = dict(schema)
    if "properties" in schema:
        result["properties"] = {name: _node(inner) for name, inner in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = _node(schema[key])
    if schema.get("x-kubernetes-int-or-string") and schema.get("anyOf") != _INT_OR_STRING:
        if not schema.get("anyOf") and not schema.get("allOf"):
            result["anyOf"] = _INT_OR_STRING
        elif not any(inner.get("anyOf") == _INT_OR_STRING for inner in schema.get("allOf") or ()):
            result["allOf"] = [{"anyOf": _INT_OR_STRING}, *(schema.get("allOf") or ())]
    if schema.get("x-kubernetes-embedded-resource"):
        result["properties"] = {**result.get("properties", {}), **_TYPE_META, "metadata": _OBJECT_META}
        required = list(schema.get("required") or ())
        result["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]
    return result
