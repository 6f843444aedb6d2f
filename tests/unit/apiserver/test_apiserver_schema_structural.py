"""Structural schemas. The texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.structural import structural_errors

STRING: dict[str, Any] = {"type": "string"}
INT_OR_STRING = [{"type": "integer"}, STRING]


def errors_of(spec: dict[str, Any]) -> list[str]:
    found = structural_errors({"type": "object", "properties": {"spec": spec}}, "s")
    return [str(error) for error in found]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["s.properties[spec].type: Required value: must not be empty for specified object fields"]),
        ({"type": "array"}, ["s.properties[spec].items: Required value: must be specified"]),
        (
            {"type": "array", "items": {}},
            ["s.properties[spec].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            {"type": "object", "properties": {"a": STRING}, "anyOf": [{"properties": {"a": {"type": "string"}}}]},
            ["s.properties[spec].anyOf[0].properties[a].type: Forbidden: must be empty to be structural"],
        ),
        (
            {"type": "string", "allOf": [{"default": ""}]},
            ["s.properties[spec].allOf[0].default: Forbidden: must be undefined to be structural"],
        ),
        (
            {"type": "string", "pattern": "("},
            [
                ('s.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: missing closing ): `(`")
            ],
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True},
            [
                ("s.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource "
                "is true without x-kubernetes-preserve-unknown-fields")
            ],
        ),
        (
            {"type": "string", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            [
                ('s.properties[spec].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource '
                "is true")
            ],
        ),
        (
            {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
            [
                ("s.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
                "x-kubernetes-int-or-string is true")
            ],
        ),
    ],
)  # fmt: skip
def test_what_is_not_structural_is_told_at_its_place(spec: dict[str, Any], expected: list[str]) -> None:
    assert errors_of(spec) == expected


@pytest.mark.parametrize(
    "spec",
    [
        {"x-kubernetes-int-or-string": True, "anyOf": INT_OR_STRING},
        {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": INT_OR_STRING}, {"pattern": "a"}]},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "additionalProperties": STRING},
        {"type": "object", "properties": {"a": STRING}, "oneOf": [{"properties": {"a": {"minLength": 1}}}]},
    ],
)  # fmt: skip
def test_a_structural_schema_has_no_errors(spec: dict[str, Any]) -> None:
    assert errors_of(spec) == []


def test_metadata_may_restrict_only_names() -> None:
    def root(metadata: dict[str, Any]) -> list[str]:
        return [e.reason for e in structural_errors({"type": "object", "properties": {"metadata": metadata}}, "s")]

    assert root({"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}) == []
    assert root({"type": "object", "properties": {"labels": {"type": "object"}}}) == ["FieldValueForbidden"]
    assert root({"type": "string"}) == ["FieldValueInvalid"]


def test_the_root_is_an_object_with_declared_fields() -> None:
    assert [str(e) for e in structural_errors({}, "s")] == ["s.type: Required value: must not be empty at the root"]
    assert [str(e) for e in structural_errors({"type": "string"}, "s")] == [
        's.type: Invalid value: "string": must be object at the root'
    ]
    assert [str(e) for e in structural_errors({"type": "object", "additionalProperties": True}, "s")] == [
        "s.additionalProperties: Forbidden: must not be used at the root"
    ]


def test_what_a_branch_of_the_root_describes_must_be_declared() -> None:
    schema = {"type": "object", "anyOf": [{"properties": {"b": {"minLength": 1}}}], "not": {"items": {"minLength": 2}}}
    assert [str(e) for e in structural_errors(schema, "s")] == [
        "s.items: Required value: because it is defined in s.not.items",
        "s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]",
    ]
