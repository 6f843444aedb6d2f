"""What a write through an object changes, told from what was read."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kopylite.client.changes import as_read, bound, carried_out, merge_change, status_change
from kopylite.errors import EncodeError, UsageError
from kopylite.objects import CustomResource, Kind, Unstructured, adapter_of
from kopylite.objects.references import Conditions


class SiteStatus(BaseModel):
    conditions: Conditions = []


class Site(CustomResource[dict[str, Any], SiteStatus], group="changes.example.com", version="v1"):
    pass


SHOP = Kind("example.com/v1", "Shop")
METADATA = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"}
READY = {"type": "Ready", "status": "True"}
values = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2) | st.lists(st.integers(0, 3), max_size=2)
)
trees = st.dictionaries(st.sampled_from("xyz"), values | st.dictionaries(st.sampled_from("pq"), values), max_size=3)


def read(kind: Any = SHOP, **parts: Any) -> Any:
    adapter = adapter_of(kind)
    wire = {"apiVersion": adapter.kind.api_version, "kind": adapter.kind.kind, "metadata": METADATA, **parts}
    return adapter.decode(json.dumps(wire).encode())


def merge_patched(target: Any, patch: Any) -> Any:
    """RFC 7396, word by word."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return value


def test_an_object_is_as_it_was_read_whatever_was_made_of_it() -> None:
    shop = read(spec={"size": 1})
    shop["spec"]["size"] = 2
    assert as_read(shop)["spec"] == {"size": 1}
    assert as_read(copy.deepcopy(shop))["spec"] == {"size": 1}
    assert as_read(Unstructured(dict(shop)))["spec"] == {"size": 2}, "nothing is known of one that was not read"


@given(trees, trees)
def test_a_merge_patch_gives_what_the_standard_says(spec: dict[str, Any], patch: dict[str, Any]) -> None:
    edit = merge_change(read(spec=spec), {"spec": patch})
    assert without_nulls(edit.merged["spec"]) == without_nulls(merge_patched(spec, patch))
    assert edit.stored["spec"] == spec


@given(trees)
def test_a_patch_of_what_is_there_is_no_change(spec: dict[str, Any]) -> None:
    edit = merge_change(read(spec=without_nulls(spec)), {"spec": without_nulls(spec)})
    assert edit.merged is edit.stored


def test_a_value_edited_in_place_and_handed_back_is_a_change() -> None:
    shop = read(spec={"sizes": [1]})
    shop["spec"]["sizes"].append(2)
    edit = merge_change(shop, {"spec": shop["spec"]})
    assert edit.merged["spec"] == {"sizes": [1, 2]}


def test_a_change_can_be_made_again_from_another_state() -> None:
    edit = merge_change(read(spec={"a": 1}), {"spec": {"b": 2}})
    assert edit.again is not None
    assert edit.again(read(spec={"a": 9})).merged["spec"] == {"a": 9, "b": 2}


def test_a_map_as_status_sets_what_it_names_and_leaves_the_rest() -> None:
    edit = status_change(read(status={"a": 1, "b": 2}), {"b": 3})
    assert edit.merged["status"] == {"a": 1, "b": 3}
    assert status_change(read(status={"a": 1}), {"a": 1}).merged == as_read(read(status={"a": 1}))


def test_an_exact_status_is_all_of_it() -> None:
    assert status_change(read(status={"a": 1, "b": 2}), {"b": 3}, exact=True).merged["status"] == {"b": 3}


def test_the_objects_own_status_says_it_all_and_as_it_was_read_it_asks_for_nothing() -> None:
    shop = read(status={"a": 1, "b": 2})
    assert status_change(shop, shop["status"]).merged is not None
    untouched = status_change(shop, shop["status"])
    assert untouched.merged is untouched.stored
    assert untouched.again is None
    del shop["status"]["a"]
    assert status_change(shop, shop["status"]).merged["status"] == {"b": 2}


def test_conditions_of_others_stay() -> None:
    site = read(Site, spec={}, status={"conditions": [{**READY, "reason": "A", "message": ""}]})
    edit = status_change(site, {"conditions": [{"type": "Synced", "status": "False"}]})
    assert [one["type"] for one in edit.merged["status"]["conditions"]] == ["Ready", "Synced"]


def test_what_is_no_status_is_refused_with_the_objects_name() -> None:
    with pytest.raises(UsageError, match=r"status of Shop\S* n/a: give a map .* and not a list"):
        status_change(read(), ["x"])
    with pytest.raises(EncodeError, match="n/a"):
        status_change(read(), {"x": object()})
    with pytest.raises(EncodeError, match="n/a"):
        merge_change(read(), {"spec": {"x": float("nan")}})


def test_a_patch_through_an_object_is_bound_to_it() -> None:
    assert bound(read(), {"spec": {"a": 1}}, "merge", None) == ({"spec": {"a": 1}, "metadata": {"uid": "u"}}, "merge")
    steps, kind = bound(read(), [{"op": "add", "path": "/spec", "value": {}}], "json", None)
    assert kind == "json"
    assert steps[0] == {"op": "test", "path": "/metadata/uid", "value": "u"}
    patch, _ = bound(read(), {"status": {}}, "apply", "status")
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "7"}, "the server compares no uid of a custom status"


def test_a_patch_through_an_object_that_was_never_stored_stays_as_it_is() -> None:
    made = Unstructured({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a"}})
    assert bound(made, {"spec": {}}, "merge", None) == ({"spec": {}}, "merge")


def test_the_next_change_begins_where_the_last_one_has_led() -> None:
    shop = read(spec={"a": 1})
    first = merge_change(shop, {"spec": {"b": 2}})
    answer = {**first.merged, "metadata": {**METADATA, "resourceVersion": "8"}}
    carried_out(shop, first, json.dumps(answer).encode())
    assert as_read(shop)["spec"] == {"a": 1, "b": 2}
    second = merge_change(shop, {"spec": {"b": 2}})
    assert second.merged is second.stored
