"""All functions that expressions may call, those of optional values, and lists without order. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.schema.cel.addresses import ADDRESSES
from kopylite.apiserver.schema.cel.authz import AUTHORIZATION
from kopylite.apiserver.schema.cel.conversions import CONVERSIONS
from kopylite.apiserver.schema.cel.library import Library
from kopylite.apiserver.schema.cel.quantities import QUANTITIES
from kopylite.apiserver.schema.cel.sequences import SEQUENCES
from kopylite.apiserver.schema.cel.values import OptionalValue, contains, equal

LIBRARY = Library(CONVERSIONS | SEQUENCES | QUANTITIES | ADDRESSES | AUTHORIZATION)
# The kinds of objects that expressions may make, where variables of these names say so.
STRUCTS = frozenset({"Object", "JSONPatch"})
NAMESPACED = frozenset(
    {"sets.contains", "sets.equivalent", "sets.intersects", "ip.isCanonical", "strings.quote", "lists.range",
     "format.named", "optional.of", "optional.none", "optional.ofNonZeroValue",
     "jsonpatch.escapeKey"}
)  # fmt: skip


@LIBRARY.add("hasValue", "bool")
def has_value(value: OptionalValue) -> bool:
    return value.has_value()


@LIBRARY.add("value")
def value_of(value: OptionalValue) -> Any:
    return value.value()


@LIBRARY.add("or")
def either(value: OptionalValue, other: OptionalValue) -> OptionalValue:
    return value if value.has_value() else other


@LIBRARY.add("optional.of", is_global=True)
def optional_of(value: Any) -> OptionalValue:
    return OptionalValue.of(value)


@LIBRARY.add("optional.none", is_global=True)
def optional_none() -> OptionalValue:
    return OptionalValue.none()


@LIBRARY.add("optional.ofNonZeroValue", is_global=True)
def optional_of_non_zero(value: Any) -> OptionalValue:
    zero = value is None or value is False or (isinstance(value, (int, float, str, bytes, list, dict)) and not value)
    return OptionalValue.none() if zero else OptionalValue.of(value)


def unordered_equal(a: list[Any], b: list[Any], keys: list[str]) -> bool:
    """Equality of lists of type set (no keys) or map."""
    if len(a) != len(b):
        return False
    if not keys:
        return not any(not contains(value, b) for value in a) and not any(not contains(value, a) for value in b)
    others = {_map_key(element, keys): element for element in b}
    return all(equal(others.get(_map_key(element, keys)), element) for element in a)


def unordered_add(a: list[Any], b: list[Any], keys: list[str]) -> list[Any]:
    """Union of lists of type set (no keys) or map: elements of the second replace those of equal keys."""
    if not keys:
        return [*a, *(value for value in b if not contains(value, a))]
    merged = {_map_key(element, keys): element for element in a}
    merged.update((_map_key(element, keys), element) for element in b)
    return list(merged.values())


def _map_key(element: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    return tuple(element.get(key) for key in keys)


@LIBRARY.add("jsonpatch.escapeKey", "string", is_global=True)
def escape_key(key: str) -> str:
    """A key as a part of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")
