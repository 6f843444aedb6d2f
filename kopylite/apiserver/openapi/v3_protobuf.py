"""OpenAPI v3 in protobuf: messages of gnostic's openapi.v3. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopylite.apiserver.openapi.messages import (
    MessageEncoder,
    any_value,
    each,
    inner,
    message,
    named,
    named_in_steps,
    real,
    text,
    texts,
    whole,
)
from kopylite.apiserver.openapi.sharing import NodeSteps
from kopylite.apiserver.request.protobuf.wire import block, double, integer

# What clients ask for; the answer's Content-Type puts a point in the place of the @.
PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"


def to_protobuf(document: Mapping[str, Any]) -> NodeSteps[bytes]:
    """The whole document."""
    components = document["components"]
    paths = yield from named_in_steps(1, _PATH_ITEM, document["paths"])
    schemas = yield from named_in_steps(1, _schema_or_reference, components["schemas"])
    return _HEAD(document) + block(4, paths) + block(5, block(1, schemas) + _SECURITY(components))


def _schema_or_reference(value: Mapping[str, Any]) -> bytes:
    if "$ref" in value:
        return block(2, message({"$ref": text(1)})(value))
    return block(1, _SCHEMA(value))


def _additional(value: Any) -> bytes:
    return block(1, _schema_or_reference(value)) if isinstance(value, Mapping) else integer(2, int(value))


def _default(value: Any) -> bytes:
    """Only plain values have a place."""
    if isinstance(value, bool):
        return integer(2, value)
    if isinstance(value, int | float):
        return double(1, value)
    return block(3, value.encode()) if isinstance(value, str) else b""


_SCHEMA: MessageEncoder = message(
    {
        "nullable": whole(1), "title": text(9), "multipleOf": real(10), "maximum": real(11),
        "exclusiveMaximum": whole(12), "minimum": real(13), "exclusiveMinimum": whole(14), "maxLength": whole(15),
        "minLength": whole(16), "pattern": text(17), "maxItems": whole(18), "minItems": whole(19),
        "uniqueItems": whole(20), "maxProperties": whole(21), "minProperties": whole(22), "required": texts(23),
        "enum": each(24, any_value), "type": text(25),
        "allOf": each(26, _schema_or_reference), "oneOf": each(27, _schema_or_reference),
        "anyOf": each(28, _schema_or_reference), "not": inner(29, lambda value: _SCHEMA(value)),
        "items": inner(30, inner(1, _schema_or_reference)), "properties": inner(31, named(1, _schema_or_reference)),
        "additionalProperties": inner(32, _additional), "default": inner(33, _default), "description": text(34),
        "format": text(35),
    },
    extensions=36,
)  # fmt: skip
_CONTENT = named(1, message({"schema": inner(1, _schema_or_reference)}))
_PARAMETER = inner(
    1,
    message(
        {"name": text(1), "in": text(2), "description": text(3), "required": whole(4),
         "schema": inner(10, _schema_or_reference)}
    ),
)  # fmt: skip
_BODY = inner(1, message({"description": text(1), "content": inner(2, _CONTENT), "required": whole(3)}))
_RESPONSE = inner(1, message({"description": text(1), "content": inner(3, _CONTENT)}))
_OPERATION = message(
    {
        "tags": texts(1), "summary": text(2), "description": text(3), "operationId": text(5),
        "parameters": each(6, _PARAMETER), "requestBody": inner(7, _BODY),
        "responses": inner(8, named(2, _RESPONSE)), "deprecated": whole(10),
    },
    extensions=13,
)  # fmt: skip
_METHODS = {"get": 4, "put": 5, "post": 6, "delete": 7, "options": 8, "head": 9, "patch": 10, "trace": 11}
_PATH_ITEM = message(
    {**{name: inner(number, _OPERATION) for name, number in _METHODS.items()}, "parameters": each(13, _PARAMETER)},
    extensions=14,
)
_SCHEME = message({"type": text(1), "description": text(2), "name": text(3), "in": text(4)})
_SECURITY = message({"securitySchemes": inner(7, named(1, inner(1, _SCHEME)))})
_HEAD = message({"openapi": text(1), "info": inner(2, message({"title": text(1), "version": text(6)}))})
