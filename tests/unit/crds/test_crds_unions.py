from __future__ import annotations

from typing import Any

import pytest

from kopylite.crds.unions import union, validations

KEEP = "x-kubernetes-preserve-unknown-fields"
IOS = "x-kubernetes-int-or-string"


def text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def number(**more: Any) -> dict[str, Any]:
    return {"type": "integer", **more}


@pytest.mark.parametrize(
    ("variants", "merged"),
    [
        ([text()], text()),
        ([text(), text()], text()),
        ([text(), text(maxLength=1)], text()),
        ([text(enum=["a"]), text(enum=["b", "a"])], text(enum=["a", "b"])),
        ([text(maxLength=1), text(pattern="x")], text(anyOf=[{"maxLength": 1}, {"pattern": "x"}])),
        ([text(maxLength=1, description="a"), text(maxLength=1)], text(maxLength=1)),
        ([number(), text()], {IOS: True}),
        ([number(minimum=1, format="int64"), text(pattern="x")], {IOS: True, "minimum": 1, "pattern": "x"}),
        ([number(enum=[1]), text(enum=["a"])], {IOS: True, "enum": [1, "a"]}),
        ([number(enum=[1]), text()], {IOS: True}),
        ([{IOS: True}, text()], {IOS: True}),
        ([number(), {"type": "number"}], {"type": "number"}),
        ([number(nullable=True), number(minimum=1)], number(nullable=True)),
        (
            [{"type": "array", "items": number()}, {"type": "array", "items": text()}],
            {"type": "array", "items": {IOS: True}},
        ),
    ],
)
def test_a_union_that_a_schema_can_say(variants: list[Any], merged: Any) -> None:
    assert union(variants, None) == (merged, None)


@pytest.mark.parametrize(
    "variants",
    [
        [text(), {"type": "boolean"}],
        [text(), {"type": "array", "items": text()}],
        [{"type": "object", "properties": {}}, {"type": "object", "additionalProperties": text()}],
        [{KEEP: True}, text()],
    ],
)
def test_a_union_that_it_cannot_say_accepts_everything_and_says_so(variants: list[Any]) -> None:
    merged, problem = union(variants, None)
    assert merged == {KEEP: True}
    assert problem is not None


def shape(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def test_objects_are_merged_field_by_field() -> None:
    merged, problem = union(
        [shape(["a"], a=text(), b=text(maxLength=3)), shape(["a", "c"], a=text(), b=text(), c=number(default=1))], None
    )
    assert problem is None
    assert merged == {
        "type": "object",
        "properties": {"a": text(), "b": text(), "c": number()},
        "required": ["a"],
        "anyOf": [{"properties": {"b": {"maxLength": 3}}, "required": ["a"]}, {"required": ["a", "c"]}],
    }


def test_a_variant_without_conditions_makes_the_others_conditions_void() -> None:
    merged, _ = union([{"type": "object", "properties": {"a": text()}}, shape(["b"], b=text())], None)
    assert "anyOf" not in merged


def test_a_tag_makes_exactly_one_variant_match() -> None:
    merged, _ = union([shape([], kind=text(enum=["a"])), shape([], kind=text(enum=["b"]))], "kind")
    assert merged["required"] == ["kind"]
    assert merged["oneOf"] == [
        {"properties": {"kind": {"enum": ["a"]}}, "required": ["kind"]},
        {"properties": {"kind": {"enum": ["b"]}}, "required": ["kind"]},
    ]


def test_a_field_of_two_types_keeps_a_common_one() -> None:
    merged, problem = union([shape(["a"], a=number()), shape(["a"], a=text())], None)
    assert merged["properties"]["a"] == {IOS: True}
    assert problem is None
    merged, problem = union([shape(["a"], a=text()), shape(["a"], a={"type": "boolean"})], None)
    assert merged["properties"]["a"] == {KEEP: True}
    assert problem is not None


def test_validations_are_what_may_stand_in_anyof() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "default": {},
        "required": ["a"],
        "properties": {"a": number(minimum=1, format="int64"), "b": text()},
        "x-kubernetes-map-type": "atomic",
    }
    assert validations(schema) == {"required": ["a"], "properties": {"a": {"minimum": 1}}}
    assert validations({"type": "array", "items": text(maxLength=1), "maxItems": 2}) == {
        "maxItems": 2,
        "items": {"maxLength": 1},
    }
