from __future__ import annotations

from typing import Any

from kopylite.apiserver.storage.store import ObjectStore
from kopylite.sweep.states import (
    MadeUp,
    differences,
    encoded,
    general,
    is_controlled,
    kept_fields,
    made_up_names,
    objects_of,
    without_made_up,
)
from kopylite.testing import VirtualClock


def stored(*objects: dict[str, Any]) -> ObjectStore:
    store = ObjectStore(clock=VirtualClock())
    for obj in objects:
        metadata = obj["metadata"]
        store.create("configmaps", f"default/{metadata['name']}", obj, encoding_version="v1")
    return store


def a_config_map(name: str, uid: str, *, owner: str = "", generated: str = "", **data: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    if generated:
        metadata["generateName"] = generated
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


U = "00000000-0000-4000-8000-00000000000"


def test_runs_that_differ_by_uids_times_and_made_up_names_are_equal() -> None:
    one = stored(
        a_config_map("a", f"{U}1", at="2026-01-01T00:00:01Z", child="a-x7k2p"),
        a_config_map("a-x7k2p", f"{U}2", owner=f"{U}1", generated="a-"),
    )
    other = stored(
        a_config_map("a-qqqqq", f"{U}9", owner=f"{U}8", generated="a-"),
        a_config_map("a", f"{U}8", at="2027-01-01T00:00:01.5Z", child="a-qqqqq"),
    )
    assert objects_of(one, 0) == objects_of(other, 0)


def test_an_owner_that_is_another_one_makes_a_difference() -> None:
    one = stored(a_config_map("a", f"{U}1"), a_config_map("b", f"{U}2", owner=f"{U}1"))
    other = stored(a_config_map("a", f"{U}1"), a_config_map("b", f"{U}2", owner=f"{U}7"))
    left, right = (objects_of(each, 0)["configmaps default/b"] for each in (one, other))
    [(path, mine, theirs)] = differences(left, right)
    assert path == "metadata.ownerReferences[0].uid"
    assert (mine, theirs) == ("<uid of configmaps a>", "<uid>")


def test_what_was_there_before_the_scenario_is_not_compared() -> None:
    store = stored(a_config_map("a", f"{U}1"))
    assert objects_of(store, store.version) == {}


def test_two_children_with_made_up_names_are_two() -> None:
    names = ("a-x7k2p", "a-y7k2p")
    store = stored(*(a_config_map(name, f"{U}{i}", generated="a-") for i, name in enumerate(names)))
    assert sorted(objects_of(store, 0)) == ["configmaps default/a-* #1", "configmaps default/a-* #2"]


def test_differences_are_named_by_their_paths_and_what_is_empty_is_not_there() -> None:
    left = {"a": {"b": [1, {"c": 2}]}, "d": None, "e": 0}
    right = {"a": {"b": [1, {"c": 3}]}, "f": {}, "e": False}
    assert differences(left, right) == [("a.b[1].c", 2, 3)]
    assert differences({"a": [1]}, {"a": [1, 2]}) == [("a", [1], [1, 2])]
    assert differences({"a": False}, {}) == [("a", False, None)]
    assert len(encoded("x" * 200)) == 80


def test_names_that_an_operator_makes_up_are_known_by_what_runs_have_in_common() -> None:
    runs = [["configmaps default/a-70e0aacf", "configmaps default/a"], ["configmaps default/a-ec31a39c"], []]
    names = made_up_names(runs)
    assert names == {MadeUp("configmaps default/a-", len("configmaps default/a-70e0aacf"))}
    state = without_made_up({"configmaps default/a-126bb631": {}, "configmaps default/a-82da4e4f": {}}, names)
    assert list(state) == ["configmaps default/a-* #1", "configmaps default/a-* #2"]
    assert general("configmaps default/a", names) == "configmaps default/a"
    assert not made_up_names([["configmaps default/a-1"], ["configmaps default/a-2"]])  # numbers
    assert not made_up_names([])


def test_a_child_of_a_controller_is_known() -> None:
    assert is_controlled(a_config_map("a", "1", owner="2"))
    assert not is_controlled(a_config_map("a", "1"))


def test_what_is_in_a_secret_is_not_shown_and_what_is_about_it_is() -> None:
    for path, value in [("data.a", "aHVudGVy"), ("data", {"a": "aHVudGVy"}), ("metadata.annotations.last", "{hunter}")]:
        assert encoded(value, path, "Secret") == "<hidden>"
    assert encoded(None, "data.a", "Secret") == "nothing", "whether it is there is no secret"
    assert encoded(["a/b"], "metadata.finalizers", "Secret") == '["a/b"]'
    assert encoded("aHVudGVy", "data.a", "ConfigMap") == '"aHVudGVy"'
    assert "hunter2" not in encoded({"password": "hunter2"}, "spec", "Thing")


def test_a_field_is_kept_where_it_is_as_at_first_and_what_is_made_anew_has_it_otherwise() -> None:
    first = {"data": {"note": "a", "size": "1"}}
    assert kept_fields(first, {"data": {"note": "a", "size": "2"}}, {"data": {"size": "3"}}) == {"data.note"}
    assert kept_fields(first, {"data": {"note": "a", "time": "1"}}, {"data": {"note": "a", "time": "2"}}) == set()
    assert kept_fields(None, first, {"data": {}}) == set()  # nobody knows what it was at first
