"""JSON Merge Patch (RFC 7386) as the API server applies it. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.errors import BadRequest

_GO_KINDS = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def merge_patch(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a decoded merge patch; returns a new document and leaves its arguments alone.

    What does not change is shared with the old document.

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
    return _merged(document, patch)


def _merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(document)
    for key, value in patch.items():
        current = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(current, dict) and isinstance(value, dict):
            result[key] = _merged(current, value)
        else:
            result[key] = without_nulls(value)
    return result


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
