"""Patches against their definition (RFC 7386), and comparisons against what a server may do to an object."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.client.fields import UNKNOWN, Field
from kopylite.client.overlay import NONE, Overlay, holds, names_of
from kopylite.client.patches import (
    add_finalizer,
    bound_diff,
    equal,
    json_diff,
    merge_apply,
    merge_diff,
    rebased,
    remove_finalizer,
)
from kopylite.errors import ApiError
from kopylite.objects.reading import parts_of

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


# A list of maps that is merged by key, one that is a set, and one that is a value.
FIELD = Field({"of": {"k": {"in": "list", "keys": ["name"]}, "s": {"in": "list", "keys": []}}})
elements = st.dictionaries(st.sampled_from("xy"), scalars, max_size=2)


def named(key: str) -> st.SearchStrategy[dict[str, Any]]:
    return elements.map(lambda inner: {"name": key, **inner})


keyed = st.lists(st.sampled_from("pqrs"), unique=True, max_size=4).flatmap(
    lambda keys: st.tuples(*map(named, keys)).map(list)
)
sets = st.lists(st.sampled_from("pqrs"), unique=True, max_size=4)
wholes = st.lists(values, max_size=3)
documents = st.fixed_dictionaries({}, optional={"k": keyed, "s": sets, "l": wholes, "m": objects, "v": scalars})


def bound_to_uid(document: dict[str, Any], uid: str = "u") -> dict[str, Any]:
    return copy.deepcopy(document) | {"metadata": {"uid": uid, "resourceVersion": "1"}}


@given(documents, documents)
def test_a_json_diff_gives_the_other_object(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert json_patch(copy.deepcopy(before), json_diff(before, after, FIELD)) == after


@given(documents, documents)
def test_a_bound_patch_is_for_one_object_only(before: dict[str, Any], after: dict[str, Any]) -> None:
    stored, wanted = bound_to_uid(before), bound_to_uid(after)
    steps, patch_type = bound_diff(stored, wanted, FIELD, "status")
    assert patch_type == "json"
    assert json_patch(copy.deepcopy(stored), steps) == wanted
    with pytest.raises(ApiError):
        json_patch(bound_to_uid(before, "another"), steps)
    patch, patch_type = bound_diff(stored, wanted, FIELD)
    assert patch["metadata"]["uid"] == "u" if patch_type == "merge" else patch[0]["value"] == "u"


@given(documents, documents, documents)
def test_what_others_wrote_meanwhile_is_kept_or_the_patch_fails(
    read: dict[str, Any], after: dict[str, Any], meanwhile: dict[str, Any]
) -> None:
    steps = json_diff(read, after, FIELD)
    try:
        result = json_patch(copy.deepcopy(meanwhile), steps)
    except ApiError:
        return
    for name in ("k", "s", "l", "m"):
        if equal(read.get(name), after.get(name)):
            assert equal(result.get(name), meanwhile.get(name)), "not touched"
    theirs = {element["name"]: element for element in meanwhile.get("k", [])}
    mine = {element["name"] for element in after.get("k", []) if element not in read.get("k", [])}
    known = {element["name"] for element in read.get("k", [])}
    for name, element in theirs.items():
        if name not in mine and name not in known:
            assert element in result["k"]
    names = [element["name"] for element in result.get("k", [])]
    assert len(names) == len(set(names))


@given(documents, documents, documents)
def test_a_second_diff_after_ones_own_write_begins_where_that_has_led(
    read: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    stored = json_patch(copy.deepcopy(read), json_diff(read, first, FIELD))
    seen = rebased(read, first, stored, FIELD)
    assert json_patch(copy.deepcopy(stored), json_diff(seen, second, FIELD)) == second


@given(nullable_objects)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    assert merge_diff(value, copy.deepcopy(value)) == {}
    assert Overlay({}).merge(value, copy.deepcopy(value), UNKNOWN) is value


@given(nullable_objects, nullable_objects)
def test_a_diff_changes_neither_side(before: dict[str, Any], after: dict[str, Any]) -> None:
    copies = copy.deepcopy((before, after))
    merge_apply(before, merge_diff(before, after))
    Overlay({}).merge(before, after, UNKNOWN)
    assert (before, after) == copies


@given(objects, nullable_objects)
def test_a_partial_overlay_of_literal_lists_is_a_merge_patch(stored: dict[str, Any], patch: dict[str, Any]) -> None:
    lists = [part for part in parts_of(patch).values() if isinstance(part, list)]
    literal = {number: part for found in lists for number, part in parts_of(found).items()}
    merged = Overlay(literal, partial=True).merge(stored, patch, UNKNOWN)
    assert equal(merged, merge_apply(stored, patch))


def defaulted(value: Any, data: st.DataObject) -> Any:
    """What a server may make of a value: more fields in its maps, also inside of lists."""
    if isinstance(value, dict):
        more = data.draw(st.dictionaries(st.sampled_from(["x", "y"]), scalars, max_size=2))
        return more | {name: defaulted(inner, data) for name, inner in value.items()}
    return [defaulted(inner, data) for inner in value] if isinstance(value, list) else value


@given(objects, st.data())
def test_what_the_server_adds_to_a_part_put_in_whole_is_no_difference(
    desired: dict[str, Any], data: st.DataObject
) -> None:
    stored = {"spec": defaulted(desired, data)}
    assert Overlay({}).merge(stored, {"spec": desired}, UNKNOWN) is stored


@given(documents, documents, documents)
def test_a_part_put_in_whole_holds_what_is_desired_and_loses_nothing_of_others(
    first: dict[str, Any], theirs: dict[str, Any], second: dict[str, Any]
) -> None:
    stored = Overlay({}).merge(theirs, first, FIELD)
    names = names_of(first, FIELD, {})
    merged = Overlay({}).merge(stored, second, FIELD, names)
    assert Overlay({}).merge(merged, second, FIELD, names_of(second, FIELD, {})) is merged, "done in one"
    for name in theirs.keys() - first.keys() - second.keys():
        assert merged[name] == theirs[name]
    for name in first.keys() - second.keys():
        if not isinstance(theirs.get(name), dict | list):
            assert name not in merged or merged[name] == {}
    for key, element in {element["name"]: element for element in second.get("k", [])}.items():
        found = next(element for element in merged["k"] if element["name"] == key)
        assert found | element == found
    wanted = {element["name"] for part in (first, second) for element in part.get("k", [])}
    others = [element for element in theirs.get("k", []) if element["name"] not in wanted]
    assert "k" not in second or [e for e in merged["k"] if e["name"] not in wanted] == others


@given(documents, st.data())
def test_what_is_held_as_it_is_has_nothing_to_merge(desired: dict[str, Any], data: st.DataObject) -> None:
    stored = data.draw(st.just(defaulted(desired, data)) | documents)
    parts = list(parts_of(desired).values())
    literal = {id(part): part for part in parts if data.draw(st.booleans())}
    if holds(stored, desired, literal):
        assert Overlay(literal).merge(stored, desired, FIELD) is stored
    assert holds(desired, copy.deepcopy(desired), {})


@given(objects, st.data())
def test_a_field_taken_out_in_place_goes(spec: dict[str, Any], data: st.DataObject) -> None:
    stored = {"spec": spec | {"gone": 1}}
    copied = copy.deepcopy(stored)
    literal = parts_of(copied)
    del copied["spec"]["gone"]
    assert equal(Overlay(literal).merge(stored, copied, UNKNOWN), {"spec": spec})


@given(objects, objects)
def test_a_literal_overlay_is_what_it_says(before: dict[str, Any], after: dict[str, Any]) -> None:
    desired = copy.deepcopy(after)
    literal = parts_of(desired)
    merged = Overlay(literal).merge(before, desired, UNKNOWN, NONE)
    assert equal(merged, after)
    assert (merged is before) == equal(before, after)


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
