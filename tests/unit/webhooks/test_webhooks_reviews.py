"""AdmissionReview v1 in and out: every field, and what is none."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.errors import BadRequest
from kopylite.webhooks.reviews import MAX_WARNINGS_TOTAL, answer_to, present, request_of

REQUEST: dict[str, Any] = {
    "uid": "u-1",
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "subResource": "scale",
    "requestKind": {"group": "apps", "version": "v1beta1", "kind": "Deployment"},
    "requestResource": {"group": "apps", "version": "v1beta1", "resource": "deployments"},
    "requestSubResource": "scale",
    "name": "web",
    "namespace": "shop",
    "operation": "UPDATE",
    "userInfo": {"username": "ann", "uid": "7", "groups": ["dev", "ops"], "extra": {"scopes": ["a", "b"]}},
    "object": {"kind": "Deployment", "spec": {"replicas": 2}},
    "oldObject": {"kind": "Deployment", "spec": {"replicas": 1}},
    "dryRun": True,
    "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
}


def body(**changes: Any) -> bytes:
    request = {name: value for name, value in {**REQUEST, **changes}.items() if value is not ...}
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()


def test_every_field_of_a_request_is_read() -> None:
    request = request_of(body())
    assert (request.uid, request.operation, request.name, request.namespace) == ("u-1", "UPDATE", "web", "shop")
    assert (request.sub_resource, request.request_sub_resource, request.dry_run) == ("scale", "scale", True)
    assert (request.kind.group, request.kind.version, request.kind.kind) == ("apps", "v1", "Deployment")
    assert request.kind.api_version == "apps/v1"
    assert request.resource.resource == "deployments"
    assert request.request_kind is not None
    assert request.request_kind.version == "v1beta1"
    assert request.request_resource is not None
    assert request.request_resource.version == "v1beta1"
    assert request.user_info.username == "ann"
    assert (request.user_info.uid, request.user_info.groups) == ("7", ("dev", "ops"))
    assert request.user_info.extra == {"scopes": ("a", "b")}
    assert json.loads(present(request.object) or b"") == REQUEST["object"]
    assert json.loads(present(request.old_object) or b"") == REQUEST["oldObject"]
    assert json.loads(present(request.options) or b"") == REQUEST["options"]


def test_what_go_leaves_out_or_writes_as_null_is_absent() -> None:
    request = request_of(
        body(subResource=..., requestKind=None, requestResource=..., namespace=..., object=None, oldObject=...,
             dryRun=None, userInfo={}, options=None)
    )  # fmt: skip
    assert (request.sub_resource, request.namespace, request.request_kind) == ("", "", None)
    assert present(request.object) is None
    assert present(request.old_object) is None
    assert request.dry_run is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "empty"),
        (b"{", "no JSON"),
        (b"[1]", "no AdmissionReview"),
        (b"{}", "no apiVersion"),
        (body().replace(b"/v1\"", b"/v1beta1\""), "v1beta1"),
        (json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}).encode(), "no request"),
        (body(uid=""), "uid"),
        (body(uid=...), "uid"),
        (body(operation=7), "operation"),
        (b"{\"request\": {\"object\": " + b"[" * 100_000, "no JSON"),
    ],
)  # fmt: skip
def test_what_is_no_review_is_a_bad_request(raw: bytes, text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        request_of(raw)


@given(st.binary())
def test_any_bytes_are_a_review_or_a_bad_request(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        request_of(raw)


def test_an_error_does_not_quote_the_object() -> None:
    with pytest.raises(BadRequest) as caught:
        request_of(b'{"kind": "AdmissionReview", "request": {"object": {"data": "hunter2"')
    assert "hunter2" not in str(caught.value)


def test_an_answer_has_uid_and_patch() -> None:
    answer = json.loads(answer_to("u", patch=[{"op": "add", "path": "/x", "value": 1}], audit={"why": "because"}))
    assert (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    response = answer["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u", True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/x", "value": 1}]
    assert response["auditAnnotations"] == {"why": "because"}


def test_an_answer_without_a_patch_has_no_patch_type() -> None:
    response = json.loads(answer_to("u"))["response"]
    assert response == {"uid": "u", "allowed": True, "status": {"code": 200}}


def test_a_denial_has_no_patch_and_keeps_its_warnings() -> None:
    patch = [{"op": "add", "path": "/x", "value": 1}]
    response = json.loads(answer_to("u", status={"code": 403}, patch=patch, warnings=["a", "a", "b\n"]))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert "patch" not in response
    assert len(response["warnings"]) == 2


def test_warnings_are_shortened_to_what_is_passed_on() -> None:
    response = json.loads(answer_to("u", warnings=["x" * 10_000, "y" * 4000, "z" * 4000]))["response"]
    assert sum(map(len, response["warnings"])) <= MAX_WARNINGS_TOTAL
