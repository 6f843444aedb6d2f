"""What an object was read from, beside what user code makes of it, so that a write can tell what was changed.

An object holds on to the bytes that it was decoded from (the cache's own, where it comes from there). They are no
field: they are in no comparison, repr or encoding, and copies have them too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, Protocol

from pydantic import BaseModel

from kopylite.objects.unstructured import Unstructured
from kopylite.objects.wireschema import camel

# Instances of models have it beside their fields, as a cached property would be.
READ = "_kopylite_read"


class _Holds(dict[type, bool]):
    """Whether values of a type may hold others."""

    def __missing__(self, cls: type) -> bool:
        return True


# Asked for each value of each object that is written: two loops of C are a quarter of what one of Python takes.
_HOLDS_MORE = _Holds({**dict.fromkeys((str, int, float, bool, type(None)), False), dict: True, list: True}).__getitem__


class Later(Protocol):
    """Bytes that are made when they are asked for: most objects are written once, and nobody asks."""

    def __call__(self) -> bytes: ...


def read_from(obj: Any, raw: bytes | Later) -> None:
    """Note which bytes an object was read from, or which state of it this process has seen since."""
    if isinstance(obj, Unstructured):
        obj._read = raw
    elif hasattr(obj, "__dict__"):
        obj.__dict__[READ] = raw


def bytes_of(obj: Any) -> bytes | None:
    """The bytes that an object was read from; None for one that was not read."""
    found = getattr(obj, "_read", None) if isinstance(obj, Unstructured) else getattr(obj, "__dict__", {}).get(READ)
    if found is None or isinstance(found, bytes):
        return found
    made: bytes = found()
    read_from(obj, made)
    return made


def parts_of(value: Any) -> dict[int, Any]:
    """All maps, lists and models in a value by their ids, itself included, by Python's own structure."""
    found: dict[int, Any] = {}
    waiting = [value]
    for part in waiting:  # it grows
        if id(part) in found:
            continue
        if isinstance(part, dict):
            inside: Any = part.values()
        elif isinstance(part, list):
            inside = part
        elif _is_model(part):
            inside = [inner for _, inner in _named(part)]
        else:
            continue
        found[id(part)] = part
        waiting += compress(inside, map(_HOLDS_MORE, map(type, inside)))
    return found


def paired(value: Any, wire: Any) -> Iterator[tuple[Any, Any]]:
    """The maps, lists and models in a value, each with the map or list in its wire form that stands for it."""
    if isinstance(value, list) and isinstance(wire, list) and len(value) == len(wire):
        yield value, wire
        for inner, written in zip(value, wire, strict=True):
            yield from paired(inner, written)
    elif isinstance(wire, dict) and (isinstance(value, dict) or _is_model(value)):
        yield value, wire
        for name, inner in value.items() if isinstance(value, dict) else _named(value):
            if name in wire:
                yield from paired(inner, wire[name])


def _is_model(value: Any) -> bool:
    return isinstance(value, BaseModel) or hasattr(type(value), "attribute_map")


def _named(model: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a model by their names on the wire."""
    if not isinstance(model, BaseModel):
        for name, wire_name in type(model).attribute_map.items():
            yield wire_name, getattr(model, name)
        return
    fields = type(model).model_fields
    for name, inner in model.__dict__.items():
        if name in fields:
            alias = fields[name].serialization_alias
            yield camel(name) if alias is None else alias, inner
    yield from (model.model_extra or {}).items()
