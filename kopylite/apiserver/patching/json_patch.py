"""JSON Patch (RFC 6902) as the API server applies it. Pure.

The server's library is laxer than the RFC in places, and clients rely on it: `replace` of an absent key
adds it, negative indices count from the end, a path may lack its leading slash when it has one segment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kopylite.apiserver.patching.copying import copied
from kopylite.errors import BadRequest, Invalid, RequestEntityTooLarge

# The API server's limits: maxJSONPatchOperations, and JSONPatchMaxCopyBytes.
MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024

_INDEX = re.compile(r"[+-]?\d+")
_GO_KINDS = {dict: "object", str: "string", bool: "bool", int: "number", float: "number"}


class _Refused(Exception):
    """An operation does not apply. The server hides the reason from its clients."""


def json_patch(document: Any, operations: Any) -> Any:
    """Apply a decoded JSON patch; returns a new document and leaves its arguments alone.

    Raises:
        BadRequest: the patch is no list of objects.
        RequestEntityTooLarge: it has more than 10,000 operations.
        Invalid: an operation does not apply, or a test failed.
    """
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise BadRequest(f"error decoding patch: {_decoding_problem(operations)}")
    if len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    try:
        return _Document(copied(document)).apply(operations)
    except _Refused as refusal:
        raise Invalid("the server rejected our request due to an error in our request") from refusal


def _decoding_problem(operations: Any) -> str:
    if not isinstance(operations, list):
        kind = _GO_KINDS.get(type(operations), "null")
        return f"json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
    bad = next(o for o in operations if not isinstance(o, dict))
    kind = "array" if isinstance(bad, list) else _GO_KINDS.get(type(bad), "null")
    return f"json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp"


class _Document:
    """The document while the operations run over it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._copied = 0

    def apply(self, operations: list[dict[str, Any]]) -> Any:
        for operation in operations:
            name = operation.get("op")
            if not isinstance(name, str) or name not in _OPERATIONS:
                raise _Refused(f"Unexpected kind: {name}")
            _OPERATIONS[name](self, operation)
        return self._root

    def _find(self, path: str) -> tuple[Any, str]:
        """The container that a path ends in, and the last segment."""
        segments = [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")]
        if len(segments) < 2:
            raise _Refused(f"missing path {path!r}")
        node = self._root
        for segment in segments[1:-1]:
            node = _get(node, segment)
            if not isinstance(node, (dict, list)):
                raise _Refused(f"missing path {path!r}")
        return node, segments[-1]

    def _add(self, operation: dict[str, Any]) -> None:
        node, key = self._find(_text(operation, "path"))
        _insert(node, key, copied(operation.get("value")))

    def _remove(self, operation: dict[str, Any]) -> None:
        node, key = self._find(_text(operation, "path"))
        _delete(node, key)

    def _replace(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path")
        value = copied(operation.get("value"))
        if not path:
            if not isinstance(value, (dict, list)):
                raise _Refused("the document must be an object or array")
            self._root = value
            return
        node, key = self._find(path)
        if isinstance(node, list):
            node[_position(key, len(node) - 1)] = value
        else:
            node[key] = value

    def _move(self, operation: dict[str, Any]) -> None:
        node, key = self._find(_text(operation, "from"))
        value = _get(node, key)
        _delete(node, key)
        node, key = self._find(_text(operation, "path"))
        _insert(node, key, value)

    def _copy(self, operation: dict[str, Any]) -> None:
        node, key = self._find(_text(operation, "from"))
        value = _get(node, key)
        node, key = self._find(_text(operation, "path"))
        self._copied += len(msgspec.json.encode(value))
        if self._copied > MAX_COPIED_BYTES:
            raise _Refused("the copied values are too large")
        _insert(node, key, copied(value))

    def _test(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path")
        if path:
            node, key = self._find(path)
            value = _get(node, key)
        else:
            value = self._root
        if not json_equal(value, operation.get("value")):
            raise _Refused(f"testing value {path} failed")


def _text(operation: dict[str, Any], field: str) -> str:
    value = operation.get(field)
    if not isinstance(value, str):
        raise _Refused(f"operation misses {field}")
    return value


def _position(key: str, last: int) -> int:
    """A list index; negative ones count from behind `last`."""
    if not _INDEX.fullmatch(key):
        raise _Refused(f"{key!r} is no list index")
    index = int(key)
    if index < 0:
        index += last + 1
    if not 0 <= index <= last:
        raise _Refused(f"index {key} out of range")
    return index


def _get(node: Any, key: str) -> Any:
    return node[_position(key, len(node) - 1)] if isinstance(node, list) else node.get(key)


def _insert(node: Any, key: str, value: Any) -> None:
    if isinstance(node, list):
        node.insert(len(node) if key == "-" else _position(key, len(node)), value)
    else:
        node[key] = value


def _delete(node: Any, key: str) -> None:
    if isinstance(node, list):
        del node[_position(key, len(node) - 1)]
    elif key in node:
        del node[key]
    else:
        raise _Refused(f"nonexistent key {key!r}")


_OPERATIONS: Mapping[str, Callable[[_Document, dict[str, Any]], None]] = {
    "add": _Document._add,
    "remove": _Document._remove,
    "replace": _Document._replace,
    "move": _Document._move,
    "copy": _Document._copy,
    "test": _Document._test,
}


def json_equal(one: Any, other: Any) -> bool:
    """Equality of JSON values: unlike Python's, `1`, `1.0` and `true` are three different values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(json_equal(v, other[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(json_equal, one, other))
    return type(one) is type(other) and bool(one == other)
