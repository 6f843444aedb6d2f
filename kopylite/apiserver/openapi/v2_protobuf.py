"""OpenAPI v2 in protobuf, the only form that Go clients ask for: messages of gnostic's openapi.v2. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopylite.apiserver.openapi.messages import (
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
from kopylite.apiserver.request.protobuf.wire import block

# What clients ask for; the answer's Content-Type puts a point in the place of the @.
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def to_protobuf(document: Mapping[str, Any]) -> NodeSteps[bytes]:
    """The whole document."""
    paths = yield from named_in_steps(2, _PATH_ITEM, document["paths"])
    definitions = yield from named_in_steps(1, _schema, document["definitions"])
    return _HEAD(document) + block(8, paths) + block(9, definitions) + _TAIL(document)


def _schema(value: Mapping[str, Any]) -> bytes:
    return _SCHEMA(value)


def _additional(value: Any) -> bytes:
    return block(1, _schema(value)) if isinstance(value, Mapping) else whole(2)(value)


_SCHEMA = message(
    {
        "$ref": text(1), "format": text(2), "title": text(3), "description": text(4), "default": inner(5, any_value),
        "multipleOf": real(6), "maximum": real(7), "exclusiveMaximum": whole(8), "minimum": real(9),
        "exclusiveMinimum": whole(10), "maxLength": whole(11), "minLength": whole(12), "pattern": text(13),
        "maxItems": whole(14), "minItems": whole(15), "uniqueItems": whole(16), "maxProperties": whole(17),
        "minProperties": whole(18), "required": texts(19), "enum": each(20, any_value),
        "additionalProperties": inner(21, _additional), "type": inner(22, text(1)),
        "items": inner(23, inner(1, _schema)), "properties": inner(25, named(1, _schema)),
    },
    extensions=31,
)  # fmt: skip
_BODY = message(
    {"description": text(1), "name": text(2), "in": text(3), "required": whole(4), "schema": inner(5, _schema)}
)
_OTHER = {"required": whole(1), "in": text(2), "description": text(3), "name": text(4)}
_QUERY = message({**_OTHER, "type": text(6), "format": text(7), "uniqueItems": whole(20)})
_PATH = message({**_OTHER, "type": text(5), "format": text(6), "uniqueItems": whole(19)})
# Which of the parameters that are no bodies, and what is in it.
_PLACES = {"header": inner(1, _PATH), "query": inner(3, _QUERY), "path": inner(4, _PATH)}


def _parameter(value: Mapping[str, Any]) -> bytes:
    if "$ref" in value:
        return block(2, message({"$ref": text(1)})(value))
    return block(1, _alone(value))


def _alone(value: Mapping[str, Any]) -> bytes:
    return block(1, _BODY(value)) if value["in"] == "body" else block(2, _PLACES[value["in"]](value))


_RESPONSE = message({"description": text(1), "schema": inner(2, inner(1, _schema))})
_OPERATION = message(
    {
        "tags": texts(1), "summary": text(2), "description": text(3), "operationId": text(5), "produces": texts(6),
        "consumes": texts(7), "parameters": each(8, _parameter), "responses": inner(9, named(1, inner(1, _RESPONSE))),
        "schemes": texts(10), "deprecated": whole(11),
    },
    extensions=13,
)  # fmt: skip
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_PATH_ITEM = message(
    {**{name: inner(number, _OPERATION) for name, number in _METHODS.items()}, "parameters": each(9, _parameter)},
    extensions=10,
)
_SECURITY = message({"type": text(1), "name": text(2), "in": text(3), "description": text(4)})
# The fields before the paths, and those after the definitions.
_HEAD = message({"swagger": text(1), "info": inner(2, message({"title": text(1), "version": text(2)}))})
_TAIL = message(
    {
        "parameters": inner(10, named(1, _alone)),
        "security": each(12, named(1, texts(1))),
        "securityDefinitions": inner(13, named(1, inner(2, _SECURITY))),
    }
)
