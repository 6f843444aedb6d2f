"""Schemas of CRDs. The texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.definition import definition_errors, format_warnings, set_warnings

STRING: dict[str, Any] = {"type": "string"}
AT = "s.properties[spec]"


def errors_of(spec: dict[str, Any]) -> list[str]:
    return [str(e) for e in definition_errors({"type": "object", "properties": {"spec": spec}}, "s", status=False)]


def map_list(keys: list[str], **item: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", **item},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"type": "foo"},
            (
                f'{AT}.type: Unsupported value: "foo": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            ),
        ),
        (
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING},
            f"{AT}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        ({"$ref": "#/x"}, f"{AT}.$ref: Forbidden: $ref is not supported"),
        (
            {"type": "array", "items": STRING, "uniqueItems": True},
            (
                f"{AT}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
                "quadratic"
            ),
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            f"{AT}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ),
        (
            {"type": "string", "x-kubernetes-map-type": "atomic"},
            f'{AT}.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified',
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            (
                f"{AT}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
                "x-kubernetes-list-type=set"
            ),
        ),
        (
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bad"},
            f'{AT}.x-kubernetes-list-type: Unsupported value: "bad": supported values: "atomic", "set", "map"',
        ),
        (
            map_list(["k"], properties={"k": STRING}),
            (
                f"{AT}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so "
                "it must have a default or be a required property"
            ),
        ),
        (
            map_list(["k"], required=["k"], properties={"k": {**STRING, "nullable": True}}),
            (
                f"{AT}.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it "
                "cannot be nullable"
            ),
        ),
        (
            map_list(["z"]),
            f'{AT}.x-kubernetes-list-map-keys: Invalid value: ["z"]: entries must all be names of item properties',
        ),
        (
            map_list([]),
            f"{AT}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            {"type": "object", "default": {"zz": 1}, "properties": {"a": STRING}},
            f'{AT}.default: Invalid value: {{"zz":1}}: must not have unknown fields',
        ),
        (
            {"type": "integer", "default": "x"},
            f'{AT}.default: Invalid value: "string":  in body must be of type integer: "string"',
        ),
        (
            {"type": "string", "default": "y", "x-kubernetes-validations": [{"rule": 'self == "x"'}]},
            f'{AT}.default: Invalid value: "y": failed rule: self == "x"',
        ),
    ],
)
def test_a_forbidden_schema_is_told_at_its_place(spec: dict[str, Any], expected: str) -> None:
    assert errors_of(spec)[0] == expected


def test_defaults_are_forbidden_in_metadata() -> None:
    schema = {"type": "object", "properties": {"metadata": {"type": "object", "default": {}}}}
    assert [str(e) for e in definition_errors(schema, "s", status=False)] == [
        "s.properties[metadata].default: Forbidden: must not be set in top-level metadata"
    ]


def test_with_a_status_subresource_the_root_may_say_less() -> None:
    schema = {"type": "object", "minProperties": 1}
    assert definition_errors(schema, "s", status=False) == []
    (error,) = definition_errors(schema, "s", status=True)
    assert error.detail.startswith("only [Description Type Format")
    assert error.detail.endswith("fields are allowed at the root of the schema if the status subresource is enabled")
    assert '"MinProperties":1' in error.message


def test_the_root_is_not_nullable() -> None:
    found = definition_errors({"type": "object", "nullable": True}, "s", status=False)
    assert [str(e) for e in found] == ["s.nullable: Forbidden: nullable cannot be true at the root"]


def test_ignored_formats_and_odd_sets_are_warned_of() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "format": "weird"},
            "b": {"type": "integer", "format": "int64"},
            "c": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
        }
    }
    assert format_warnings(schema) == ['unrecognized format "weird"']
    assert set_warnings(schema) == [
        (
            'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL '
            "validation rules"
        )
    ]
