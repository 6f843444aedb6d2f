"""All functions that expressions may call: those of the evaluator, and the libraries beside it. Pure.

Here are also the functions that translated expressions need for themselves: optional selection, macros with two
variables, lists without order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kopylite.apiserver.schema.cel.addresses import ADDRESSES
from kopylite.apiserver.schema.cel.budget import spend
from kopylite.apiserver.schema.cel.conversions import CONVERSIONS
from kopylite.apiserver.schema.cel.engine import OptionalValue
from kopylite.apiserver.schema.cel.library import CallFailed, Library, no_overload
from kopylite.apiserver.schema.cel.quantities import QUANTITIES
from kopylite.apiserver.schema.cel.sequences import SEQUENCES
from kopylite.apiserver.schema.cel.shapes import DYN, Shape

LIBRARY = Library(CONVERSIONS | SEQUENCES | QUANTITIES | ADDRESSES)
_BOOL, _INT, _DOUBLE, _STRING = Shape("bool"), Shape("int"), Shape("double"), Shape("string")
# What the evaluator does as Kubernetes does it; methods and global functions, with the shape of the result.
NATIVE_METHODS = {
    "startsWith": _BOOL, "endsWith": _BOOL, "contains": _BOOL, "hasValue": _BOOL, "value": DYN, "orValue": DYN,
    "or": DYN,
}  # fmt: skip
NATIVE_GLOBAL = {
    "int": _INT, "uint": Shape("uint"), "double": _DOUBLE, "bytes": Shape("bytes"), "type": DYN, "dyn": DYN,
    "duration": Shape("duration"), "timestamp": Shape("timestamp"),
}  # fmt: skip
NAMESPACED = frozenset(
    {"sets.contains", "sets.equivalent", "sets.intersects", "ip.isCanonical", "strings.quote", "lists.range",
     "format.named"}
)  # fmt: skip


@LIBRARY.add("optional_get")
def optional_get(value: Any, key: Any) -> Any:
    """`value.?key`, `value[?key]`, and every selection after one: absent if the value or the key is."""
    if isinstance(value, OptionalValue):
        if not value.has_value():
            return value
        value = value.value()
    if isinstance(value, dict):
        return OptionalValue.of(value[key]) if key in value else OptionalValue.none()
    if isinstance(value, list) and isinstance(key, int):
        return OptionalValue.of(value[key]) if 0 <= key < len(value) else OptionalValue.none()
    raise no_overload()


def _present(values: Iterable[Any], flags: list[bool]) -> list[Any]:
    found = []
    for value, optional in zip(values, flags, strict=True):
        if not optional:
            found.append(value)
        elif value.has_value():
            found.append(value.value())
    return found


@LIBRARY.add("list", "list")
def optional_list(values: list[Any], flags: list[bool]) -> list[Any]:
    """A list literal whose flagged elements are optional values: absent ones are left out."""
    return _present(values, flags)


@LIBRARY.add("map")
def optional_map(pairs: list[Any], flags: list[bool]) -> dict[Any, Any]:
    """A map literal whose flagged entries have optional values: absent ones are left out."""
    kept = {}
    for (key, value), optional in zip(pairs, flags, strict=True):
        if not optional:
            kept[key] = value
        elif value.has_value():
            kept[key] = value.value()
    return kept


@LIBRARY.add("pairs", "list")
def pairs(value: Any) -> list[list[Any]]:
    """[key, value] of a map, [index, element] of a list."""
    spend(10 * len(value))  # each becomes a list of its own
    return [list(pair) for pair in (value.items() if isinstance(value, dict) else enumerate(value))]


@LIBRARY.add("from_pairs")
def from_pairs(entries: list[list[Any]]) -> dict[Any, Any]:
    return dict(entries)


@LIBRARY.add("merge")
def merge(maps: list[dict[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for each in maps:
        if repeated := found.keys() & each.keys():
            raise CallFailed(f"insert failed: key {min(repeated)} already exists")
        found |= each
    return found


@LIBRARY.add("unordered_equal", "bool")
def unordered_equal(a: list[Any], b: list[Any], keys: list[str]) -> bool:
    """Equality of lists of type set (no keys) or map."""
    if len(a) != len(b):
        return False
    if not keys:
        return not any(value not in b for value in a) and not any(value not in a for value in b)
    others = {_map_key(element, keys): element for element in b}
    return all(others.get(_map_key(element, keys)) == element for element in a)


@LIBRARY.add("unordered_add", "list")
def unordered_add(a: list[Any], b: list[Any], keys: list[str]) -> list[Any]:
    """Union of lists of type set (no keys) or map: elements of the second replace those of equal keys."""
    if not keys:
        return [*a, *(value for value in b if value not in a)]
    merged = {_map_key(element, keys): element for element in a}
    merged.update((_map_key(element, keys), element) for element in b)
    return list(merged.values())


def _map_key(element: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    return tuple(element.get(key) for key in keys)


@LIBRARY.add("0spend", "bool", is_global=True)  # no expression can call such a name
def _spend(cost: int) -> bool:
    return spend(cost)
