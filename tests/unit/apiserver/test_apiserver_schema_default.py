from __future__ import annotations

from typing import Any

from kopylite.apiserver.schema.default import copy_json, default
from kopylite.apiserver.schema.node import SchemaNode


def defaulted(value: Any, **schema: Any) -> Any:
    default(value, SchemaNode({"type": "object", **schema}))
    return value


def test_missing_fields_get_their_defaults() -> None:
    properties = {"a": {"default": 1}, "b": {"default": False}, "c": {"default": "x"}}
    assert defaulted({"c": "mine"}, properties=properties) == {"a": 1, "b": False, "c": "mine"}


def test_a_default_needs_its_parent() -> None:
    properties = {"p": {"properties": {"a": {"default": 1}}}}
    assert defaulted({}, properties=properties) == {}
    assert defaulted({"p": {}}, properties=properties) == {"p": {"a": 1}}


def test_a_default_of_the_parent_is_defaulted_itself() -> None:
    properties = {"p": {"default": {}, "properties": {"a": {"default": 1}}}}
    assert defaulted({}, properties=properties) == {"p": {"a": 1}}


def test_null_is_replaced_only_where_it_is_not_allowed() -> None:
    properties = {"a": {"default": 1}, "n": {"default": 1, "nullable": True}}
    assert defaulted({"a": None, "n": None}, properties=properties) == {"a": 1, "n": None}


def test_elements_and_map_values_are_defaulted() -> None:
    inner = {"properties": {"a": {"default": 1}}}
    assert defaulted({"l": [{}, {"a": 2}]}, properties={"l": {"items": inner}}) == {"l": [{"a": 1}, {"a": 2}]}
    assert defaulted({"k": {}}, additionalProperties=inner) == {"k": {"a": 1}}
    assert defaulted({"k": None}, additionalProperties={"default": "x"}) == {"k": "x"}


def test_defaults_are_copied_not_shared() -> None:
    properties: dict[str, object] = {"p": {"default": {"l": []}}}
    one, two = defaulted({}, properties=properties), defaulted({}, properties=properties)
    one["p"]["l"].append(1)
    assert two == {"p": {"l": []}}


def test_a_copy_is_deep() -> None:
    value = {"a": [{"b": 1}]}
    copied = copy_json(value)
    copied["a"][0]["b"] = 2
    assert value == {"a": [{"b": 1}]}
