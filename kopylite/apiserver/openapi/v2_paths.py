"""The paths of OpenAPI v2, made from those of v3: bodies become parameters, contents become lists of types. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopylite.apiserver.openapi.v2 import reference

Object = dict[str, Any]

_METHODS = ("get", "put", "post", "delete", "patch")
_KEPT = ("tags", "description", "operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")


def converted_paths(paths: Mapping[str, Object]) -> dict[str, Object]:
    """The path items of a v3 document in the form of v2."""
    return {path: _item(item) for path, item in paths.items()}


def _item(item: Object) -> Object:
    found: Object = {method: _operation(item[method]) for method in _METHODS if method in item}
    if "parameters" in item:
        found["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return found


def _operation(operation: Object) -> Object:
    body = operation.get("requestBody")
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if body:
        schema = _schema(next(iter(body["content"].values())))
        required = {"required": True} if body.get("required") else {}
        parameters.insert(0, {"name": "body", "in": "body", **required, "schema": schema})
    answers = operation["responses"]
    return {
        "consumes": list(body["content"]) if body else ["*/*"],
        "produces": sorted({media for answer in answers.values() for media in answer.get("content", ())}),
        "schemes": ["https"],
        **{key: operation[key] for key in _KEPT if key in operation},
        **({"parameters": parameters} if parameters else {}),
        "responses": {code: _response(answer) for code, answer in answers.items()},
    }


def _parameter(parameter: Object) -> Object:
    plain = {key: value for key, value in parameter.items() if key != "schema"}
    return {**parameter["schema"], **plain}


def _response(answer: Object) -> Object:
    found: Object = {"description": answer["description"]}
    if answer.get("content"):
        found["schema"] = _schema(next(iter(answer["content"].values())))
    return found


def _schema(content: Object) -> Object:
    return {"$ref": reference(content["schema"]["$ref"])}
