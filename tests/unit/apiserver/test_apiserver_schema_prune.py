from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.prune import drop_nulls, prune

STRING: dict[str, Any] = {"type": "string"}


def schema_of(spec: dict[str, Any]) -> SchemaNode:
    return SchemaNode({"type": "object", "properties": {"spec": spec}})


def test_unknown_fields_go_and_their_paths_are_told_sorted() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "A",
        "metadata": {"x": 1},
        "zz": 1,
        "spec": {"a": "x", "l": [{"b": 1}, {"c": 2}]},
    }
    schema = schema_of({"properties": {"a": STRING, "l": {"items": {"properties": {"c": STRING}}}}})
    assert prune(obj, schema) == ["spec.l[0].b", "zz"]
    assert obj == {"apiVersion": "v1", "kind": "A", "metadata": {"x": 1}, "spec": {"a": "x", "l": [{}, {"c": 2}]}}


def test_preserved_maps_keep_what_is_undeclared_and_prune_what_is_declared() -> None:
    obj = {"spec": {"free": {"deep": 1}, "known": {"a": "x", "b": 1}}}
    schema = schema_of(
        {"x-kubernetes-preserve-unknown-fields": True, "properties": {"known": {"properties": {"a": STRING}}}}
    )
    assert prune(obj, schema) == ["spec.known.b"]
    assert obj == {"spec": {"free": {"deep": 1}, "known": {"a": "x"}}}


def test_lists_below_preserved_fields_are_pruned_where_their_elements_declare_fields() -> None:
    items = {"properties": {"a": {"properties": {"x": STRING}}}}
    schema = schema_of({"x-kubernetes-preserve-unknown-fields": True, "items": items})
    obj = {"spec": [{"a": {"x": "1", "y": 2}, "free": 1}]}
    assert prune(obj, schema) == ["spec[0].a.y"]
    assert obj == {"spec": [{"a": {"x": "1"}, "free": 1}]}


def test_additional_properties_keep_keys_and_prune_values() -> None:
    obj: dict[str, Any] = {"spec": {"k": {"a": "x", "b": 1}}}
    assert prune(obj, schema_of({"additionalProperties": {"properties": {"a": STRING}}})) == ["spec.k.b"]
    obj = {"spec": {"k": {"a": "x"}, "n": 1}}
    # As in the real server, `additionalProperties: true` says nothing of what is inside the values.
    assert prune(obj, schema_of({"additionalProperties": True})) == ["spec.k.a"]
    assert obj == {"spec": {"k": {}, "n": 1}}


@pytest.mark.parametrize("embedded", [True, False])
def test_only_embedded_resources_keep_their_type_and_metadata(embedded: bool) -> None:
    obj = {"spec": {"apiVersion": "v1", "kind": "A", "metadata": {}, "other": 1}}
    unknown = prune(obj, schema_of({"x-kubernetes-embedded-resource": embedded, "properties": {"x": STRING}}))
    assert unknown == (["spec.other"] if embedded else ["spec.apiVersion", "spec.kind", "spec.metadata", "spec.other"])


def test_nulls_go_unless_they_are_allowed_or_can_be_defaulted() -> None:
    schema = SchemaNode(
        {
            "properties": {
                "a": STRING,
                "n": {**STRING, "nullable": True},
                "d": {**STRING, "default": "x"},
                "l": {"items": STRING},
            }
        }
    )
    value = {"a": None, "n": None, "d": None, "l": [None], "unknown": None}
    drop_nulls(value, schema)
    assert value == {"n": None, "d": None, "l": [None], "unknown": None}
