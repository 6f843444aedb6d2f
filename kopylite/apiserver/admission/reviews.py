"""AdmissionReview: what a webhook is sent, and what its answer means. Pure; the texts are upstream's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kopylite.apiserver.admission.matching import name_of, namespace_of
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import Admission
from kopylite.errors import ApiError, error_from_status

Object = dict[str, Any]
_GROUP = "admission.k8s.io"
_SCHEME = "pkg/runtime/scheme.go:111"
# What Go says of JSON that is a string, which every text is that is read as YAML.
_NO_OBJECT = (
    'json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
VERSIONS = ("v1", "v1beta1")
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class BadAnswer(Exception):
    """The answer is no review of this request; the text says why."""


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """What a webhook said.

    Attributes:
        patch: the operations of a JSON patch.
        status: with which it denies, if it gave one.
        audit: annotations for the audit log.
    """

    allowed: bool
    patch: list[Any] | None = None
    status: Object | None = None
    audit: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def request_of(admission: Admission, resource: Resource, obj: Object | None, old: Object | None, uid: str) -> Object:
    """The AdmissionRequest, for a review or for expressions.

    Args:
        resource: in whose version the objects are.
    """
    call = admission.call
    part = call.target.subresource
    return {
        "uid": uid,
        "kind": _kind(resource, part),
        "resource": _resource(resource),
        **({"subResource": part} if part else {}),
        "requestKind": _kind(call.resource, part),
        "requestResource": _resource(call.resource),
        **({"requestSubResource": part} if part else {}),
        **({"name": name} if (name := name_of(admission)) else {}),
        **({"namespace": namespace} if (namespace := namespace_of(admission)) else {}),
        "operation": admission.operation,
        "userInfo": call.request.user.to_dict(),
        "object": obj,
        "oldObject": old,
        "dryRun": admission.dry_run,
        "options": options_of(admission),
    }


def _kind(resource: Resource, part: str) -> Object:
    declared = resource.subresources.get(part)
    if declared is not None and declared.version:
        return {"group": declared.group, "version": declared.version, "kind": declared.kind}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def options_of(admission: Admission) -> Object | None:
    """The options of the operation as it is carried out: an apply that creates has CreateOptions; a CONNECT none."""
    request = admission.call.request
    if admission.operation == "CONNECT":
        return None
    options: Object = {"kind": _OPTIONS[admission.operation], "apiVersion": "meta.k8s.io/v1"}
    if admission.dry_run:
        options["dryRun"] = ["All"]
    if admission.operation == "DELETE":
        if policy := request.param("propagationPolicy"):
            options["propagationPolicy"] = policy
        return options
    for name in ("fieldManager", "fieldValidation"):
        if value := request.param(name):
            options[name] = value
    return options


def review_of(version: str, request: Object) -> bytes:
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request})


def read_answer(body: bytes, version: str, uid: str, *, mutating: bool) -> ReviewVerdict:
    """What the body of a webhook's answer says. Raises BadAnswer."""
    review = _review(body, version)
    if problem := _foreign(review, version):
        raise BadAnswer(f"failed to call webhook: {problem}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise BadAnswer("received invalid webhook response: webhook response was absent")
    if version == "v1":
        problem = _problem(review, response, uid, mutating)
        if problem:
            raise BadAnswer(f"received invalid webhook response: {problem}")
    status, warnings, audit = response.get("status"), response.get("warnings"), response.get("auditAnnotations")
    return ReviewVerdict(
        allowed=response.get("allowed") is True,
        patch=_patch(response.get("patch")) if mutating else None,
        status=status if isinstance(status, dict) else None,
        audit={str(k): str(v) for k, v in audit.items()} if isinstance(audit, dict) else {},
        warnings=tuple(text for text in warnings if isinstance(text, str)) if isinstance(warnings, list) else (),
    )


def _review(body: bytes, version: str) -> Object:
    try:
        review = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        raise BadAnswer(f"failed to call webhook: {_json_problem(body)}") from None
    if not isinstance(review, dict):
        raise BadAnswer(f"failed to call webhook: couldn't get version/kind; json parse error: {_NO_OBJECT}")
    if not review.get("kind"):
        raise BadAnswer(
            f"failed to call webhook: Object 'Kind' is missing in '{body.decode('utf-8', 'replace').strip()}'"
        )
    return review


def _foreign(review: Object, version: str) -> str:
    """Why it is no review in the version that was sent; "" if it is."""
    kind, api_version = str(review["kind"]), str(review.get("apiVersion", ""))
    if kind == "AdmissionReview" and api_version in [f"{_GROUP}/{known}" for known in VERSIONS]:
        found = api_version.rpartition("/")[2]
        wanted = f"converting ({found}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        return "" if found == version else wanted
    return f'no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme "{_SCHEME}"'


def _json_problem(body: bytes) -> str:
    text = body.decode("utf-8", "replace").lstrip()
    if text[:1] in ("{", "["):
        return "couldn't get version/kind; json parse error: unexpected end of JSON input"
    return f"couldn't get version/kind; json parse error: {_NO_OBJECT}"


def _problem(review: Object, response: Object, uid: str, mutating: bool) -> str:
    if response.get("uid", "") != uid:
        return f"expected response.uid={go_quote(uid)}, got {go_quote(str(response.get('uid', '')))}"
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            return "validating webhook may not return response.patch"
        return "validating webhook may not return response.patchType" if kind is not None else ""
    if patch and kind is None:
        return "webhook returned response.patch but not response.patchType"
    if not patch and kind is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if kind == "" else ""


def _patch(encoded: Any) -> list[Any] | None:
    if not encoded:
        return None
    try:
        patch = msgspec.json.decode(base64.b64decode(encoded, validate=True))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise BadAnswer("received undecodable patch in webhook response: unexpected end of JSON input") from None
    if not isinstance(patch, list):
        raise BadAnswer("received undecodable patch in webhook response: it is no list of operations")
    return patch


def denial(name: str, status: Object | None) -> ApiError:
    """The error of a request that the webhook `name` does not allow: its own Status, with a text that names it."""
    given = dict(status or {})
    code = given.get("code")
    given["code"] = code if isinstance(code, int) and code >= 400 else 400
    message, reason = str(given.get("message") or ""), str(given.get("reason") or "")
    denied = f"admission webhook {go_quote(name)} denied the request"
    given["message"] = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
    return error_from_status(given)
