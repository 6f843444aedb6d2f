"""Patches: what turns one state of an object into another, bound to the state that it was made from. Pure.

Objects are in wire form: dicts, lists, strings, numbers, booleans, None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kopylite.client.fields import Field
from kopylite.client.overlay import ABSENT, elements_by_key
from kopylite.client.verbs import PatchType

JsonPatch = list[dict[str, Any]]


def merge_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that turns `before` into `after`; {} when there is nothing to do.

    Lists are replaced whole. A None in `after` means the same as an absent field, since no merge patch can
    write a null.
    """
    patch: dict[str, Any] = {name: None for name in before if before[name] is not None and after.get(name) is None}
    for name, value in after.items():
        old = before.get(name)
        if old is value:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_diff(old, value):
                patch[name] = inner
        elif value is not None and not equal(old, value):
            # An old dict would be merged with; a new one must not carry nulls either.
            patch[name] = merge_apply({}, value) if isinstance(value, dict) else value
    return patch


def merge_apply(target: Any, patch: Any) -> Any:
    """`target` changed by a JSON merge patch; neither is modified."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_apply(result.get(name), value)
    return result


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values. A null field is an absent one; neither 1 and 1.0 nor 1 and true are equal."""
    if isinstance(a, dict):
        return isinstance(b, dict) and all(equal(a.get(name), b.get(name)) for name in a.keys() | b.keys())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return a is b or (type(a) is type(b) and bool(a == b))


def bound_diff(
    stored: Mapping[str, Any], merged: Mapping[str, Any], field: Field, subresource: str | None = None
) -> tuple[Any, PatchType]:
    """The patch that turns an object as it was read into another state, and fails rather than undo somebody's write.

    It fails for another object that took the name meanwhile. What others have written to other fields stays. Lists
    and maps that it takes out or puts in are tested to be as they were read; so are the list elements that it changes.

    Returns:
        A merge patch where that can tell all this: the main endpoint compares a uid in the patch. The status endpoint
        of custom resources does not, and no merge patch can test a list: else a JSON patch.
    """
    uid = (stored.get("metadata") or {}).get("uid")
    if not uid:
        return merge_diff(stored, merged), "merge"
    if subresource != "status":
        patch = merge_diff(stored, merged)
        if not _replaces(stored, patch):
            return with_identity(patch, {"uid": uid}), "merge"
    return [_test("/metadata/uid", uid), *json_diff(stored, merged, field)], "json"


def with_identity(patch: Mapping[str, Any], identity: Mapping[str, Any]) -> dict[str, Any]:
    """A patch in the form of an object, for this very one."""
    return {**patch, "metadata": {**identity, **(patch.get("metadata") or {})}}


