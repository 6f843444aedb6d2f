"""Uniqueness in lists of type set (whole elements) and map (their keys). Pure."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.schema.node import SchemaNode


def duplicates(value: Any, schema: SchemaNode, path: str = "") -> list[FieldError]:
    """A `Duplicate value` for the first repetition of each element (set) or key (map), everywhere below `value`."""
    found: list[FieldError] = []
    _walk(value, schema, path, found)
    return found


def _walk(value: Any, schema: SchemaNode, path: str, found: list[FieldError]) -> None:
    if not schema.has_unique:
        return
    if isinstance(value, dict):
        for key, inner_value in value.items():
            inner = schema.properties.get(key)
            if inner is not None:
                _walk(inner_value, inner, errors.child(path, key), found)
            elif schema.additional is not None:
                _walk(inner_value, schema.additional, errors.at(path, key), found)
    elif isinstance(value, list):
        found.extend(_list_duplicates(value, schema, path))
        if schema.items is not None:
            for index, element in enumerate(value):
                _walk(element, schema.items, errors.at(path, index), found)


def _list_duplicates(value: list[Any], schema: SchemaNode, path: str) -> list[FieldError]:
    if schema.list_type == "set":
        return [errors.duplicate(errors.at(path, i), value[i]) for i in _repeated(map(_identity, value))]
    return _map_duplicates(value, schema, path) if schema.list_type == "map" else []


def _map_duplicates(value: list[Any], schema: SchemaNode, path: str) -> list[FieldError]:
    for index, element in enumerate(value):
        if element is not None and not isinstance(element, dict):
            detail = "must be an object for an array of list-type map"
            return [errors.invalid(errors.at(path, index), element, detail)]
    keys = [{k: element[k] for k in schema.list_map_keys if k in element} if element else {} for element in value]
    return [errors.duplicate(errors.at(path, i), keys[i]) for i in _repeated(map(_identity, keys))]


def _identity(value: Any) -> Hashable:
    """Equal for equal values only: 1, 1.0, true and "1" are all different, as for Go's interface values."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True)
    return (type(value), value)


def _repeated(values: Iterable[Hashable]) -> list[int]:
    """The index of the second appearance of each value that appears more than once."""
    seen: dict[Hashable, int] = {}
    found = []
    for index, value in enumerate(values):
        seen[value] = seen.get(value, 0) + 1
        if seen[value] == 2:
            found.append(index)
    return found
