"""JSON Merge Patch as the API server applies it."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.patching.merge_patch import merge_difference, merge_patch
from kopylite.errors import BadRequest


def test_null_deletes_and_objects_merge() -> None:
    document = {"a": {"b": 1, "c": 2}, "d": [1, 2]}
    assert merge_patch(document, {"a": {"b": None, "e": 3}, "d": [3]}) == {"a": {"c": 2, "e": 3}, "d": [3]}
    assert document == {"a": {"b": 1, "c": 2}, "d": [1, 2]}


def test_nulls_in_new_values_are_dropped_from_objects_but_not_from_lists() -> None:
    assert merge_patch({}, {"a": {"b": None, "c": [None, {"d": None}]}}) == {"a": {"c": [None, {}]}}


@pytest.mark.parametrize(("patch", "kind"), [([], "array"), ("x", "string"), (1, "number"), (True, "bool")])
def test_a_patch_must_be_an_object(patch: Any, kind: str) -> None:
    with pytest.raises(BadRequest) as caught:
        merge_patch({}, patch)
    assert caught.value.message == (
        f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )


def test_null_is_no_patch() -> None:
    with pytest.raises(BadRequest, match="Invalid JSON Patch"):
        merge_patch({}, None)


def test_the_difference_names_only_what_changed() -> None:
    old, new = {"a": {"b": 1, "c": 2}, "d": 1}, {"a": {"b": 1, "c": 3}, "e": []}
    assert merge_difference(old, new) == {"a": {"c": 3}, "d": None, "e": []}


def test_the_result_shares_nothing_with_the_old_document() -> None:
    document: dict[str, Any] = {"a": {"b": [1]}}
    merge_patch(document, {})["a"]["b"].append(2)
    assert document == {"a": {"b": [1]}}
