"""Patches against their definition (RFC 7386), and comparisons against what a server may do to an object."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.client.patches import (
    add_finalizer,
    bound,
    compare,
    containers,
    equal,
    merge_apply,
    merge_diff,
    merge_missing,
    remove_finalizer,
)
from kopylite.errors import ApiError

names = st.sampled_from(["a", "b", "c", "d"])
scalars = st.booleans() | st.integers(-3, 3) | st.text("xy", max_size=2)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=10
)
objects = st.dictionaries(names, values, max_size=4)
nullable = st.recursive(
    scalars | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)
nullable_objects = st.dictionaries(names, nullable, max_size=4)


@given(objects, objects)
def test_a_diff_applied_gives_the_other_object(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert equal(merge_apply(before, merge_diff(before, after)), after)


@given(nullable_objects, nullable_objects)
def test_nulls_count_as_absent_fields_in_a_diff(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert equal(merge_apply(before, merge_diff(before, after)), after)


@given(objects, nullable_objects)
def test_a_status_patch_bound_to_its_object_does_what_the_merge_patch_does(
    stored: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = {"metadata": {"uid": "u", "resourceVersion": "1"}, "status": stored}
    steps, patch_type = bound(before, {"status": patch}, "status")
    assert patch_type == "json"
    assert equal(json_patch(copy.deepcopy(before), steps), merge_apply(before, {"status": patch}))
    other = {"metadata": {"uid": "another", "resourceVersion": "1"}, "status": copy.deepcopy(stored)}
    with pytest.raises(ApiError):
        json_patch(other, steps)


@given(nullable_objects)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    assert merge_diff(value, copy.deepcopy(value)) == {}
    assert merge_missing(value, copy.deepcopy(value)) == {}


@given(nullable_objects, nullable_objects)
def test_a_diff_changes_neither_side(before: dict[str, Any], after: dict[str, Any]) -> None:
    copies = copy.deepcopy((before, after))
    merge_apply(before, merge_diff(before, after))
    merge_missing(before, after)
    assert (before, after) == copies


@given(objects, nullable_objects)
def test_the_missing_part_of_a_patch_does_what_the_whole_patch_does(
    stored: dict[str, Any], patch: dict[str, Any]
) -> None:
    missing = merge_missing(stored, patch)
    result = merge_apply(stored, missing)
    assert merge_missing(result, patch) == {}


@given(objects, st.data())
def test_what_the_server_adds_to_a_part_put_in_whole_is_no_difference(
    wish: dict[str, Any], data: st.DataObject
) -> None:
    def defaulted(value: Any) -> Any:
        if isinstance(value, dict):
            more = data.draw(st.dictionaries(st.sampled_from(["x", "y"]), scalars, max_size=2))
            return more | {name: defaulted(inner) for name, inner in value.items()}
        return [defaulted(inner) for inner in value] if isinstance(value, list) else value

    stored = {"metadata": {"name": "n"}, "spec": defaulted(wish)}
    draft = copy.deepcopy(stored)
    own = containers(draft)
    draft["spec"] = wish
    assert compare(draft, stored, own).differences == ()


@given(objects, st.data())
def test_a_field_taken_out_in_place_is_a_difference(spec: dict[str, Any], data: st.DataObject) -> None:
    stored = {"spec": spec | {"gone": 1}}
    draft = copy.deepcopy(stored)
    own = containers(draft)
    del draft["spec"]["gone"]
    assert [d.path for d in compare(draft, stored, own).differences] == [("spec", "gone")]


@given(objects, objects)
def test_an_edit_is_found_exactly_when_something_changed(before: dict[str, Any], after: dict[str, Any]) -> None:
    stored = {"spec": before}
    draft = copy.deepcopy(stored)
    own = containers(draft)
    spec = draft["spec"]
    spec.clear()
    spec.update(copy.deepcopy(before))
    own |= containers(draft)
    assert compare(draft, stored, own).differences == ()
    spec.clear()
    spec.update(copy.deepcopy(after))
    own |= containers(draft)
    found = compare(draft, stored, own).differences
    # The one thing that is absent and present at once: an empty list.
    if not _holds_empty_list(before) and not _holds_empty_list(after):
        assert bool(found) == (not equal(before, after))


def _holds_empty_list(value: Any) -> bool:
    return any(part == [] for part in containers(value).values())


def _apply_json_patch(metadata: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The three operations that are used, on `/metadata/...` paths."""
    document = {"metadata": copy.deepcopy(metadata)}
    for step in steps:
        *parents, last = step["path"].strip("/").split("/")
        target: Any = document
        for name in parents:
            target = target[name]
        where = int(last) if isinstance(target, list) and last != "-" else last
        if step["op"] == "test":
            assert target[where] == step["value"]
        elif step["op"] == "remove":
            del target[where]
        elif last == "-":
            target.append(step["value"])
        else:
            target[where] = step["value"]
    return document["metadata"]


finalizers = st.lists(st.sampled_from(["a/x", "b/y", "c/z"]), max_size=4)


@given(finalizers, st.sampled_from(["a/x", "b/y"]))
def test_finalizer_patches_add_once_and_remove_all(present: list[str], name: str) -> None:
    metadata = {"uid": "u", "resourceVersion": "7"} | ({"finalizers": present} if present else {})
    added = _apply_json_patch(metadata, add_finalizer(metadata, name))
    assert added["finalizers"] == (present if name in present else [*present, name])
    removed = _apply_json_patch(metadata, remove_finalizer(metadata, name))
    assert removed.get("finalizers", []) == [other for other in present if other != name]
