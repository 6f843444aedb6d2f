"""Indexer: which objects hold which values, per namespace and across namespaces.

It holds keys, not records, and remembers the values of each key: an update that keeps its values touches nothing,
and a function that changes its mind can't leave an entry behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kopylite.boundary import INDEX, Guard, show
from kopylite.cache.record import Record
from kopylite.client.paths import parse_path
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import RegistrationError
from kopylite.objects import ObjectKey

IndexFunction = Callable[[Record], Iterable[str]]


class Indexer:
    """All indexes of one store.

    Args:
        on_failure: told the name of an index whenever its function fails on an object.

    Attributes:
        names: of the indexes.
    """

    def __init__(self, on_failure: Callable[[str], None] = lambda name: None) -> None:
        self._on_failure = on_failure
        self.names: dict[str, IndexFunction] = {}
        self._guards: dict[str, Guard[[Record], tuple[str, ...]]] = {}
        self._given: dict[str, IndexFunction | None] = {}
        # index name -> value -> namespace -> keys
        self._found: dict[str, dict[str, dict[str, set[ObjectKey]]]] = {}
        self._values: dict[str, dict[ObjectKey, tuple[str, ...]]] = {}

    def add(self, name: str, function: IndexFunction | None, records: Iterable[Record]) -> None:
        """Add an index over `records` and all that is put later; again with the same function: nothing happens.

        Raises:
            RegistrationError: the name is taken by another function.
        """
        if name in self.names:
            if self._given[name] is not function:
                raise RegistrationError(f"index {name!r} exists already, with another function")
            return
        values = self.names[name] = function or path_values(name)
        self._guards[name] = Guard(
            INDEX,
            lambda record: _texts(values(record)),
            name=name,
            now=SYSTEM_CLOCK.monotonic,
            observe=lambda result: self._on_failure(name),
        )
        self._given[name] = function
        self._found[name] = {}
        self._values[name] = {}
        for record in records:
            self._put(name, record)

    def find(self, name: str, value: str, namespace: str = "") -> set[ObjectKey]:
        """The keys that hold the value, in a namespace or ("") in all. The set is the caller's."""
        spaces = self._found[name].get(value, {})
        return set(spaces.get(namespace, ())) if namespace else set().union(*spaces.values())

    def is_empty(self, name: str) -> bool:
        """Whether no object has a value."""
        return not self._found[name]

    def put(self, record: Record) -> None:
        for name in self.names:
            self._put(name, record)

    def remove(self, key: ObjectKey) -> None:
        for name in self.names:
            self._drop(name, key, self._values[name].pop(key, ()))

    def _put(self, name: str, record: Record) -> None:
        key = record.key
        values = self.values(name, record)
        old = self._values[name].get(key, ())
        if values == old:
            return
        self._drop(name, key, old)
        if not values:
            self._values[name].pop(key, None)
            return
        self._values[name][key] = values
        found = self._found[name]
        for value in values:
            found.setdefault(value, {}).setdefault(key.namespace, set()).add(key)

    def _drop(self, name: str, key: ObjectKey, values: tuple[str, ...]) -> None:
        found = self._found[name]
        for value in values:
            spaces = found[value]
            keys = spaces[key.namespace]
            keys.discard(key)
            if not keys:
                del spaces[key.namespace]
            if not spaces:
                del found[value]

    def values(self, name: str, record: Record) -> tuple[str, ...]:
        """What the function says; an object that it fails on has no values, and is named in the log."""
        return self._guards[name].call(lambda: str(record.key), (), record)


def _texts(values: object) -> tuple[str, ...]:
    """The values without repetitions. A text alone would be taken for its letters, a number is never asked for."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"it has to return a list of texts, and [] for none, not {show(values)}")
    found = tuple(dict.fromkeys(values))
    if odd := [value for value in found if not isinstance(value, str)]:
        raise TypeError(f"it has to return a list of texts; {show(odd[0])} is none")
    return found


def path_values(path: str) -> IndexFunction:
    """The function that reads the values at a dotted path of the body: "spec.config", "spec.volumes.name".

    A list on the way stands for each of its items; numbers and booleans are spelled as in JSON; null and objects
    have no value. Only the first field of the path is decoded. Raises UsageError for what is no path.
    """
    first, *rest = parse_path(path)
    model = msgspec.defstruct("Top", [("value", Any, None)], rename={"value": first}, gc=False)
    decode = msgspec.json.Decoder(model).decode

    def values(record: Record) -> Iterable[str]:
        top: Any = decode(record.body)
        return _leaves(top.value, rest)

    return values


def _leaves(value: Any, path: list[str]) -> list[str]:
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item, path)]
    if path:
        return _leaves(value.get(path[0]), path[1:]) if isinstance(value, dict) else []
    if isinstance(value, str):
        return [value]
    if value is None or isinstance(value, dict):
        return []
    return [msgspec.json.encode(value).decode()]
