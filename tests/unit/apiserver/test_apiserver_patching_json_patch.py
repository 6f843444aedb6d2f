"""JSON Patch as the API server applies it, its laxities included."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.patching.json_patch import MAX_OPERATIONS, json_equal, json_patch
from kopylite.errors import BadRequest, Invalid, RequestEntityTooLarge


def apply(*operations: dict[str, Any]) -> Any:
    return json_patch({"data": {"a": "1"}, "list": ["x", "y"]}, list(operations))


def test_every_operation_does_its_work() -> None:
    result = apply(
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "copy", "from": "/data/b", "path": "/data/c"},
        {"op": "move", "from": "/data/a", "path": "/data/d"},
        {"op": "replace", "path": "/list/0", "value": "z"},
        {"op": "add", "path": "/list/1", "value": "between"},
        {"op": "remove", "path": "/list/2"},
        {"op": "test", "path": "/data/c", "value": "2"},
    )
    assert result == {"data": {"b": "2", "c": "2", "d": "1"}, "list": ["z", "between"]}


def test_the_arguments_are_left_alone() -> None:
    document, operations = {"a": {"b": 1}}, [{"op": "add", "path": "/a/c", "value": {"d": []}}]
    result = json_patch(document, operations)
    result["a"]["c"]["d"].append(1)
    assert document == {"a": {"b": 1}}
    assert operations == [{"op": "add", "path": "/a/c", "value": {"d": []}}]


def test_replacing_an_absent_key_adds_it_as_the_server_does() -> None:
    assert apply({"op": "replace", "path": "/data/new", "value": "v"})["data"]["new"] == "v"


def test_negative_indices_count_from_the_end() -> None:
    assert apply({"op": "remove", "path": "/list/-1"})["list"] == ["x"]
    assert apply({"op": "add", "path": "/list/-1", "value": "z"})["list"] == ["x", "y", "z"]


def test_a_dash_appends_and_escapes_are_undone() -> None:
    assert apply({"op": "add", "path": "/list/-", "value": "z"})["list"][-1] == "z"
    assert apply({"op": "add", "path": "/data/a~1b~0c", "value": "v"})["data"]["a/b~c"] == "v"


def test_a_test_against_null_accepts_an_absent_field() -> None:
    assert apply({"op": "test", "path": "/data/none", "value": None})


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "test", "path": "/data/a", "value": 1},
        {"op": "remove", "path": "/data/none"},
        {"op": "add", "path": "/no/such/path", "value": 1},
        {"op": "add", "path": "/list/9", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "frobnicate", "path": "/data"},
        {"op": "add", "value": 1},
        {"op": "replace", "path": "", "value": "scalar"},
    ],
)
def test_an_operation_that_does_not_apply_is_refused_without_saying_why(operation: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        apply(operation)
    assert caught.value.message == "the server rejected our request due to an error in our request"


def test_a_patch_that_is_no_list_of_objects_is_a_bad_request() -> None:
    for patch in ({"a": 1}, ["x"], None):
        with pytest.raises(BadRequest, match="error decoding patch: json: cannot unmarshal"):
            json_patch({}, patch)


def test_too_many_operations_are_refused() -> None:
    operations = [{"op": "test", "path": "/data/a", "value": "1"}] * (MAX_OPERATIONS + 1)
    with pytest.raises(RequestEntityTooLarge, match="is 10000, got 10001"):
        json_patch({"data": {"a": "1"}}, operations)


def test_copies_may_not_grow_without_bound() -> None:
    big = "x" * (2 * 1024 * 1024)
    with pytest.raises(Invalid):
        json_patch(
            {"a": big},
            [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "copy", "from": "/a", "path": "/c"}],
        )


def test_numbers_and_booleans_are_different_values() -> None:
    assert not json_equal(1, True)
    assert not json_equal({"a": [1]}, {"a": [1.0]})
    assert json_equal({"a": [1, None]}, {"a": [1, None]})
