"""Validation texts. All expected values were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.ratchet import Correlation
from kopylite.apiserver.schema.validate import Validator

INTEGER: dict[str, Any] = {"type": "integer"}
STRING: dict[str, Any] = {"type": "string"}


def errors_of(schema: dict[str, Any], value: Any) -> list[str]:
    """The errors of `spec.v`."""
    whole = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"v": schema}}}}
    return [str(error) for error in Validator(whole).validate({"spec": {"v": value}})]


def body(text: str, value: str) -> str:
    return f"spec.v: Invalid value: {value}: spec.v in body {text}"


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INTEGER, "a", body('must be of type integer: "string"', '"string"')),
        (INTEGER, None, body('must be of type integer: "null"', '"null"')),
        (INTEGER, True, body('must be of type integer: "boolean"', '"boolean"')),
        (STRING, 1, body('must be of type string: "integer"', '"integer"')),
        (STRING, 1.5, body('must be of type string: "number"', '"number"')),
        ({"type": "object"}, [], body('must be of type object: "array"', '"array"')),
        ({"type": "array", "items": STRING}, {}, body('must be of type array: "object"', '"object"')),
        ({"x-kubernetes-int-or-string": True}, True, body('must be of type integer,string: "boolean"', '"boolean"')),
        ({**STRING, "format": "uuid"}, "x", body('must be of type uuid: "x"', '"x"')),
        ({**STRING, "format": "uuid"}, 1, body('must be of type uuid: "int64"', '"int64"')),
        ({**STRING, "minLength": 2}, "a", body("should be at least 2 chars long", '"a"')),
        ({**STRING, "maxLength": 2}, "abc", "spec.v: Too long: may not be more than 2 bytes"),
        ({**STRING, "pattern": "^[a-z]+$"}, "A", body("should match '^[a-z]+$'", '"A"')),
        ({**STRING, "enum": ["a", "b"]}, "c", 'spec.v: Unsupported value: "c": supported values: "a", "b"'),
        ({**INTEGER, "enum": [1, 2]}, 3, 'spec.v: Unsupported value: 3: supported values: "1", "2"'),
        ({**STRING, "nullable": True, "enum": ["x"]}, None, 'spec.v: Unsupported value: null: supported values: "x"'),
        ({**INTEGER, "minimum": 1}, 0, body("should be greater than or equal to 1", "0")),
        ({**INTEGER, "maximum": 10, "exclusiveMaximum": True}, 10, body("should be less than 10", "10")),
        ({"type": "number", "maximum": 2.5}, 3.5, body("should be less than or equal to 2.5", "3.5")),
        ({"type": "number", "minimum": 0.5, "exclusiveMinimum": True}, 0.5, body("should be greater than 0.5", "0.5")),
        ({**INTEGER, "multipleOf": 3}, 4, body("should be a multiple of 3", "4")),
        ({"type": "number", "multipleOf": 0.5}, 0.75, body("should be a multiple of 0.5", "0.75")),
        (
            {"type": "number", "multipleOf": 0.5},
            1,
            "spec.v: Invalid value: 0: factor MultipleOf declared for spec.v must be positive: 0",
        ),
        ({"type": "array", "items": INTEGER, "minItems": 1}, [], body("should have at least 1 items", "0")),
        ({"type": "array", "items": INTEGER, "maxItems": 1}, [1, 2], "spec.v: Too many: 2: must have at most 1 item"),
        ({"type": "object", "minProperties": 1}, {}, body("should have at least 1 properties", "0")),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 1}, "spec.v: Too many: 2: must have at most 1 item"),
        ({"type": "object", "required": ["a"]}, {}, "spec.v.a: Required value"),
        (
            {**INTEGER, "format": "int32"},
            99999999999,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.v',
        ),
        (
            {"type": "array", "items": INTEGER},
            [1, "a"],
            'spec.v[1]: Invalid value: "string": spec.v[1] in body must be of type integer: "string"',
        ),
        (
            {"type": "object", "additionalProperties": INTEGER},
            {"k": "a"},
            'spec.v.k: Invalid value: "string": spec.v.k in body must be of type integer: "string"',
        ),
    ],
)
def test_a_broken_rule_is_told_in_the_servers_words(schema: dict[str, Any], value: Any, expected: str) -> None:
    assert errors_of(schema, value) == [expected]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, 2.0), ({"type": "number"}, 1), ({**STRING, "nullable": True}, None), ({}, None), ({}, [1, "a"]),
        ({"x-kubernetes-int-or-string": True}, "50%"), ({"x-kubernetes-int-or-string": True}, 5),
        ({**STRING, "maxLength": 2}, "éé"), ({**INTEGER, "minimum": 1}, 1), ({**STRING, "format": "unknown"}, "x"),
        ({**INTEGER, "enum": [1]}, 1.0), ({"type": "object", "additionalProperties": True}, {"a": [1]}),
        ({"type": "array", "items": STRING}, []), ({"type": "boolean"}, False),
    ],
)  # fmt: skip
def test_a_valid_value_has_no_errors(schema: dict[str, Any], value: Any) -> None:
    assert errors_of(schema, value) == []


def test_any_of_tells_the_errors_of_the_branch_that_comes_closest() -> None:
    schema = {
        "type": "object",
        "properties": {"a": STRING, "b": INTEGER},
        "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minimum": 5}}}],
    }
    assert errors_of(schema, {"b": 6}) == []
    assert errors_of(schema, {"b": 1}) == [
        '<nil>: Invalid value: "": "spec.v" must validate at least one schema (anyOf)',
        "spec.v.b: Invalid value: 1: spec.v.b in body should be greater than or equal to 5",
    ]


def test_one_of_counts_its_valid_branches() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert errors_of(schema, {"a": 1}) == []
    text = '<nil>: Invalid value: "": "spec.v" must validate one and only one schema (oneOf). '
    assert errors_of(schema, {}) == [f"{text}Found none valid", "spec.v.a: Required value"]
    assert errors_of(schema, {"a": 1, "b": 1}) == [f"{text}Found 2 valid alternatives"]


def test_all_of_and_not_have_errors_of_their_own() -> None:
    schema = {**STRING, "allOf": [{"minLength": 2}, {"pattern": "^a"}]}
    text = '<nil>: Invalid value: "": "spec.v" must validate all the schemas (allOf)'
    assert errors_of(schema, "ab") == []
    assert errors_of(schema, "bc")[-1] == text
    assert errors_of(schema, "b")[-1] == f"{text}. None validated"
    negated = {**STRING, "not": {"enum": ["bad"]}}
    assert errors_of(negated, "bad") == ['<nil>: Invalid value: "": "spec.v" must not validate the schema (not)']


def test_a_prefix_goes_before_fields_but_not_into_texts() -> None:
    schema = {"type": "object", "properties": {"a": INTEGER}, "anyOf": [{"required": ["b"]}]}
    found = [str(error) for error in Validator(schema, "status").validate({"a": "x"})]
    assert found == [
        'status: Invalid value: "": "" must validate at least one schema (anyOf)',
        "status.b: Required value",
        'status.a: Invalid value: "string": a in body must be of type integer: "string"',
    ]


class TestRatcheting:
    SCHEMA: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "old": {**INTEGER, "maximum": 1},
            "list": {"type": "array", "items": {**INTEGER, "maximum": 1}},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": STRING, "v": {**INTEGER, "maximum": 1}}},
            },
        },
    }

    def fields(self, new: Any, old: Any) -> list[str]:
        correlation = Correlation(new, old, SchemaNode(self.SCHEMA))
        return [error.field for error in Validator(self.SCHEMA).validate(new, correlation)]

    def test_an_unchanged_invalid_field_is_forgiven(self) -> None:
        assert self.fields({"old": 5, "list": []}, {"old": 5}) == []
        assert self.fields({"old": 6}, {"old": 5}) == ["old"]

    def test_elements_of_a_map_list_are_forgiven_one_by_one(self) -> None:
        old = {"map": [{"k": "a", "v": 5}]}
        assert self.fields({"map": [{"k": "b", "v": 1}, {"k": "a", "v": 5}]}, old) == []
        assert self.fields({"map": [{"k": "b", "v": 5}, {"k": "a", "v": 5}]}, old) == ["map[0].v"]

    def test_other_lists_are_forgiven_only_as_a_whole(self) -> None:
        assert self.fields({"list": [5]}, {"list": [5]}) == []
        assert self.fields({"list": [5, 1]}, {"list": [5]}) == ["list[0]"]
