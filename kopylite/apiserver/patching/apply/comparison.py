"""Which fields two versions of an object differ in. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from kopylite.apiserver.patching.apply.fieldsets import LEAF, SELF, Fields, union, with_self
from kopylite.apiserver.patching.apply.topology import NoElement, Topology

_ABSENT: Any = object()


class Differences(NamedTuple):
    """The fields that are new or have another value, and those that are gone."""

    changed: Fields
    removed: Fields


def compare(old: dict[str, Any], new: dict[str, Any], topology: Topology) -> Differences:
    """The differences between two objects of one schema. List elements without keys are left out."""
    changed, removed = _Comparison().node(old, new, topology)
    return Differences(changed or {}, removed or {})


_Pair = tuple[Fields | None, Fields | None]
_SAME: _Pair = (None, None)


class _Comparison:
    """The walk over two values. Each step answers with the nodes (changed, removed) for its element."""

    def node(self, old: Any, new: Any, topology: Topology | None) -> _Pair:
        if old is _ABSENT:
            return everything(new, topology), None
        if new is _ABSENT:
            return None, everything(old, topology)
        if old == new and isinstance(old, bool) is isinstance(new, bool):
            return _SAME
        if topology is None:
            return LEAF, None
        kinds = _kind(old, topology), _kind(new, topology)
        if old is None or new is None:
            kinds = (kinds[1], kinds[1]) if old is None else (kinds[0], kinds[0])
        if kinds[0] != kinds[1]:
            return self._changed_kind(old, new, topology)
        # A value of another type than the schema's is refused later, by the validation: here it is one leaf.
        if kinds[0] == "map" and not topology.atomic_map and (old or new) and _are(dict, old, new):
            return self._maps(old or {}, new or {}, topology)
        if kinds[0] == "list" and not topology.atomic_list and (old or new) and _are(list, old, new):
            return self._lists(old or [], new or [], topology)
        return LEAF, None

    def _changed_kind(self, old: Any, new: Any, topology: Topology) -> _Pair:
        changed = everything(new, topology)
        removed = everything(old, topology)
        gone = {k: v for k, v in removed.items() if k != SELF} if removed else {}
        return with_self({k: v for k, v in (changed or {}).items() if k != SELF}, True), gone or None

    def _maps(self, old: dict[str, Any], new: dict[str, Any], topology: Topology) -> _Pair:
        changed: Fields = {}
        removed: Fields = {}
        for name, value in new.items():
            before = old.get(name, _ABSENT)
            if before is not value:
                self._collect(f"f:{name}", self.node(before, value, topology.field(name)), changed, removed)
        for name, value in old.items():
            if name not in new:
                self._collect(f"f:{name}", self.node(value, _ABSENT, topology.field(name)), changed, removed)
        return changed or None, removed or None

    @staticmethod
    def _collect(element: str, pair: _Pair, changed: Fields, removed: Fields) -> None:
        if pair[0] is not None:
            changed[element] = pair[0]
        if pair[1] is not None:
            removed[element] = pair[1]

    def _lists(self, old: list[Any], new: list[Any], topology: Topology) -> _Pair:
        changed: Fields = {}
        removed: Fields = {}
        before, after = grouped(old, topology), grouped(new, topology)
        for element in before | after:
            pair = self._elements(before.get(element, []), after.get(element, []), topology.element)
            self._collect(element, pair, changed, removed)
        return changed or None, removed or None

    def _elements(self, old: list[Any], new: list[Any], topology: Topology) -> _Pair:
        """Elements that share their keys: duplicates count as one leaf."""
        if len(old) <= 1 and len(new) <= 1:
            return self.node(old[0] if old else _ABSENT, new[0] if new else _ABSENT, topology)
        if len(old) > 1 and len(new) > 1:
            return (LEAF, None) if old != new else _SAME
        if len(old) > 1:
            return (everything(new[0], topology) if new else None), LEAF
        gone = everything(old[0], topology) if old else None
        return LEAF, gone


def _are(wanted: type, *values: Any) -> bool:
    return all(value is None or isinstance(value, wanted) for value in values)


def _kind(value: Any, topology: Topology) -> str:
    """As which of the forms that the schema allows a value is treated: map, list or scalar."""
    if isinstance(value, dict) and topology.is_map:
        return "map"
    if isinstance(value, list) and topology.is_list:
        return "list"
    if value is not None and not isinstance(value, (dict, list)) and topology.scalar:
        return "scalar"
    return "map" if topology.is_map else "scalar" if topology.scalar else "list"


def grouped(values: list[Any], topology: Topology) -> dict[str, list[Any]]:
    """The elements of a list by path element; those that have none are left out."""
    groups: dict[str, list[Any]] = {}
    for value in values:
        try:
            element = topology.element_of(value)
        except NoElement:
            continue
        groups.setdefault(element, []).append(value)
    return groups


def everything(value: Any, topology: Topology | None) -> Fields | None:
    """The node for an element that comes or goes as a whole: it and all fields below it."""
    if topology is None:
        return LEAF
    if isinstance(value, dict) and topology.is_map and not topology.atomic_map and value:
        children = {f"f:{k}": everything(v, topology.field(k)) for k, v in value.items()}
        return {SELF: LEAF, **children}
    if isinstance(value, list) and topology.is_list and not topology.atomic_list and value:
        elements: Fields = {}
        for element, group in grouped(value, topology).items():
            elements[element] = everything(group[0], topology.element) if len(group) == 1 else LEAF
        return {SELF: LEAF, **elements}
    return LEAF


def field_set(config: dict[str, Any], topology: Topology) -> Fields:
    """The fields that an applied configuration mentions, which is what its manager owns."""
    return _mentioned(config, topology) or {}


def _mentioned(value: Any, topology: Topology | None) -> Fields | None:
    """The fields in a value; a value that is a leaf answers LEAF."""
    if topology is None:
        return LEAF
    if isinstance(value, dict) and topology.is_map and not topology.atomic_map:
        fields: Fields = {}
        for name, inner in value.items():
            below = _mentioned(inner, topology.field(name))
            undeclared = name not in topology.fields
            if inner is None or inner == {} or below is LEAF:
                fields[f"f:{name}"] = LEAF
            elif below is not None or undeclared:
                node = with_self(below or {}, undeclared)
                fields[f"f:{name}"] = LEAF if node is None else node
        return fields or None
    if isinstance(value, list) and topology.is_list and not topology.atomic_list:
        elements: Fields = {}
        for element, group in grouped(value, topology).items():
            below = _mentioned(group[0], topology.element) if len(group) == 1 else LEAF
            elements[element] = union({SELF: LEAF}, below) if below else LEAF
        return elements or None
    return LEAF


def settled(fields: Fields, topology: Topology) -> Fields:
    """What a manager owns, where the schema has changed since: of what is one leaf now, it owns the leaf."""
    result: Fields = {}
    for element, node in fields.items():
        inner = None
        if element != SELF and node:
            inner = topology.field(element[2:]) if element.startswith("f:") else topology.element
        if inner is None or (inner.is_map and inner.is_list):
            result[element] = node
        else:
            below = next(e for e in node if e != SELF)
            atomic = (
                inner.is_map and inner.atomic_map if below.startswith("f:") else inner.is_list and inner.atomic_list
            )
            result[element] = LEAF if atomic else settled(node, inner)
    return result
