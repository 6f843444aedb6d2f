from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.listtypes import duplicates
from kopylite.apiserver.schema.node import SchemaNode

SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {}}


def map_list(*keys: str) -> dict[str, Any]:
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "items": {}}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (SET, ["a", "b"], []),
        (SET, ["a", "b", "a", "a"], ['l[2]: Duplicate value: "a"']),
        (SET, [1, 1.0, "1", True], []),
        (SET, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ['l[1]: Duplicate value: {"a":1,"b":2}']),
        (map_list("k"), [{"k": "a", "v": 1}, {"k": "a", "v": 2}], ['l[1]: Duplicate value: {"k":"a"}']),
        (map_list("k"), [{"v": 1}, {"v": 2}], ["l[1]: Duplicate value: {}"]),
        (map_list("k", "p"), [{"k": "a", "p": 1}, {"k": "a", "p": 2}], []),
        (map_list("k", "p"), [{"k": "a"}, {"k": "a"}], ['l[1]: Duplicate value: {"k":"a"}']),
        (map_list("k"), ["x"], ['l[0]: Invalid value: "x": must be an object for an array of list-type map']),
        ({"type": "array", "items": {}}, ["a", "a"], []),
    ],
)
def test_elements_and_keys_are_unique(schema: dict[str, Any], value: list[Any], expected: list[str]) -> None:
    node = SchemaNode({"properties": {"l": schema}})
    assert [str(error) for error in duplicates({"l": value}, node)] == expected


def test_lists_are_found_everywhere() -> None:
    node = SchemaNode({"additionalProperties": {"items": {"properties": {"l": SET}}}})
    assert [error.field for error in duplicates({"k": [{"l": [1, 1]}]}, node)] == ["[k][0].l[1]"]
