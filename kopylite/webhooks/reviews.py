"""AdmissionReview v1, as it comes and as it goes. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kopylite.boundary import printable, read, show
from kopylite.errors import BadRequest

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

# The API server cuts longer ones, and drops what comes after this much of all.
MAX_WARNING = 4096
MAX_WARNINGS_TOTAL = 8192
MAX_ANNOTATION = 10_000

_NULL = msgspec.Raw(b"null")


class GroupVersionKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersionResource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks.

    Attributes:
        username: e.g. "system:serviceaccount:shop:deployer".
        uid: "" for most.
        groups: e.g. ("system:authenticated",).
        extra: what the authenticator adds.
    """

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = ()
    extra: dict[str, tuple[str, ...]] | None = None


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The `request` of a review. Objects are the bytes that came; "null" where there is none."""

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    operation: str
    sub_resource: str = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL
    dry_run: bool | None = None
    options: msgspec.Raw = _NULL


class _AdmissionReview(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None


_decoder = msgspec.json.Decoder(_AdmissionReview)


def request_of(body: bytes) -> AdmissionRequest:
    """The request in the body of a call.

    Raises:
        BadRequest: it is no AdmissionReview v1 with a request and a uid; the text quotes none of it.
    """
    review = read(_decoder.decode, body, _unreadable)
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise BadRequest(
            f"the body is {printable(review.api_version, 100) or 'of no apiVersion'} "
            f"{printable(review.kind, 100) or '(no kind)'}, and not {API_VERSION} {KIND}"
        )
    if review.request is None or not review.request.uid:
        raise BadRequest(f"the {KIND} has no request with a uid")
    return review.request


def _unreadable(body: bytes, error: Exception) -> BadRequest:
    if not body:
        return BadRequest(f"the body is empty; it has to be an {KIND}")
    # msgspec's text of a validation error has places and types, and no values.
    why = str(error) if isinstance(error, msgspec.ValidationError) else "it is no JSON that can be read"
    return BadRequest(f"the body is no {KIND}: {printable(why, 500)}")


def present(raw: msgspec.Raw) -> bytes | None:
    """The bytes of an object of a request; None: there is none."""
    text = bytes(raw)
    return None if text == b"null" else text


def answer_to(
    uid: str,
    *,
    status: Mapping[str, Any] | None = None,
    patch: Sequence[Mapping[str, Any]] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """The body of the answer.

    Args:
        uid: of the request.
        status: why it is denied; None: it is allowed.
        patch: JSON patch; none where it is denied.
        warnings: for the user, shortened to what the API server passes on.
        audit: annotations of the audit event.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": status is None}
    response["status"] = {"code": 200} if status is None else dict(status)
    if patch and status is None:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    if warnings:
        response["warnings"] = _shortened(warnings)
    if audit:
        response["auditAnnotations"] = {
            text_of(key, 300): text_of(value, MAX_ANNOTATION) for key, value in audit.items()
        }
    return msgspec.json.encode({"kind": KIND, "apiVersion": API_VERSION, "response": response})


def text_of(value: object, limit: int) -> str:
    """What a function gave for a text, as one: an answer with anything else in it is none to the API server, and may
    then count as an allow by the failure policy."""
    return printable(value if isinstance(value, str) else show(value), limit)


def _shortened(warnings: Sequence[str]) -> list[str]:
    shown: dict[str, None] = {}
    total = 0
    for warning in warnings:
        text = " ".join(text_of(warning, MAX_WARNING).splitlines())  # it becomes a header
        total += len(text) if text not in shown else 0
        if total > MAX_WARNINGS_TOTAL:
            break
        shown[text] = None
    return list(shown)
