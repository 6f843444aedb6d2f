"""Merge an applied configuration into an object, and take fields out again, by the schema's topology. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kopylite.apiserver.patching.apply.comparison import grouped
from kopylite.apiserver.patching.apply.fieldsets import LEAF, SELF, Fields, is_member, path_text, with_self
from kopylite.apiserver.patching.apply.topology import NoElement, Topology

_ABSENT: Any = object()


def merge(live: dict[str, Any], config: dict[str, Any], topology: Topology) -> dict[str, Any]:
    """A new object: the live one with every field of the configuration set.

    Lists that are merged come in the order of the configuration, with the other elements of the live list
    kept in between. Parts that do not change are shared with the arguments.
    """
    merged = _merge(live, config, topology)
    return merged if isinstance(merged, dict) else {}


def _merge(live: Any, config: Any, topology: Topology | None) -> Any:
    if config is _ABSENT:
        return live
    if topology is None or live is _ABSENT:
        return config
    if topology.is_map and isinstance(config, dict) and isinstance(live, dict):
        if topology.atomic_map or not (live or config):
            return config
        names = [*live, *(k for k in config if k not in live)]
        return {k: _merge(live.get(k, _ABSENT), config.get(k, _ABSENT), topology.field(k)) for k in names}
    if topology.is_list and isinstance(config, list) and isinstance(live, list):
        if topology.atomic_list or not (live or config):
            return config
        return _merge_lists(live, config, topology)
    if config is None and live and not _is_leaf(live, topology):
        # A null is an empty map or list here: nothing is set, and what others set stays.
        return live
    return config


def atomics(value: Any, topology: Topology | None, path: str = "") -> Iterator[str]:
    """The paths of what a value has that is replaced as a whole."""
    if topology is None:
        return
    if isinstance(value, dict) and topology.is_map:
        if topology.atomic_map:
            yield path
        for name, inner in value.items():
            yield from atomics(inner, topology.fields.get(name), f"{path}.{name}")
    elif isinstance(value, list) and topology.is_list:
        if topology.atomic_list:
            yield path
        for inner in value:
            yield from atomics(inner, topology.element, f"{path}[]")


def _is_leaf(value: Any, topology: Topology) -> bool:
    if isinstance(value, dict):
        return topology.atomic_map
    return topology.atomic_list if isinstance(value, list) else True


def _merge_lists(live: list[Any], config: list[Any], topology: Topology) -> list[Any]:
    """Walk both lists side by side: the configuration's order rules, the live list fills the gaps."""
    left = [topology.element_of(v) for v in live]
    right = [topology.element_of(v) for v in config]
    # Of duplicates in the live list, none is merged with the configuration's element.
    before = {e: g[0] if len(g) == 1 else _ABSENT for e, g in grouped(live, topology).items()}
    wanted = dict(zip(right, config, strict=True))
    shared = iter([e for e in right if e in before])
    next_shared = next(shared, None)
    result: list[Any] = []
    done: set[str] = set()
    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left) and j < len(right):
            if left[i] == right[j]:
                result.append(_merge(before[left[i]], wanted[left[i]], topology.element))
                done.add(left[i])
                i, j = i + 1, j + 1
                next_shared = next(shared, None)
                continue
            if left[i] in wanted and next_shared is not None and next_shared != left[i]:
                # Shared, but not the one whose turn it is.
                i += 1
                continue
        if i < len(left):
            if left[i] not in wanted:
                result.append(live[i])
                i += 1
                continue
            if left[i] in done:
                i += 1
        if j < len(right):
            element = right[j]
            done.add(element)
            result.append(_merge(before.get(element, _ABSENT), wanted[element], topology.element))
            j += 1
            if element == next_shared:
                next_shared = next(shared, None)
    return result


