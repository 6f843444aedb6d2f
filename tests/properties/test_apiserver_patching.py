"""Properties of patches and of field ownership, whatever the objects are."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.apiserver.builtin import data
from kopylite.apiserver.builtin.scalars import Reading
from kopylite.apiserver.builtin.strategies import CODECS
from kopylite.apiserver.patching.apply import apply, fieldsets, update_managed_fields
from kopylite.apiserver.patching.apply.comparison import compare, field_set
from kopylite.apiserver.patching.apply.merging import merge, remove_items
from kopylite.apiserver.patching.apply.topology import topology_of
from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.apiserver.patching.merge_patch import merge_difference, merge_patch
from kopylite.apiserver.patching.strategic import strategic_merge
from tests.sizes import examples

POD = data.DEFINITIONS.node("io.k8s.api.core.v1.Pod")
TOPOLOGY = topology_of(POD)
NOW = "2026-01-01T00:00:00Z"
MANAGERS = ("one", "two", "three")

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
)


def without_nulls(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    values = inner.filter(lambda v: v is not None)
    return st.lists(values, max_size=3) | st.dictionaries(st.text("abc", max_size=2), values, max_size=3)


plain_objects = st.dictionaries(
    st.text("abc", max_size=2), st.recursive(scalars.filter(lambda v: v is not None), without_nulls), max_size=4
)


def named_elements(
    names: str, low: int, high: int, **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists whose elements have a name each, of one letter, and no two the same."""
    elements: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {"name": st.sampled_from(names)}, optional=optional
    )
    return st.lists(elements, min_size=low, max_size=high, unique_by=lambda element: str(element["name"]))


def pods_with(low: int) -> st.SearchStrategy[dict[str, Any]]:
    """Pods whose lists and maps have at least `low` elements."""
    env = named_elements("AB", low, 2, value=st.sampled_from("12"))
    args = st.lists(st.sampled_from("12"), min_size=low, max_size=2)
    containers = named_elements("abc", low, 3, image=st.sampled_from(["x", "y"]), args=args, env=env)
    return st.builds(
        lambda spec, labels, finalizers: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", **labels, **finalizers},
            "spec": spec,
        },
        st.fixed_dictionaries(
            {},
            optional={
                "containers": containers,
                "nodeSelector": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), min_size=low, max_size=2),
                "nodeName": st.sampled_from(["n", "m"]),
                "tolerations": st.lists(
                    st.fixed_dictionaries({"key": st.sampled_from("ab")}), min_size=low, max_size=2
                ),
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), min_size=low, max_size=2)
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={"finalizers": st.lists(st.sampled_from(["a/1", "b/2"]), min_size=low, max_size=2, unique=True)},
        ),
    )


pods = pods_with(0)
# An empty list or map has no form of its own in a typed object: who applies one applies it anew each time.
full_pods = pods_with(1)


def do_apply(
    live: dict[str, Any] | None, config: dict[str, Any], manager: str, *, force: bool = True
) -> dict[str, Any]:
    """An apply as the server does it: the result is brought into the form of its type."""
    result = apply(live, config, schema=POD, manager=manager, api_version="v1", subresource="", now=NOW, force=force)
    return CODECS["io.k8s.api.core.v1.Pod"].decode(copy.deepcopy(result), "", Reading())


def without_nulls_in(value: Any) -> Any:
    """What decoding makes of a field that server-side apply emptied."""
    if isinstance(value, dict):
        return {k: without_nulls_in(v) for k, v in value.items() if v is not None}
    return [without_nulls_in(v) for v in value] if isinstance(value, list) else value


def is_scalar(obj: dict[str, Any], path: tuple[str, ...]) -> bool:
    value: Any = obj
    for element in path:
        if element.startswith("f:"):
            value = value[element[2:]]
        elif element.startswith("k:"):
            keys = json.loads(element[2:])
            value = next(v for v in value if keys.items() <= v.items())
        else:
            value = json.loads(element[2:])
    return not isinstance(value, (dict, list))


