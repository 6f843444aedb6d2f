"""OpenAPI v2 made from v3 schemas, and its protobuf form, the only one that Go clients ask for. Pure.

kubectl falls back to it for kinds that v3 does not know; older clients check and explain with it. The protobuf form has
definitions only, no paths: those who ask for it find their paths by discovery.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from kopylite.objects.yamlwrite import to_go_yaml

# What clients ask for; the answer's Content-Type puts a point in the place of the @.
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

Schema = dict[str, Any]

_V3_PREFIX, _V2_PREFIX = "#/components/schemas/", "#/definitions/"
_DROPPED = frozenset({"anyOf", "oneOf", "not", "allOf", "default", "nullable"})
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
# Field numbers of the messages of openapi.v2 by Google's gnostic, which are the interface.
_TEXTS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DOUBLES = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_INTEGERS = {
    "exclusiveMaximum": 8, "exclusiveMinimum": 10, "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15,
    "uniqueItems": 16, "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_REQUIRED, _ENUM, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 19, 20, 21, 22, 23, 25, 31


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


def document(paths: Mapping[str, Any], definitions: Mapping[str, Schema], minor: int) -> dict[str, Any]:
    """The JSON form."""
    info = {"title": "Kubernetes", "version": f"1.{minor}"}
    token = {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
    return {
        "swagger": "2.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(definitions),
        "securityDefinitions": {"BearerToken": token},
        "security": [{"BearerToken": []}],
    }


def to_protobuf(document: Mapping[str, Any]) -> bytes:
    """A document in the form of gnostic's openapi.v2.Document."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    named = b"".join(_block(1, _named(name, _schema(s))) for name, s in document["definitions"].items())
    return (
        _text(_SWAGGER, document["swagger"]) + _block(_INFO, info) + _block(_PATHS, b"") + _block(_DEFINITIONS, named)
    )


def _schema(schema: Mapping[str, Any]) -> bytes:
    found = [_text(number, schema[key]) for key, number in _TEXTS.items() if key in schema]
    found += [_double(number, schema[key]) for key, number in _DOUBLES.items() if key in schema]
    found += [_integer(number, int(schema[key])) for key, number in _INTEGERS.items() if schema.get(key)]
    found += [_text(_REQUIRED, name) for name in schema.get("required") or ()]
    found += [_block(_ENUM, _any(value)) for value in schema.get("enum") or ()]
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        found.append(_block(_ADDITIONAL, _block(1, _schema(additional))))
    elif additional is not None:
        found.append(_block(_ADDITIONAL, _integer(2, int(additional))))
    if schema.get("type"):
        found.append(_block(_TYPE, _text(1, schema["type"])))
    if isinstance(schema.get("items"), Mapping):
        found.append(_block(_ITEMS, _block(1, _schema(schema["items"]))))
    if properties := schema.get("properties"):
        named = (_block(1, _named(name, _schema(inner))) for name, inner in properties.items())
        found.append(_block(_PROPERTIES, b"".join(named)))
    extensions = (key for key in schema if key.startswith("x-"))
    found += [_block(_EXTENSION, _named(key, _any(schema[key]))) for key in extensions]
    return b"".join(found)


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _block(2, value)


def _any(value: Any) -> bytes:
    """A value of free form is kept as YAML."""
    return _block(2, to_go_yaml(value))


def _text(number: int, text: str) -> bytes:
    return _block(number, text.encode())


def _block(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
