"""Every exception of kopylite, as one tree. The type says whose fault it is.

    KopyliteError
    ├── UsageError                 the program is written or started wrongly: fix it, a retry cannot help
    │   ├── KubeconfigError
    │   ├── RegistrationError
    │   └── ForgottenAwait         a reconcile called an async function and did not await it
    ├── ApiError                   the API server answered, and said no (one class per Status reason)
    │   ├── BadRequest 400 · Unauthorized 401 · Forbidden 403 · NotFound 404 · MethodNotAllowed 405
    │   ├── NotAcceptable 406 · AlreadyExists 409 · Conflict 409 · Expired 410 (Gone)
    │   ├── RequestEntityTooLarge 413 · UnsupportedMediaType 415 · Invalid 422 · TooManyRequests 429
    │   ├── InternalError 500 · ServerTimeout 500 · ServiceUnavailable 503 · GatewayTimeout 504
    │   └── told apart further: NamespaceTerminating (Forbidden), NamespaceNotFound (NotFound),
    │       NameStillTaken (AlreadyExists), ApplyConflict (Conflict), BeingDeleted (Invalid)
    ├── TransportError             no whole answer came
    │   ├── ConnectionFailed       the request was not sent
    │   ├── NotLeader              likewise: this process does not hold the lease that the write needs
    │   ├── RequestTimeout         the deadline passed; a write may or may not have happened
    │   └── StreamBroken           the connection ended in mid-answer; likewise
    ├── KindNotFound               the server does not serve this kind (now)
    │   └── SubresourceNotFound    it serves the kind, without this sub-resource
    ├── ObjectError                one object is not what the code expects; others are unaffected
    │   └── DecodeError · EncodeError · AlreadyOwned
    ├── TerminalError              raised by a reconcile: no retry until the next event (Retry, beside Result: later)
    ├── ReconcileTimeout           a reconcile ran longer than its controller allows
    └── QueueShutDown              the work queue hands out nothing more

The mapping from Status to class follows the API conventions: by `reason`, by code only where the reason
is unknown. What has a reason in common and means something else is told apart by cause, details and text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from kopylite.boundary import json_object, printable, seconds_to_wait

if TYPE_CHECKING:
    from kopylite.objects import Unstructured

# client-go cuts the text of a body that is no Status at the same length.
MAX_BODY_TEXT = 2048
# A validation error of a big object names hundreds of fields; whoever reads more of it reads the object.
MAX_MESSAGE = 16_384


class KopyliteError(Exception):
    """Root of every exception that kopylite raises."""


class UsageError(KopyliteError):
    """The program is written or started wrongly; the message names the thing, the rule and the way out."""


class KubeconfigError(UsageError):
    """The connection settings cannot be read or used."""


class RegistrationError(UsageError):
    """An App, controller, watch or kind is declared wrongly."""


class ForgottenAwait(UsageError):
    """An async function was called without `await`, so nothing of it was done; the message has function and line."""


class Cause(msgspec.Struct, frozen=True):
    """One entry of `details.causes`: what is wrong (`reason`, `message`) and where (`field`)."""

    reason: str
    message: str
    field: str = ""


class ApiError(KopyliteError):
    """The API server refused a request.

    Attributes:
        code: the HTTP status.
        reason: the machine-readable reason of the Status, e.g. "NotFound"; "" when the server gave none.
        message: the server's text.
        details: the Status's details (name, group, kind, uid, ...), without the causes.
        causes: its causes, in the server's order.
        retry_after: seconds that the server asks the client to wait, from body or header, an hour at most; None if it
            does not.
        request: "VERB path" of the request, for logs; never holds a query or a credential.
    """

    default_code: ClassVar[int] = 500
    default_reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str = "",
        *,
        code: int | None = None,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        causes: Sequence[Cause] = (),
        retry_after: float | None = None,
        request: str = "",
    ) -> None:
        self.code = self.default_code if code is None else code
        self.reason = self.default_reason if reason is None else reason
        self.message = message
        self.details = dict(details or {})
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.request = request
        super().__init__(message)

    def __str__(self) -> str:
        where = f" ({self.request})" if self.request else ""
        return f"{self.code} {self.reason or 'Unknown'}: {self.message}{where}"

    def to_status(self) -> dict[str, Any]:
        """The `v1 Status` object that a server sends for this error."""
        details = dict(self.details)
        if self.causes:
            details["causes"] = [
                {k: v for k in ("reason", "message", "field") if (v := getattr(c, k)) or k == "message"}
                for c in self.causes
            ]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = int(self.retry_after)
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if details:
            status["details"] = details
        status["code"] = self.code
        return status


class BadRequest(ApiError):
    default_code, default_reason = 400, "BadRequest"


class Unauthorized(ApiError):
    default_code, default_reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """The user may not do this: RBAC, or an admission plugin, says no."""

    default_code, default_reason = 403, "Forbidden"


class NamespaceTerminating(Forbidden):
    """The namespace is being deleted: nothing new can be made in it, whoever asks."""


class NotFound(ApiError):
    """There is no such object. A kind that is not served is a KindNotFound."""

    default_code, default_reason = 404, "NotFound"


class NamespaceNotFound(NotFound):
    """There is no such namespace, so nothing can be made in it."""


class MethodNotAllowed(ApiError):
    default_code, default_reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    default_code, default_reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    """There is an object of this name already."""

    default_code, default_reason = 409, "AlreadyExists"


class NameStillTaken(AlreadyExists):
    """The object of this name is being deleted; the name is free when it has gone."""


class Conflict(ApiError):
    """Somebody else changed the object first; or owns the field: see ApplyConflict."""

    default_code, default_reason = 409, "Conflict"


class ApplyConflict(Conflict):
    """Server-side apply: other managers own fields with other values. `causes` names each field and its manager.

    A retry finds the same. Leave the fields out, or take them over with `force=True`.
    """

    def __str__(self) -> str:
        return f"{super().__str__()}; leave these fields out, or take them over with force=True"


class Expired(ApiError):
    """The resourceVersion or continue token is too old: list again."""

    default_code, default_reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    default_code, default_reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    default_code, default_reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks its schema or a validation rule; `causes` names each field."""

    default_code, default_reason = 422, "Invalid"


