"""The paths of OpenAPI v2, made from those of v3: bodies become parameters, contents become lists of types. Pure."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from kopylite.apiserver.openapi.v2 import reference

Object = dict[str, Any]

_METHODS = ("get", "put", "post", "delete", "patch")
_KEPT = ("tags", "description", "operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")


class V2Paths:
    """Paths of v3 documents in the form of v2.

    Attributes:
        found: the path items.
        parameters: what they share, by the name that they refer to.
    """

    def __init__(self) -> None:
        self.found: dict[str, Object] = {}
        self.parameters: dict[str, Object] = {}
        # By name: the last one, and how to refer to it.
        self._references: dict[str, tuple[Object | None, Object]] = {}

    def add(self, path: str, item: Object) -> None:
        found: Object = {method: self._operation(item[method]) for method in _METHODS if method in item}
        if "parameters" in item:
            found["parameters"] = [self._parameter(parameter) for parameter in item["parameters"]]
        self.found[path] = found

    def _operation(self, operation: Object) -> Object:
        body = operation.get("requestBody")
        parameters = [self._parameter(parameter) for parameter in operation.get("parameters", ())]
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

    def _parameter(self, parameter: Object) -> Object:
        name = parameter["name"]
        if name == "name":  # described as that of one kind
            return _flat(parameter)
        known, reference = self._references.get(name, (None, {}))
        if known != parameter:
            digest = hashlib.sha256(repr(parameter).encode()).digest()
            title = f"{name}-{base64.urlsafe_b64encode(digest).decode()[:8]}"
            self.parameters[title] = _flat(parameter)
            reference = {"$ref": f"#/parameters/{title}"}
            self._references[name] = parameter, reference
        return reference


def _flat(parameter: Object) -> Object:
    return {**parameter["schema"], **{key: value for key, value in parameter.items() if key != "schema"}}


def _response(answer: Object) -> Object:
    found: Object = {"description": answer["description"]}
    if answer.get("content"):
        found["schema"] = _schema(next(iter(answer["content"].values())))
    return found


def _schema(content: Object) -> Object:
    return {"$ref": reference(content["schema"]["$ref"])}
