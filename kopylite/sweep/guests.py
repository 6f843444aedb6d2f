"""Guests: what another writer puts beside the operator's own elements of a list, and looks for afterwards."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from kopylite.sweep.states import HOLD

GUEST = "sweep-note"
FINALIZERS = "/metadata/finalizers"


def grown_lists(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Where a write made a list longer and kept what was in it: others' elements are there to stay, too.

    A text with commas, in the data of a ConfigMap say, is a list. Statuses are left out: they have one writer.
    """
    if before.get("metadata", {}).get("deletionTimestamp"):
        return
    ours, theirs = (obj.get("metadata", {}).get("finalizers") or [] for obj in (after, before))
    if set(ours) - set(theirs):
        yield FINALIZERS
    for name in before:
        if name not in ("metadata", "status", "apiVersion", "kind"):
            yield from _grown(before[name], after.get(name), f"/{_escaped(name)}")


def _grown(before: Any, after: Any, pointer: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            yield from _grown(before[name], after.get(name), f"{pointer}/{_escaped(name)}")
    elif isinstance(before, list) and isinstance(after, list):
        if before and len(after) > len(before) and all(each in after for each in before) and _guest(before) is not None:
            yield pointer
    elif isinstance(before, str) and isinstance(after, str) and before != after:
        old, new = before.split(","), after.split(",")
        if before and len(new) > len(old) and set(old) < set(new):
            yield pointer


def with_guest(obj: Mapping[str, Any], pointer: str) -> dict[str, Any] | None:
    """The object with one more element; None: there is no such list in it."""
    changed = copy.deepcopy(dict(obj))
    if pointer == FINALIZERS:
        changed["metadata"]["finalizers"] = [*(changed["metadata"].get("finalizers") or []), HOLD]
        return changed
    holder, name = _holder(changed, pointer)
    if holder is None or not holder.get(name):
        return None
    value = holder[name]
    if isinstance(value, str):
        holder[name] = f"{value},{GUEST}"
        return changed
    guest = _guest(value)
    if guest is None:
        return None
    holder[name] = [*value, guest]
    return changed


def has_guest(obj: Mapping[str, Any], pointer: str) -> bool:
    """Whether the element is still there."""
    holder, name = _holder(obj, pointer)
    return holder is not None and any(map(_is_guest, _elements(holder.get(name))))


def without_guest(obj: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """The object without the element."""
    changed = copy.deepcopy(dict(obj))
    holder, name = _holder(changed, pointer)
    if holder is not None and name in holder:
        kept = [each for each in _elements(holder[name]) if not _is_guest(each)]
        holder[name] = ",".join(kept) if isinstance(holder[name], str) else kept
    return changed


def _elements(value: Any) -> list[Any]:
    return value.split(",") if isinstance(value, str) else value or []


def _guest(elements: list[Any]) -> Any:
    first = elements[0]
    if isinstance(first, str):
        return GUEST
    return {**first, "name": GUEST} if isinstance(first, dict) and "name" in first else None


def _is_guest(element: Any) -> bool:
    return element in (GUEST, HOLD) or (isinstance(element, dict) and element.get("name") == GUEST)


def _holder(obj: Mapping[str, Any], pointer: str) -> tuple[Any, str]:
    """The map that holds what a pointer names, and its key there."""
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    holder: Any = obj
    for name in path:
        holder = holder.get(name) if isinstance(holder, Mapping) else None
    return (holder, last) if isinstance(holder, Mapping) else (None, last)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