class BeingDeleted(Invalid):
    """The object is being deleted: no finalizer can be added to it any more."""


class TooManyRequests(ApiError):
    default_code, default_reason = 429, "TooManyRequests"


class InternalError(ApiError):
    default_code, default_reason = 500, "InternalError"


class ServerTimeout(ApiError):
    default_code, default_reason = 500, "ServerTimeout"


class ServiceUnavailable(ApiError):
    default_code, default_reason = 503, "ServiceUnavailable"


class GatewayTimeout(ApiError):
    """Reason Timeout: the server gave up; a write may still have happened."""

    default_code, default_reason = 504, "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {c.default_reason: c for c in ApiError.__subclasses__()} | {"Gone": Expired}
_BY_CODE: dict[int, type[ApiError]] = {
    c.default_code: c for c in reversed(ApiError.__subclasses__()) if c not in (AlreadyExists, ServerTimeout)
}


def api_error(code: int, body: bytes, *, retry_after: float | None = None, request: str = "") -> ApiError:
    """The exception for an error answer: of a Status body by its reason, of any other body by the code.

    A 409 without a Status is AlreadyExists for a POST, else Conflict, as in client-go. Never raises: a body
    that is no JSON object (a proxy's HTML page, say) becomes the message, cut at 2048 bytes.
    """
    status = json_object(body)
    if status.get("kind") == "Status":
        return error_from_status(status, code=code, retry_after=retry_after, request=request)
    text = printable(body[:MAX_BODY_TEXT].decode("utf-8", "replace")).strip() or f"HTTP {code} with an empty body"
    cls = AlreadyExists if code == 409 and request.startswith("POST ") else _class_by_code(code)
    return cls(text, code=code, retry_after=seconds_to_wait(retry_after), request=request)


