"""Conversion webhooks: a CRD whose v1 has spec.size and whose v2 has spec.width for it; v1 is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.unit.apiserver.conftest import CRDS, Api
from tests.webhookserver import WebhookServer, webhook_server

V1, V2 = (f"/apis/stable.example.com/{version}/namespaces/default/boxes" for version in ("v1", "v2"))
NAME = "boxes.stable.example.com"


@pytest.fixture
async def hooks() -> AsyncIterator[WebhookServer]:
    async with webhook_server() as running:
        yield running


def crd(config: dict[str, Any]) -> dict[str, Any]:
    def version(name: str, field: str) -> dict[str, Any]:
        spec = {"type": "object", "properties": {field: {"type": "integer", "maximum": 100}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": schema}

    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "versions": [version("v1", "size"), version("v2", "width")],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }  # fmt: skip


def box(version: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"stable.example.com/{version}", "kind": "Box", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def boxes(api: Api, hooks: WebhookServer) -> Api:
    await api.create(CRDS, crd(hooks.client_config("convert")))
    return api


async def test_each_version_reads_what_the_other_wrote(boxes: Api, hooks: WebhookServer) -> None:
    created = await boxes.create(V2, box("v2", "a", width=7))
    assert (created["apiVersion"], created["spec"]) == ("stable.example.com/v2", {"width": 7})
    assert msgspec.json.decode(boxes.world.store.get(NAME, "default/a").body)["spec"] == {"size": 7}  # type: ignore[union-attr]
    _, read = await boxes.call("GET", f"{V1}/a")
    assert (read["apiVersion"], read["spec"]) == ("stable.example.com/v1", {"size": 7})
    await boxes.create(V1, box("v1", "b", size=8))
    _, listed = await boxes.call("GET", V2)
    assert [item["spec"] for item in listed["items"]] == [{"width": 7}, {"width": 8}]
    asked = len(hooks.requests)
    await boxes.call("GET", V2)
    assert len(hooks.requests) == asked, "what was converted once is kept"


async def test_writes_of_all_kinds_pass_through_the_stored_version(boxes: Api) -> None:
    await boxes.create(V1, box("v1", "a", size=1))
    status, patched = await boxes.call("PATCH", f"{V2}/a", {"spec": {"width": 2}})
    assert (status, patched["spec"], patched["metadata"]["generation"]) == (200, {"width": 2}, 2)
    status, replaced = await boxes.call("PUT", f"{V2}/a", {**patched, "spec": {"width": 3}})
    assert (status, replaced["spec"]) == (200, {"width": 3})
    applied = await boxes.call(
        "PATCH",
        f"{V2}/a?fieldManager=me&force=true",
        box("v2", "a", width=4),
        content_type="application/apply-patch+yaml",
    )
    assert (applied[0], applied[1]["spec"]) == (200, {"width": 4})
    assert (await boxes.call("GET", f"{V1}/a"))[1]["spec"] == {"size": 4}
    status, refused = await boxes.call("PATCH", f"{V2}/a", {"spec": {"width": 700}})
    assert (status, "spec.width" in refused["message"]) == (422, True)
    assert (await boxes.call("DELETE", f"{V2}/a"))[0] == 200


async def test_a_watch_shows_its_own_version_to_the_end(boxes: Api) -> None:
    response = await boxes.respond("GET", f"{V2}?watch=true&timeoutSeconds=1")
    assert response.stream is not None
    await boxes.create(V1, box("v1", "a", size=1))
    await boxes.call("DELETE", f"{V1}/a")
    lines = b"".join([chunk async for chunk in response.stream]).splitlines()
    events = list(map(msgspec.json.decode, lines))
    shown = [(event["type"], event["object"]["apiVersion"], event["object"]["spec"]) for event in events]
    assert shown == [
        ("ADDED", "stable.example.com/v2", {"width": 1}),
        ("DELETED", "stable.example.com/v2", {"width": 1}),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("convert-fail", "conversion webhook for stable.example.com/v1, Kind=Box failed: cannot do it"),
        ("convert-few", "returned 0 objects, expected 1"),
        ("convert-name", "returned invalid object: must have the same name: a != other"),
        ("convert-uid", "returned invalid object: must have the same UID: "),
        ("convert-version", "invalid groupVersion (expected stable.example.com/v2, received stable.example.com/v9)"),
        ("convert-review-uid", 'failed: expected response.uid="'),
        ("http-500", "failed: an error on the server"),
    ],
)
async def test_a_bad_conversion_is_an_error_that_names_it(api: Api, hooks: WebhookServer, path: str, text: str) -> None:
    await api.create(CRDS, crd(hooks.client_config(path)))
    await api.create(V1, box("v1", "a", size=1))
    for target in (f"{V2}/a", V2):
        status, answer = await api.call("GET", target)
        assert status == 500
        assert text in answer["message"]
    assert (await api.call("GET", f"{V1}/a"))[0] == 200


async def test_labels_may_be_changed_and_nothing_else_of_metadata(api: Api, hooks: WebhookServer) -> None:
    await api.create(CRDS, crd(hooks.client_config("convert-label")))
    await api.create(V1, box("v1", "a", size=1))
    _, read = await api.call("GET", f"{V2}/a")
    assert read["metadata"]["labels"] == {"converted": "yes"}


async def test_an_equivalent_rule_of_admission_converts_by_it_too(boxes: Api, hooks: WebhookServer) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["boxes"], "operations": ["*"]}
    webhook = {
        "name": "patch.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": hooks.client_config("patch-spec"),
    }  # fmt: skip
    target = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    await boxes.create(target, {"metadata": {"name": "c"}, "webhooks": [webhook]})
    created = await boxes.create(V2, box("v2", "a", width=1))
    assert created["spec"] == {"width": 7}
    [seen] = [asked for path, asked in hooks.requests if path == "patch-spec"]
    assert seen["object"]["apiVersion"] == "stable.example.com/v1"
    assert seen["requestKind"]["version"] == "v2"