@given(plain_objects, plain_objects)
def test_a_merge_patch_of_the_difference_leads_to_the_other_object(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merge_patch(old, merge_difference(old, new)) == new


@given(plain_objects, documents)
def test_a_merge_patch_applied_twice_is_applied_once(document: dict[str, Any], patch: Any) -> None:
    if isinstance(patch, dict):
        once = merge_patch(document, patch)
        assert merge_patch(once, patch) == once


@given(
    st.dictionaries(st.text("abc/~", min_size=1, max_size=3), documents, max_size=3),
    st.text("abc/~", max_size=3),
    documents,
)
def test_a_json_patch_adds_what_a_test_then_finds(document: dict[str, Any], key: str, value: Any) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    before = copy.deepcopy(document)
    result = json_patch(
        document, [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    )
    assert result[key] == value
    assert document == before


@given(pods, pods)
def test_a_strategic_patch_applied_twice_is_applied_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = strategic_merge(document, patch, POD)
    assert strategic_merge(once, patch, POD) == once


@given(pods, pods)
def test_a_strategic_merge_holds_every_element_of_both(document: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = strategic_merge(document, patch, POD)["spec"].get("containers", [])
    names = {c["name"] for obj in (document, patch) for c in obj["spec"].get("containers", [])}
    assert sorted(c["name"] for c in merged) == sorted(names)


@given(pods, pods)
def test_nothing_differs_from_itself_and_a_difference_explains_the_whole(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert compare(old, old, TOPOLOGY) == ({}, {})
    changes, back = compare(old, new, TOPOLOGY), compare(new, old, TOPOLOGY)
    assert (changes == ({}, {})) == (back == ({}, {}))
    # What went one way comes the other.
    assert fieldsets.difference(changes.removed, back.changed) == {}


@given(pods, pods)
def test_a_merged_object_has_every_field_of_the_configuration(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = merge(live, config, TOPOLOGY)
    wanted = field_set(config, TOPOLOGY)
    assert fieldsets.intersection(compare(merged, merge(merged, config, TOPOLOGY), TOPOLOGY).changed, wanted) == {}


@given(pods)
def test_removing_everything_owned_leaves_nothing_owned(obj: dict[str, Any]) -> None:
    fields = field_set(obj, TOPOLOGY)
    rest = remove_items(obj, fields, TOPOLOGY) or {}
    assert not set(fieldsets.paths(field_set(rest, TOPOLOGY))) & set(fieldsets.paths(fields))


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(MANAGERS), full_pods), min_size=1, max_size=6))
def test_applying_again_changes_nothing(steps: list[tuple[str, dict[str, Any]]]) -> None:
    live: dict[str, Any] | None = None
    for manager, config in steps:
        live = do_apply(live, config, manager)
        # Who applies nothing owns nothing; an object without owners gets one at the next apply.
        if live["metadata"].get("managedFields"):
            assert do_apply(live, config, manager, force=False) == live


IDENTITY = fieldsets.of_paths("apiVersion", "kind", "metadata", "metadata.name", "metadata.managedFields")


@settings(max_examples=examples(60))
@given(pods, st.lists(st.tuples(st.sampled_from(MANAGERS), st.booleans(), pods), max_size=5))
def test_every_field_has_an_owner(first: dict[str, Any], steps: list[tuple[str, bool, dict[str, Any]]]) -> None:
    live = copy.deepcopy(first)
    options: dict[str, Any] = {"schema": POD, "api_version": "v1", "subresource": "", "now": NOW}
    update_managed_fields(live, None, manager="creator", **options)
    for manager, server_side, obj in steps:
        if server_side:
            live = without_nulls_in(apply(live, obj, manager=manager, force=True, **options))
        else:
            new = copy.deepcopy(obj)
            update_managed_fields(new, live, manager=manager, **options)
            live = new
        owned: fieldsets.Fields = {}
        for entry in live["metadata"].get("managedFields", ()):
            owned = fieldsets.union(owned, entry["fieldsV1"])
        if owned:
            free = fieldsets.difference(compare({}, live, TOPOLOGY).changed, owned)
            free = fieldsets.difference(free, IDENTITY)
            # Structs that hold others' fields need no owner of their own.
            assert [p for p in fieldsets.paths(free) if is_scalar(live, p)] == []


@given(pods, pods)
def test_field_sets_obey_the_algebra_of_sets(one: dict[str, Any], other: dict[str, Any]) -> None:
    a, b = field_set(one, TOPOLOGY), field_set(other, TOPOLOGY)

    def members(fields: fieldsets.Fields) -> set[tuple[str, ...]]:
        return set(fieldsets.paths(fields))

    assert members(fieldsets.union(a, b)) == members(a) | members(b)
    assert members(fieldsets.intersection(a, b)) == members(a) & members(b)
    assert members(fieldsets.difference(a, b)) == members(a) - members(b)
    assert fieldsets.parse(a) == a