def error_from_status(
    status: Mapping[str, Any], *, code: int | None = None, retry_after: float | None = None, request: str = ""
) -> ApiError:
    """The exception for a `v1 Status` object, also of a watch stream. Never raises: what is odd counts as not said."""
    raw_code = status.get("code")
    code = raw_code if type(raw_code) is int and 0 < raw_code < 1000 else (code or 500)
    reason = _text(status.get("reason"))
    details = dict(found) if isinstance(found := status.get("details"), dict) else {}
    raw_causes = details.pop("causes", None)
    causes = tuple(
        Cause(_text(cause.get("reason")), _text(cause.get("message")), _text(cause.get("field")))
        for cause in (raw_causes if isinstance(raw_causes, list) else ())
        if isinstance(cause, dict)
    )
    seconds = seconds_to_wait(details.pop("retryAfterSeconds", None))
    retry_after = seconds_to_wait(retry_after) if seconds is None else seconds
    message = _text(status.get("message")) or reason or f"HTTP {code}"
    cls = (_BY_REASON.get(reason) if reason else None) or _class_by_code(code)
    return _told_apart(cls, message, details, causes, request)(
        message, code=code, reason=reason, details=details, causes=causes, retry_after=retry_after, request=request
    )


def _text(value: object) -> str:
    return printable(value, MAX_MESSAGE) if isinstance(value, str) else ""


def _told_apart(
    cls: type[ApiError], message: str, details: Mapping[str, Any], causes: Sequence[Cause], request: str
) -> type[ApiError]:
    """The class of an error whose reason alone does not say what it means."""
    if cls is Forbidden and any(cause.reason == "NamespaceTerminating" for cause in causes):
        return NamespaceTerminating
    if cls is NotFound and details.get("kind") == "namespaces" and not details.get("group"):
        inside = request.partition(f"/namespaces/{details.get('name')}/")[2]
        return NamespaceNotFound if inside not in ("", "status", "finalize") else cls
    if cls is AlreadyExists and message.startswith("object is being deleted: "):
        return NameStillTaken
    if cls is Conflict and any(cause.reason == "FieldManagerConflict" for cause in causes):
        return ApplyConflict
    if cls is Invalid and causes and all(_adds_finalizer(cause) for cause in causes):
        return BeingDeleted
    return cls


def _adds_finalizer(cause: Cause) -> bool:
    return cause.field == "metadata.finalizers" and "no new finalizers can be added if the" in cause.message


def _class_by_code(code: int) -> type[ApiError]:
    return _BY_CODE.get(code) or (InternalError if code >= 500 else ApiError)


class TransportError(KopyliteError):
    """No whole answer came from the server."""


class ConnectionFailed(TransportError):
    """No connection: refused, unreachable, or the TLS handshake failed. The request was not sent."""


class NotLeader(TransportError):
    """A write of a part that only the leader runs, in a process that does not lead, or no longer. It was not sent."""


class RequestTimeout(TransportError):
    """The deadline of a request passed; a write may or may not have happened."""


class StreamBroken(TransportError):
    """The connection ended in mid-answer; a write may or may not have happened."""


class KindNotFound(KopyliteError):
    """The server does not serve a kind: its CRD is missing, or not (or no longer) established."""


class SubresourceNotFound(KindNotFound):
    """The server serves a kind, but not this sub-resource of it; a CRD declares it under `subresources`."""


class ObjectError(KopyliteError):
    """One object is not what the code expects; other objects are unaffected."""


class DecodeError(ObjectError):
    """A stored object does not fit the Python type that it is read as; the message names object and field.

    `object` is the one that is stored, for who has to act on it; None: it is none. It may hold secrets, the text not.
    """

    def __init__(self, message: str, stored: Unstructured | None = None) -> None:
        self.object = stored
        super().__init__(message)


class EncodeError(ObjectError):
    """A value of the program that the API server could not give back as it is. Nothing was sent.

    `problem` says what is wrong ("is nan, which JSON does not have"), never a text's value; `field`: where.
    """

    def __init__(self, problem: str, field: str = "", name: str = "") -> None:
        super().__init__(f"{name + ': ' if name else ''}{field} {problem}".lstrip())  # copies come by their text
        self.problem = problem
        self.field = field


class AlreadyOwned(ObjectError):
    """The object has another controller owner. `earlier`: it was one of the same name, and goes with what it owned."""

    earlier = False


class TerminalError(KopyliteError):
    """Raise it from a reconcile that cannot succeed until something changes: no retry before the next event."""


class ReconcileTimeout(KopyliteError):
    """A reconcile ran longer than its controller's timeout and was cancelled."""


class LifecycleError(KopyliteError):
    """An `on_start`, a `lifespan` or a fatal task of an App has failed: its text names it, its cause is the error."""


class QueueShutDown(KopyliteError):
    """The queue is shut down and hands out nothing more."""
