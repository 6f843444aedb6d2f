"""OpenAPI v2 of custom kinds, and its protobuf form, as the real server publishes them."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.openapi.v2 import definition, document, to_protobuf

GVK = {"x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Widget", "version": "v1"}]}
OPEN = "x-kubernetes-preserve-unknown-fields"


def converted(schema: dict[str, Any]) -> Any:
    """A property of a custom kind, in v2."""
    root = {"type": "object", "properties": {"a": schema}, **GVK}
    return definition(root, custom=True)["properties"]["a"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "default": "x", "enum": ["x"]}, {"type": "string", "enum": ["x"]}),
        ({"type": "integer", "oneOf": [{"minimum": 1}], "not": {"minimum": 5}}, {"type": "integer"}),
        ({"type": "object", "nullable": True, "properties": {"b": {"type": "string"}}}, {}),
        ({"type": "object", OPEN: True, "properties": {"b": {"type": "string"}}}, {OPEN: True}),
        ({"type": "array", "nullable": False, "items": {"type": "string"}},
         {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", OPEN: True, "items": {"type": "object"}}, {OPEN: True}),
        ({"allOf": [{"$ref": "#/components/schemas/Meta"}], "description": "d"},
         {"$ref": "#/definitions/Meta", "description": "d"}),
        ({"type": "object", "required": ["b"], "properties": {"b": {"type": "string", "nullable": True}}},
         {"type": "object", "properties": {"b": {}}}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
         {"x-kubernetes-int-or-string": True}),
    ],
)  # fmt: skip
def test_a_schema_loses_what_v2_cannot_say(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert converted(schema) == expected


def test_a_kind_that_keeps_unknown_fields_says_nothing_of_the_others() -> None:
    root = {"type": "object", OPEN: True, "properties": {"spec": {"type": "object"}}, **GVK}
    assert definition(root, custom=True) == {"type": "object", **GVK}


def test_protobuf_is_gnostics() -> None:
    size = {"description": "How large it is.", "type": "integer", "maximum": 10, "minimum": 1}
    widget = {"type": "object", "required": ["size"], "properties": {"size": size}}
    encoded = to_protobuf(document({}, {"W": widget}, 37))
    # Taken from the answer of a kube-apiserver.
    assert (
        b'"\x10How large it is.9\x00\x00\x00\x00\x00\x00$@I\x00\x00\x00\x00\x00\x00\xf0?\xb2\x01\t\n\x07integer'
        in encoded
    )
    assert encoded.startswith(b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.37")
    assert b"\x9a\x01\x04size\xb2\x01\x08\n\x06object" in encoded


def test_values_of_free_form_are_yaml() -> None:
    schema = {"type": "string", "enum": ["red"], "x-kubernetes-list-map-keys": ["name"]}
    encoded = to_protobuf(document({}, {"W": schema}, 37))
    assert b"\xa2\x01\x06\x12\x04red\n" in encoded
    assert b"\n\x1ax-kubernetes-list-map-keys\x12\t\x12\x07- name\n" in encoded


async def test_the_paths_are_those_of_v3_and_every_reference_leads_somewhere(widgets: Any) -> None:
    swagger = await widgets.get("/openapi/v2")
    for path in ("/api/v1/namespaces/{namespace}/pods/{name}", "/apis/example.com/v1/namespaces/{namespace}/widgets"):
        assert path in swagger["paths"], path
    for references in references_in(swagger):
        assert references.removeprefix("#/definitions/") in swagger["definitions"], references
    patch = swagger["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" in patch["consumes"]
    assert patch["parameters"][0]["in"] == "body"


def references_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in references_in(inner)]
    return [found for inner in value for found in references_in(inner)] if isinstance(value, list) else []
