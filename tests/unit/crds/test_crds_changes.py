from __future__ import annotations

import copy
from typing import Any

import pytest

from kopylite.crds.changes import compare_crds


def crd(schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    return {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
                    **version,
                }
            ],
        }
    }


def shape(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


TEXT = {"type": "string"}
DANGEROUS = [
    (shape(), shape(["a"], a=TEXT), "DANGEROUS: v1 .spec.a: is required now"),
    (shape(a=TEXT), shape(["a"], a=TEXT), "DANGEROUS: v1 .spec.a: is required now"),
    (shape(a=TEXT), shape(), "DANGEROUS: v1 .spec.a: is removed; the server drops stored values"),
    (shape(a=TEXT), shape(a={"type": "integer"}), "DANGEROUS: v1 .spec.a: the type changes from string to integer"),
    (
        shape(a={**TEXT, "enum": ["x", "y"]}),
        shape(a={**TEXT, "enum": ["x"]}),
        "DANGEROUS: v1 .spec.a: the enum no longer has y",
    ),
    (shape(a=TEXT), shape(a={**TEXT, "enum": ["x"]}), "DANGEROUS: v1 .spec.a: only x are allowed now"),
    (shape(a=TEXT), shape(a={**TEXT, "pattern": "^x$"}), "DANGEROUS: v1 .spec.a: pattern changes from none to ^x$"),
    (shape(a=TEXT), shape(a={**TEXT, "maxLength": 3}), "DANGEROUS: v1 .spec.a: maxLength changes from none to 3"),
    (
        shape(a={**TEXT, "minLength": 1}),
        shape(a={**TEXT, "minLength": 2}),
        "DANGEROUS: v1 .spec.a: minLength changes from 1 to 2",
    ),
    (
        shape(["a"], a={**TEXT, "nullable": True}),
        shape(["a"], a=TEXT),
        "DANGEROUS: v1 .spec.a: null is no longer allowed",
    ),
    (
        shape(a={"type": "array", "items": TEXT}),
        shape(a={"type": "array", "items": {"type": "integer"}}),
        "DANGEROUS: v1 .spec.a[]: the type changes from string to integer",
    ),
    (
        shape(a={"type": "object", "additionalProperties": TEXT}),
        shape(a={"type": "object", "additionalProperties": {**TEXT, "maxLength": 1}}),
        "DANGEROUS: v1 .spec.a[*]: maxLength changes from none to 1",
    ),
    (
        shape(a={"type": "object", "additionalProperties": TEXT}),
        shape(a=shape(x=TEXT)),
        "DANGEROUS: v1 .spec.a: the type changes from map to object",
    ),
    (
        shape(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        shape(a={"type": "object"}),
        "DANGEROUS: v1 .spec.a: unknown fields are no longer kept",
    ),
]
HARMLESS = [
    (shape(), shape(a=TEXT), "v1 .spec.a: is new"),
    (shape(["a"], a=TEXT), shape(a=TEXT), "v1 .spec.a: is optional now"),
    (shape(), shape(["a"], a={**TEXT, "default": "x"}), "v1 .spec.a: is required now, with a default"),
    (shape(a={"type": "integer"}), shape(a={"type": "number"}), "v1 .spec.a: the type changes from integer to number"),
    (
        shape(a={"type": "integer"}),
        shape(a={"x-kubernetes-int-or-string": True}),
        "v1 .spec.a: the type changes from integer to int-or-string",
    ),
    (shape(a={**TEXT, "enum": ["x"]}), shape(a={**TEXT, "enum": ["x", "y"]}), "v1 .spec.a: the enum also has y"),
    (shape(a={**TEXT, "enum": ["x"]}), shape(a=TEXT), "v1 .spec.a: any value is allowed now"),
    (shape(a={**TEXT, "maxLength": 3}), shape(a={**TEXT, "maxLength": 4}), "v1 .spec.a: maxLength changes from 3 to 4"),
    (shape(a={**TEXT, "pattern": "x"}), shape(a=TEXT), "v1 .spec.a: pattern changes from x to none"),
    (shape(a={**TEXT, "nullable": True}), shape(a=TEXT), "v1 .spec.a: null is dropped"),
    (shape(a=TEXT), shape(a={**TEXT, "default": "x"}), "v1 .spec.a: the default changes from none to x"),
]


@pytest.mark.parametrize(("old", "new", "expected"), DANGEROUS + HARMLESS)
def test_a_change_of_the_schema_is_named(old: Any, new: Any, expected: str) -> None:
    assert [str(change) for change in compare_crds(crd(old), crd(new))] == [expected]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (shape(a=TEXT), shape(a={**TEXT, "description": "d"})),
        (shape(a={"type": "integer"}), shape(a={"type": "integer", "format": "int64"})),
        (
            shape(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            shape(a={"x-kubernetes-int-or-string": True}),
        ),
    ],
)
def test_what_changes_nothing_is_not_mentioned(old: Any, new: Any) -> None:
    assert compare_crds(crd(old), crd(new)) == []


@pytest.mark.parametrize(
    ("path", "value", "dangerous"),
    [
        (("group",), "other.com", True),
        (("scope",), "Cluster", True),
        (("names", "kind"), "Other", True),
        (("names", "plural"), "others", True),
        (("versions", 0, "name"), "v2", True),
        (("versions", 0, "served"), False, True),
        (("versions", 0, "storage"), False, False),
        (("versions", 0, "subresources"), {"status": {}}, True),
        (("versions", 0, "subresources"), {"scale": {}}, False),
    ],
)
def test_a_change_beside_the_schema_is_named(path: tuple[Any, ...], value: Any, dangerous: bool) -> None:
    old = crd(shape())
    new = copy.deepcopy(old)
    place: Any = new["spec"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert any(change.dangerous for change in compare_crds(old, new)) == dangerous
    assert compare_crds(old, new) != []


def test_a_selectable_field_that_is_gone_is_dangerous() -> None:
    old = crd(shape(), selectableFields=[{"jsonPath": ".spec.a"}])
    assert [str(change) for change in compare_crds(old, crd(shape()))] == [
        "DANGEROUS: v1 .spec.a: can no longer be selected by"
    ]
