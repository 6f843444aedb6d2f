"""JSON Merge Patch (RFC 7386) as the API server applies it. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.patching.copying import copied
from kopylite.errors import BadRequest

_GO_KINDS = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def merge_patch(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a decoded merge patch; returns a new document, which shares nothing with the arguments.

    Raises:
        BadRequest: the patch is no object.
    """
    if patch is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = _GO_KINDS[type(patch)]
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merged(copied(document), patch)


def _merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for key, value in patch.items():
        current = document.get(key)
        if value is None:
            document.pop(key, None)
        elif isinstance(current, dict) and isinstance(value, dict):
            _merged(current, value)
        else:
            document[key] = without_nulls(value)
    return document


def without_nulls(value: Any) -> Any:
    """A copy in which no object has a null member; nulls in lists stay."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(v) for v in value]
    return value


def merge_difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that turns `old` into `new` (whose objects must hold no nulls)."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        current = old.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            inner = merge_difference(current, value)
            if inner:
                patch[key] = inner
        elif key not in old or type(current) is not type(value) or current != value:
            patch[key] = value
    return patch