def _replaces(stored: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Whether a merge patch writes a list, or takes out a list or map."""
    for name, value in patch.items():
        old = stored.get(name)
        if isinstance(value, list) or (isinstance(old, dict | list) and not isinstance(value, dict)):
            return True
        if isinstance(value, dict) and _replaces(old if isinstance(old, dict) else {}, value):
            return True
    return False


def json_diff(before: Mapping[str, Any], after: Mapping[str, Any], field: Field, path: str = "") -> JsonPatch:
    """The JSON patch that turns `before` into `after`, with tests of the lists and maps that it replaces."""
    steps: JsonPatch = []
    for name in before:
        if before[name] is not None and after.get(name) is None:
            where = f"{path}/{_escaped(name)}"
            steps += [*_unchanged(where, before[name]), {"op": "remove", "path": where}]
    for name, value in after.items():
        old = before.get(name)
        if old is value or value is None:
            continue
        where = f"{path}/{_escaped(name)}"
        if isinstance(value, dict) and isinstance(old, dict):
            steps += json_diff(old, value, field.child(name), where)
        elif isinstance(value, list) and isinstance(old, list):
            steps += _list_diff(old, value, field.child(name), where)
        elif not equal(old, value):
            tests = _unchanged(where, value, now=None) if old is None else _unchanged(where, old)
            steps += [*tests, {"op": "add", "path": where, "value": merge_apply({}, value)}]
    return steps


def _list_diff(before: list[Any], after: list[Any], field: Field, path: str) -> JsonPatch:
    if equal(before, after):
        return []
    replaced: JsonPatch = [_test(path, before), {"op": "replace", "path": path, "value": after}]
    old, new = elements_by_key(before, field), elements_by_key(after, field)
    if old is None or new is None:
        return replaced
    left = [key for key in old if key in new]
    if left != list(new)[: len(left)]:
        return replaced  # they come in another order
    steps: JsonPatch = []
    for index, (key, element) in enumerate(old.items()):
        if key in new and not equal(element, new[key]):
            steps += _is_element(element, field, f"{path}/{index}")
            steps += json_diff(element, new[key], field.each, f"{path}/{index}")
    for index, (key, element) in reversed(list(enumerate(old.items()))):
        if key not in new:
            steps += [*_is_element(element, field, f"{path}/{index}"), {"op": "remove", "path": f"{path}/{index}"}]
    added = list(new.values())[len(left) :]
    # Two that add the same one at once would have it twice.
    tests = [_test(path, before)] if added else []
    return [*tests, *steps, *({"op": "add", "path": f"{path}/-", "value": element} for element in added)]


def _is_element(element: Any, field: Field, path: str) -> Iterator[dict[str, Any]]:
    if not field.keys:
        yield _test(path, element)
    for name in field.keys or ():
        if name in element:
            yield _test(f"{path}/{_escaped(name)}", element[name])


def _unchanged(path: str, value: Any, now: Any = ABSENT) -> JsonPatch:
    """A test for a list or map only: that it is still there as it was, or (`now=None`) that there still is none."""
    return [_test(path, value if now is ABSENT else now)] if isinstance(value, dict | list) else []


def _test(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def bound_steps(stored: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> JsonPatch:
    """A JSON patch that somebody wrote for an object that was read, made to fail for any other object or list.

    A place in a list means nothing in another list: the lists that the patch leads into or replaces are tested.
    """
    metadata = stored.get("metadata") or {}
    if not metadata.get("uid"):
        return [dict(step) for step in steps]
    tests = {"/metadata/uid": metadata["uid"]}
    for step in steps:
        path = ""
        at: Any = stored
        for token in str(step.get("path", "")).split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(at, list):
                if name != "-":
                    tests[path] = at
                break
            path, at = f"{path}/{token}", at.get(name) if isinstance(at, dict) else None
        else:
            if isinstance(at, list) and step.get("op") != "test":
                tests[path] = at
    return [*(_test(path, value) for path, value in tests.items()), *map(dict, steps)]


def replaces_list(patch: Any, field: Field) -> bool:
    """Whether a strategic merge patch replaces a list: one that has no keys, or by a directive."""
    if isinstance(patch, list):
        return field.keys is None or any(replaces_list(element, field.each) for element in patch)
    if not isinstance(patch, dict):
        return False
    return patch.get("$patch") == "replace" or any(
        replaces_list(part, field.child(name)) for name, part in patch.items()
    )


def rebased(read: Any, merged: Any, answer: Any, field: Field) -> Any:
    """What was read, with the parts that a write has changed as the server answered.

    What others have changed meanwhile is not in it: whoever holds the object has not seen it.
    """
    if merged is read:
        return read
    if isinstance(read, dict) and isinstance(merged, dict) and isinstance(answer, dict):
        parts = {
            name: rebased(read.get(name, ABSENT), merged.get(name, ABSENT), answer.get(name, ABSENT), field.child(name))
            for name in {**read, **merged}
        }
        return {name: part for name, part in parts.items() if part is not ABSENT}
    if isinstance(read, list) and isinstance(merged, list) and isinstance(answer, list):
        old, new, now = (elements_by_key(part, field) for part in (read, merged, answer))
        if old is not None and new is not None and now is not None:
            kept = (rebased(old.get(key), new[key], now.get(key, ABSENT), field.each) for key in new)
            return [element for element in kept if element is not ABSENT]
    return answer


def add_finalizer(metadata: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The JSON patch that adds a finalizer to the object with this metadata; [] when it has it.

    It tests what it relies on: that this is the object, and the list still the one seen or still not there.
    """
    present = metadata.get("finalizers") or []
    if name in present:
        return []
    if present:
        return [
            {"op": "test", "path": "/metadata/uid", "value": metadata.get("uid")},
            {"op": "test", "path": "/metadata/finalizers", "value": present},
            {"op": "add", "path": "/metadata/finalizers/-", "value": name},
        ]
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")},
        {"op": "add", "path": "/metadata/finalizers", "value": [name]},
    ]


def remove_finalizer(metadata: Mapping[str, Any], *names: str) -> list[dict[str, Any]]:
    """The JSON patch that removes finalizers (each copy) from the object with this metadata; [] if it has none.

    It tests that it removes these names from this object, and nothing else.
    """
    present = metadata.get("finalizers") or []
    steps = []
    # From the end: removing an item moves those behind it.
    for index in range(len(present) - 1, -1, -1):
        if present[index] in names:
            path = f"/metadata/finalizers/{index}"
            steps += [{"op": "test", "path": path, "value": present[index]}, {"op": "remove", "path": path}]
    return [{"op": "test", "path": "/metadata/uid", "value": metadata.get("uid")}, *steps] if steps else []