def remove_items(value: Any, items: Fields, topology: Topology | None) -> Any:
    """The value without the members of a set. A map or list that becomes empty is None, as one that was."""
    if topology is None:
        return value
    if isinstance(value, dict) and topology.is_map:
        if topology.atomic_map or not value:
            return None
        kept: dict[str, Any] = {}
        for name, inner in value.items():
            node = items.get(f"f:{name}")
            if node is None:
                kept[name] = inner
            elif not is_member(node):
                kept[name] = remove_items(inner, node, topology.field(name))
        return kept or None
    if isinstance(value, list) and topology.is_list:
        if topology.atomic_list or not value:
            return None
        left = []
        for inner in value:
            node = items.get(topology.element_of(inner))
            if node is None:
                left.append(inner)
            elif not is_member(node):
                left.append(remove_items(inner, node, topology.element))
        return left or None
    return value


def with_named_fields(fields: Fields, topology: Topology | None) -> Fields:
    """The set with every declared field added that has members below it; elements of lists and maps are not."""
    result: Fields = {}
    for element, node in fields.items():
        if element == SELF:
            continue
        name = element[2:] if element[:2] == "f:" else None
        declared = name is not None and topology is not None and name in topology.fields
        below = topology and (topology.element if name is None else topology.field(name))
        inner = with_self(with_named_fields(node, below), is_member(node) or declared)
        result[element] = LEAF if inner is None else inner
    return result


def problems(
    value: Any, topology: Topology | None, path: tuple[str, ...] = (), *, duplicates: bool = False
) -> list[str]:
    """What keeps a configuration from being typed by its schema, each as `.path: text`.

    Args:
        duplicates: list elements of one key are no problem: objects that are stored may have them.
    """
    if topology is None:
        return [f"{path_text(path)}: field not declared in schema"]
    if value is None:
        return []
    if isinstance(value, dict):
        if not topology.is_map:
            return [f"{path_text(path)}: {_expected(topology, value)}"]
        return [
            p
            for k, v in value.items()
            for p in problems(v, topology.field(k), (*path, f"f:{k}"), duplicates=duplicates)
        ]
    if isinstance(value, list):
        if not topology.is_list:
            return [f"{path_text(path)}: {_expected(topology, value)}"]
        return _list_problems(value, topology, path, duplicates)
    if not _fits(value, topology.scalar):
        return [f"{path_text(path)}: {_expected(topology, value)}"]
    return []


def _list_problems(values: list[Any], topology: Topology, path: tuple[str, ...], duplicates: bool) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for index, value in enumerate(values):
        if topology.atomic_list:
            found += [
                f"{path_text(path)}[{index}]{p}" for p in problems(value, topology.element, duplicates=duplicates)
            ]
            continue
        try:
            element = topology.element_of(value)
        except NoElement as error:
            return [*found, f"{path_text(path)}: element {index}: {error}"]
        if element in seen and not duplicates:
            found.append(f"{path_text(path)}: duplicate entries for key {path_text([element])}")
        seen.add(element)
        found += problems(value, topology.element, (*path, element), duplicates=duplicates)
    return found


def _fits(value: Any, scalar: str) -> bool:
    if scalar == "string":
        return isinstance(value, str)
    if scalar in ("integer", "number"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if scalar == "boolean":
        return isinstance(value, bool)
    return scalar == "any"


_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}",
             list: "[]interface {}"}  # fmt: skip


def _expected(topology: Topology, value: Any) -> str:
    if topology.is_map:
        return f"expected map, got &{{{_shown(value)}}}"
    if topology.is_list:
        return f"expected list, got &{{{_shown(value)}}}"
    if topology.scalar == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if topology.scalar in ("integer", "number"):
        return f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"
    if topology.scalar == "boolean":
        return f"expected boolean, got &{{{_shown(value)}}}"
    return f"expected any scalar, got &{{{_shown(value)}}}"


def _shown(value: Any) -> str:
    """A value by Go's `%v`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{_shown(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else "<nil>" if value is None else str(value)


def _go_syntax(value: Any) -> str:
    """A value by Go's `%#v`, as far as it is printed here."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        inner = ", ".join(f'"{k}":interface {{}}({_go_syntax(v)})' for k, v in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return f'"{value}"' if isinstance(value, str) else str(value)
