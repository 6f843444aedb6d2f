from __future__ import annotations

from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.ratchet import Correlation, same_json

SCHEMA = SchemaNode(
    {
        "properties": {
            "a": {},
            "map": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {}},
            "list": {"items": {}},
        }
    }
)


def test_fields_correspond_by_name_where_both_have_them() -> None:
    node = Correlation({"a": 1, "map": []}, {"a": 1, "list": []}, SCHEMA)
    child = node.key("a")
    assert child is not None
    assert child.unchanged
    assert node.key("map") is None
    assert node.key("undeclared") is None


def test_elements_correspond_by_their_keys_in_map_lists_only() -> None:
    new, old = [{"k": "b"}, {"k": "a", "v": 2}, {}], [{"k": "a", "v": 1}]
    node = Correlation({"map": new, "list": [1]}, {"map": old, "list": [1]}, SCHEMA)
    maps, lists = node.key("map"), node.key("list")
    assert maps is not None
    assert lists is not None
    second = maps.index(1)
    assert second is not None
    assert second.old == {"k": "a", "v": 1}
    assert not second.unchanged
    assert maps.index(0) is None
    assert maps.index(2) is None
    assert lists.index(0) is None


def test_equality_tells_types_apart() -> None:
    assert same_json({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]})
    assert not same_json(1, True)
    assert not same_json(1, 1.0)
    assert not same_json([1], [1, 2])
