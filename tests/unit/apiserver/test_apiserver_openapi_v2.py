"""OpenAPI v2 of custom kinds, and its protobuf form, as the real server publishes them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kopylite.apiserver.openapi import v2_protobuf
from kopylite.apiserver.openapi.sharing import NodeSteps, Shared
from kopylite.apiserver.openapi.v2 import definition, document
from tests.unit.apiserver.conftest import Api, finished

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


def encoded_with(schema: dict[str, Any]) -> bytes:
    encoded: bytes = finished(v2_protobuf.to_protobuf(document({}, {}, {"W": schema}, 37)))
    return encoded


def test_protobuf_is_gnostics() -> None:
    size = {"description": "How large it is.", "type": "integer", "maximum": 10, "minimum": 1}
    widget = {"type": "object", "required": ["size"], "properties": {"size": size}}
    encoded = encoded_with(widget)
    # Taken from the answer of a kube-apiserver.
    assert (
        b'"\x10How large it is.9\x00\x00\x00\x00\x00\x00$@I\x00\x00\x00\x00\x00\x00\xf0?\xb2\x01\t\n\x07integer'
        in encoded
    )
    assert encoded.startswith(b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.37")
    assert b"\x9a\x01\x04size\xb2\x01\x08\n\x06object" in encoded


def test_values_of_free_form_are_yaml() -> None:
    schema = {"type": "string", "enum": ["red"], "x-kubernetes-list-map-keys": ["name"]}
    encoded = encoded_with(schema)
    assert b"\xa2\x01\x06\x12\x04red\n" in encoded
    assert b"\n\x1ax-kubernetes-list-map-keys\x12\t\x12\x07- name\n" in encoded


async def test_the_paths_are_those_of_v3_and_every_reference_leads_somewhere(widgets: Any) -> None:
    swagger = await widgets.get("/openapi/v2")
    for path in ("/api/v1/namespaces/{namespace}/pods/{name}", "/apis/example.com/v1/namespaces/{namespace}/widgets"):
        assert path in swagger["paths"], path
    for references in references_in(swagger):
        if references.startswith("#/parameters/"):
            continue
        assert references.removeprefix("#/definitions/") in swagger["definitions"], references
    patch = swagger["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" in patch["consumes"]
    assert patch["parameters"][0]["in"] == "body"
    referred = {parameter["$ref"] for parameter in patch["parameters"] if "$ref" in parameter}
    shared = [swagger["parameters"][reference.removeprefix("#/parameters/")] for reference in referred]
    assert {"fieldManager", "fieldValidation", "dryRun", "force"} == {parameter["name"] for parameter in shared}
    assert all(parameter["description"] for parameter in shared)


async def test_protobuf_has_all_paths_too(widgets: Api) -> None:
    response = await widgets.respond("GET", "/openapi/v2", accept=v2_protobuf.PROTOBUF)
    assert response.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    for path in (await widgets.get("/openapi/v2"))["paths"]:
        assert b"\n" + bytes([len(path)]) + path.encode() + b"\x12" in response.body if len(path) < 128 else True
    known = await widgets.respond("GET", "/openapi/v2", if_none_match=response.headers["ETag"])
    assert (known.status, known.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/example.com/v1", "/openapi/v3/apis/apps/v1"]
)
@pytest.mark.parametrize(("accept", "status"), [("application/yaml", 406), ("text/html", 406), ("application/*", 200)])
async def test_the_documents_have_no_other_forms(widgets: Api, path: str, accept: str, status: int) -> None:
    response = await widgets.respond("GET", path, accept=accept)
    assert response.status == status
    assert response.content_type == ("application/json" if status == 200 else "")


async def test_others_have_their_turn_while_a_document_is_finished(widgets: Api) -> None:
    turns, done = 0, anyio.Event()

    async def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await widgets.respond("GET", "/openapi/v2", accept=v2_protobuf.PROTOBUF)
        done.set()
    assert turns > 5


async def test_many_who_ask_at_once_wait_for_one_document(widgets: Api) -> None:
    answers: list[bytes] = []

    async def ask() -> None:
        answers.append((await widgets.respond("GET", "/openapi/v2", accept=v2_protobuf.PROTOBUF)).body)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask)
    assert len(answers) == 5
    assert all(answer is answers[0] for answer in answers)


def test_steps_that_fail_fail_for_all_who_wait() -> None:
    def broken() -> NodeSteps[int]:
        yield
        raise KeyError("x")

    shared = Shared(broken())
    first, second = shared.wait(), shared.wait()
    next(first)
    for waiting in (second, first):
        with pytest.raises(KeyError):
            next(waiting)


def test_steps_go_on_when_one_who_waited_leaves() -> None:
    def work() -> NodeSteps[int]:
        yield
        yield
        return 7

    shared = Shared(work())
    leaves = shared.wait()
    next(leaves)
    leaves.close()
    assert finished(shared.wait()) == 7


def references_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in references_in(inner)]
    return [found for inner in value for found in references_in(inner)] if isinstance(value, list) else []
