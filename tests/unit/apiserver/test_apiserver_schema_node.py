from __future__ import annotations

from kopylite.apiserver.schema.node import Definitions, SchemaNode


def test_a_reference_is_followed_and_what_stands_beside_it_wins() -> None:
    definitions = Definitions({"a.B": {"type": "object", "description": "b", "properties": {"x": {"type": "string"}}}})
    node = SchemaNode(
        {"allOf": [{"$ref": "#/components/schemas/a.B"}], "default": {}, "description": "mine"}, definitions
    )
    assert node.type == "object"
    assert node.has_default
    assert node.raw["description"] == "mine"
    assert node.properties["x"].type == "string"


def test_a_plain_reference_shares_one_node() -> None:
    definitions = Definitions({"B": {"type": "string"}})
    node = SchemaNode({"properties": {n: {"$ref": "#/components/schemas/B"} for n in "xy"}}, definitions)
    assert node.properties["x"] is node.properties["y"]


def test_a_recursive_schema_is_walked_as_deep_as_asked() -> None:
    ref = {"$ref": "#/components/schemas/J"}
    definitions = Definitions({"J": {"type": "object", "properties": {"not": ref}, "additionalProperties": ref}})
    node = definitions.node("J")
    for _ in range(50):
        inner = node.field("not")
        assert inner is not None
        node = inner
    assert node.type == "object"


def test_a_key_has_the_schema_of_its_property_or_of_all_others() -> None:
    node = SchemaNode({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}})
    a, b = node.field("a"), node.field("b")
    assert a is not None
    assert b is not None
    assert (a.type, b.type) == ("string", "integer")
    assert SchemaNode({"additionalProperties": True}).additional_allowed
    assert SchemaNode({}).field("a") is None


def test_the_kubernetes_extensions_have_names() -> None:
    node = SchemaNode(
        {
            "type": "array",
            "items": {"type": "object", "x-kubernetes-embedded-resource": True, "nullable": True},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "x-kubernetes-patch-strategy": "merge,retainKeys",
            "x-kubernetes-patch-merge-key": "k",
        }
    )
    assert (node.list_type, node.list_map_keys, node.map_type) == ("map", ("k",), "granular")
    assert node.patch_strategies == ("merge", "retainKeys")
    assert node.patch_merge_key == "k"
    assert node.items is not None
    assert node.items.embedded
    assert node.items.nullable
    assert node.has_embedded
    assert node.has_unique
    assert SchemaNode({"format": "int-or-string"}).int_or_string
    assert SchemaNode({"type": "array"}).list_type == "atomic"
