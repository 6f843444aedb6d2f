"""Correlation of a new value with the old one, for ratcheting: what did not change may stay invalid. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.schema.node import SchemaNode

_UNKNOWN = object()


class Correlation:
    """A node of the new object beside its counterpart in the old one.

    Map entries correspond by key; list elements only in lists of type map, by their map keys. Everything
    else has no counterpart, so it cannot be ratcheted by itself (but with its parent).
    """

    __slots__ = ("_equal", "_old_items", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: SchemaNode) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._equal: bool | None = None
        self._old_items: dict[tuple[Any, ...], Any] | None = None

    @property
    def unchanged(self) -> bool:
        """Are both values deeply equal? Computed once."""
        if self._equal is None:
            self._equal = same_json(self.new, self.old)
        return self._equal

    def key(self, name: str) -> Correlation | None:
        """The child under a key that both have and the schema knows, else None."""
        if not isinstance(self.new, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.new or name not in self.old:
            return None
        inner = self.schema.field(name)
        return None if inner is None else Correlation(self.new[name], self.old[name], inner)

    def index(self, index: int) -> Correlation | None:
        """The child at an index of the new list, if the list is a map list and the old one has its key."""
        if self.schema.items is None or not isinstance(self.new, list):
            return None
        old = self.old_item(self.new[index])
        return None if old is None else Correlation(self.new[index], old, self.schema.items)

    def old_item(self, item: Any) -> Any:
        """The element of the old list with the keys of `item`; None if there is none or the list is no map list."""
        if self._old_items is None:
            self._old_items = old_items_by_key(self.old, self.schema)
        key = map_key(item, self.schema.list_map_keys)
        return None if key is None else self._old_items.get(key)


def old_items_by_key(old: Any, schema: SchemaNode) -> dict[tuple[Any, ...], Any]:
    """The elements of a map list by their keys (the first one wins); empty for any other list."""
    found: dict[tuple[Any, ...], Any] = {}
    if isinstance(old, list) and schema.list_type == "map" and schema.list_map_keys:
        for item in old:
            key = map_key(item, schema.list_map_keys)
            if key is not None:
                found.setdefault(key, item)
    return found


def map_key(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    """What identifies an element of a map list; None unless all keys are present scalars."""
    if not isinstance(item, dict) or not keys:
        return None
    values = [item.get(key, _UNKNOWN) for key in keys]
    if any(v is _UNKNOWN or v is None or isinstance(v, (dict, list)) for v in values):
        return None
    return tuple((type(v), v) for v in values)


def same_json(a: Any, b: Any) -> bool:
    """Deep equality that tells 1 from true and from 1.0, as Go does."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_json(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return bool(a == b)
