"""Marks: what Kubernetes wants to know about a field beyond its type, put into `Annotated[...]`.

ports: Annotated[list[Port], list_map("name")]
storage_class: Annotated[str, immutable]
raw: Annotated[dict[str, Any], preserve_unknown]
replicas: Annotated[int, Rule("self <= 10", message="at most 10 replicas")]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """Adds keys to the schema of a field. Validation in Python is not affected.

    Compares by identity, since `Annotated[...] | None` wants it hashable.
    """

    keys: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self.keys}


@dataclass(frozen=True, slots=True)
class Rule:
    """A validation in CEL, checked by the API server at each write (`x-kubernetes-validations`).

    Args:
        rule: a CEL expression that must be true; `self` is the value. One that uses `oldSelf` is checked on
            updates only.
        message: what the user reads when it is false.
        message_expression: a CEL expression of that text.
        reason: of the error's cause.
        field_path: the field to blame, relative to the value, e.g. ".replicas".
        optional_old_self: check a rule with `oldSelf` also when there was no value before.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate", ""] = ""
    field_path: str = ""
    optional_old_self: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        entries = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in entries.items() if value not in ("", None)}

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result = dict(handler(schema))
        result["x-kubernetes-validations"] = [*result.get("x-kubernetes-validations", ()), self.to_dict()]
        return result


def list_map(*keys: str) -> Mark:
    """The list's items are told apart by these fields (wire names): server-side apply merges item by item."""
    return Mark({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


list_set = Mark({"x-kubernetes-list-type": "set"})
"""The list's items are scalars without repetition."""

list_atomic = Mark({"x-kubernetes-list-type": "atomic"})
"""Server-side apply replaces the list as a whole."""

map_atomic = Mark({"x-kubernetes-map-type": "atomic"})
"""Server-side apply replaces the map or object as a whole."""

preserve_unknown = Mark({"x-kubernetes-preserve-unknown-fields": True})
"""The server keeps fields below this one that the schema does not name."""

embedded_resource = Mark({"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True})
"""The value is a whole API object: the server checks its apiVersion, kind and metadata."""

int_or_string = Mark({"x-kubernetes-int-or-string": True})
"""The value is a number or a text, such as a port or a percentage."""

immutable = Rule("self == oldSelf", message="is immutable")
"""Once set, the value cannot be changed."""
