"""Strategic merge patch: lists by their keys, and the directives."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.builtin import data
from kopylite.apiserver.patching.strategic import go_text, strategic_merge
from kopylite.errors import ApiError, BadRequest

SCHEMA = data.DEFINITIONS.node("io.k8s.api.core.v1.Pod")


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def merge(document: dict[str, Any], **spec: Any) -> dict[str, Any]:
    merged: dict[str, Any] = strategic_merge(document, {"spec": spec}, SCHEMA)["spec"]
    return merged


def test_lists_with_a_merge_key_are_merged_by_it() -> None:
    before = pod({"name": "a", "image": "x", "args": ["1"]}, {"name": "b"})
    spec = merge(before, containers=[{"name": "a", "image": "y"}, {"name": "c"}])
    assert spec["containers"] == [{"name": "a", "image": "y", "args": ["1"]}, {"name": "c"}, {"name": "b"}]
    assert before == pod({"name": "a", "image": "x", "args": ["1"]}, {"name": "b"})


def test_lists_without_a_strategy_are_replaced() -> None:
    spec = merge(pod({"name": "a", "args": ["1", "2"]}), containers=[{"name": "a", "args": ["3"]}])
    assert spec["containers"][0]["args"] == ["3"]


def test_null_deletes_a_field_and_is_dropped_from_new_values() -> None:
    spec = merge(pod({"name": "a"}, nodeName="n"), nodeName=None, securityContext={"runAsUser": None, "fsGroup": 1})
    assert "nodeName" not in spec
    assert spec["securityContext"] == {"fsGroup": 1}


def test_delete_takes_one_element_out() -> None:
    spec = merge(pod({"name": "a"}, {"name": "b"}), containers=[{"name": "a", "$patch": "delete"}])
    assert spec["containers"] == [{"name": "b"}]


def test_replace_in_a_list_makes_the_patch_the_list() -> None:
    spec = merge(pod({"name": "a"}), containers=[{"$patch": "replace"}, {"name": "z"}])
    assert spec["containers"] == [{"name": "z"}]


def test_replace_and_delete_of_a_map() -> None:
    assert merge(pod(nodeSelector={"a": "1"}), nodeSelector={"$patch": "replace", "b": "2"})["nodeSelector"] == {
        "b": "2"
    }
    assert merge(pod(nodeSelector={"a": "1"}), nodeSelector={"$patch": "delete"})["nodeSelector"] == {}


def test_retain_keys_clears_what_it_does_not_name() -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    change = [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]
    assert merge(pod(volumes=volumes), volumes=change)["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_retain_keys_must_name_all_of_the_patch() -> None:
    with pytest.raises(BadRequest, match="invalid patch format of retainKeys"):
        merge(pod(securityContext={}), securityContext={"$retainKeys": ["fsGroup"], "runAsUser": 1})


def test_primitive_lists_merge_by_value_and_lose_what_is_named() -> None:
    document = {"metadata": {"finalizers": ["a/1", "b/2"]}}
    merged = strategic_merge(document, {"metadata": {"finalizers": ["c/3", "a/1"]}}, SCHEMA)
    assert merged["metadata"]["finalizers"] == ["c/3", "a/1", "b/2"]
    gone = strategic_merge(document, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}, SCHEMA)
    assert gone["metadata"]["finalizers"] == ["b/2"]


def test_set_element_order_orders_and_keeps_strangers_in_place() -> None:
    document = pod({"name": "a"}, {"name": "server"}, {"name": "b"})
    spec = merge(document, **{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})
    assert [c["name"] for c in spec["containers"]] == ["server", "b", "a"]


def test_the_patch_may_not_contradict_its_own_order() -> None:
    order: dict[str, Any] = {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]}
    with pytest.raises(ApiError, match="The order in patch list"):
        merge(pod({"name": "a"}), containers=[{"name": "b"}, {"name": "a"}], **order)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ({"image": "q"}, "map: map[image:q] does not contain declared merge key: name"),
        ({"name": "a", "$patch": "foo"}, "unknown patch type: foo in map: map[$patch:foo name:a]"),
        ({"name": "a", "$patch": "merge"}, "merging lists cannot yet be specified in the patch"),
    ],
)
def test_wrong_elements_give_the_servers_errors(element: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        merge(pod({"name": "a"}), containers=[element])
    assert (caught.value.code, caught.value.reason, caught.value.message) == (500, "", message)


def test_mixed_elements_are_refused() -> None:
    with pytest.raises(ApiError, match=r"list element types are not identical: \[\[map\[name:a\]\] \[1\]\]"):
        merge(pod({"name": "a"}), containers=[1])


def test_go_text_prints_maps_sorted() -> None:
    assert go_text({"b": [1, None], "a": True}) == "map[a:true b:[1 <nil>]]"


def test_a_merge_key_that_is_no_scalar_is_refused() -> None:
    with pytest.raises(ApiError, match="expected a scalar as merge key"):
        merge(pod({"name": "a"}), containers=[{"name": {"a": 1}}])
