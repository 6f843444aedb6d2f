"""Edits: what the user's code did to an object, carried over to the very object that came, as a JSON patch. Pure.

A typed object may not know each field of what came over the wire, or write a default that nobody set. So what is sent
back is never its wire form, but only what differs between its wire form before and after, laid over what came.
"""

from __future__ import annotations

from typing import Any

PatchSteps = list[dict[str, Any]]


def carried(came: Any, before: Any, after: Any) -> Any:
    """What came, with the changes from `before` to `after` made in it; nothing is modified.

    Args:
        came: as on the wire.
        before: how the user's code was shown it; the same, but for fields that its class hides or adds.
        after: how the user's code left it.
    """
    if same(before, after):
        return came
    if isinstance(came, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _carried_map(came, before, after)
    if isinstance(came, list) and isinstance(before, list) and isinstance(after, list) and len(came) == len(before):
        return _carried_list(came, before, after)
    return after


def _carried_map(came: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    result = {name: value for name, value in came.items() if name in after or name not in before}
    for name, value in after.items():
        if name not in before:
            result[name] = value
        elif name in came:
            result[name] = carried(came[name], before[name], value)
        elif not same(before[name], value):  # a default that only the class knows, and that was changed
            result[name] = value
    return result


def _carried_list(came: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Elements that stayed as they were keep what came, wherever they went; a changed one is told by its place."""
    left = dict(enumerate(before))
    origins: list[int | None] = [None] * len(after)
    if len(before) == len(after):
        found = [index for index in left if same(before[index], after[index])]
    else:
        found = _common_start(before, after)
    for index in found:
        origins[index] = index
        del left[index]
    for index, element in enumerate(after):
        if origins[index] is None:
            match = next((number for number, old in left.items() if same(old, element)), None)
            if match is not None:
                origins[index] = match
                del left[match]
    for index in range(len(after)):
        if origins[index] is None and index in left:
            origins[index] = index
            del left[index]
    return [
        element if (origin := origins[index]) is None else carried(came[origin], before[origin], element)
        for index, element in enumerate(after)
    ]


def _common_start(before: list[Any], after: list[Any]) -> list[int]:
    found: list[int] = []
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if not same(old, new):
            break
        found.append(index)
    return found


def patch_of(before: Any, after: Any, path: str = "") -> PatchSteps:
    """The JSON patch (RFC 6902) that turns one JSON value into another; [] when they are the same.

    A null is not the same as an absent field here, and 1 is neither 1.0 nor true.
    """
    if same(before, after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        steps: PatchSteps = [{"op": "remove", "path": _below(path, name)} for name in before if name not in after]
        for name, value in after.items():
            if name in before:
                steps += patch_of(before[name], value, _below(path, name))
            else:
                steps.append({"op": "add", "path": _below(path, name), "value": value})
        return steps
    if isinstance(before, list) and isinstance(after, list):
        return _list_patch(before, after, path)
    return [{"op": "replace", "path": path, "value": after}]


def _list_patch(before: list[Any], after: list[Any], path: str) -> PatchSteps:
    common = min(len(before), len(after))
    steps: PatchSteps = []
    for index in range(common):
        steps += patch_of(before[index], after[index], f"{path}/{index}")
    steps += [{"op": "remove", "path": f"{path}/{index}"} for index in range(len(before) - 1, common - 1, -1)]
    steps += [{"op": "add", "path": f"{path}/-", "value": value} for value in after[common:]]
    whole = {"op": "replace", "path": path, "value": after}
    return steps if len(steps) <= len(after) else [whole]


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: null is a value, and 1, 1.0 and true are three."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a is b or (type(a) is type(b) and bool(a == b))


def at_path(value: Any, path: str) -> Any:
    """The part of an object at a path as in `spec.template.name` or `spec.ports[0].port`; None: there is none."""
    for step in path.replace("[", ".[").split("."):
        if step.startswith("[") and step.endswith("]"):
            digits = step[1:-1]
            found = digits.isdigit() and isinstance(value, list) and int(digits) < len(value)
            value = value[int(digits)] if found else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _below(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
