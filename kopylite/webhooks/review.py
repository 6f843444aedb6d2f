"""Review: one admission request, as a validator or mutator sees it. Denied: how it says no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from kopylite.boundary import printable
from kopylite.errors import Cause, Forbidden, Invalid, KopyliteError, UsageError
from kopylite.objects import Kind, Unstructured, adapter_of, kind_of
from kopylite.webhooks.edits import at_path, same
from kopylite.webhooks.reviews import AdmissionRequest, GroupVersionKind, UserInfo, present, text_of

if TYPE_CHECKING:
    from kopylite.client import Client

T = TypeVar("T")

SUBJECT_ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", False)
# Of a denial; who asks is a person.
MAX_MESSAGE = 4000
MAX_CAUSES = 100
# Sub-resources whose objects are those of the kind itself.
_WHOLE = ("", "status", "ephemeralcontainers", "resize")


class Denied(KopyliteError):
    """Raise it from a validator or mutator to refuse the request, with a text for whoever asked.

    With `field` or `fields` it is a 422 Invalid with a cause for each, as of the API server's own validation; without,
    a 403 Forbidden. `review.deny()` notes one and goes on.

    Args:
        message: what is wrong.
        field: where, as in "spec.image".
        fields: several at once: what is wrong by where.
    """

    def __init__(self, message: str = "", *, field: str = "", fields: Mapping[str, str] | None = None) -> None:
        causes = [(field, message)] if field else []
        causes += (fields or {}).items()
        self.message = message
        self.causes = tuple(Cause("FieldValueInvalid", text, place) for place, text in causes)
        super().__init__(message or "; ".join(f"{cause.field}: {cause.message}" for cause in self.causes))


class Review(Generic[T]):
    """One request to write an object, before it is written.

    Attributes:
        request: everything that the API server says of it, as it came.
        warnings: noted by `warn`.
        audit: annotations of the API server's audit event; keys become "<webhook>/<key>".
    """

    def __init__(self, request: AdmissionRequest, kind: Kind | type[T], client: Client | None = None) -> None:
        self.request = request
        self.warnings: list[str] = []
        self.audit: dict[str, str] = {}
        self._kind = kind
        self._client = client
        self._came = present(request.object) or b""
        self._was = present(request.old_object) or b""
        self._typed: list[T] = []
        self._old: list[T] = []
        self._denials: list[Denied] = []

    @property
    def operation(self) -> str:
        """ "create", "update", "delete" or "connect"."""
        return self.request.operation.lower()

    @property
    def subresource(self) -> str:
        """ "" for the object itself, else e.g. "status" or "scale"."""
        return self.request.sub_resource

    @property
    def name(self) -> str:
        """ "" while the server has yet to make one of a generateName."""
        return self.request.name

    @property
    def namespace(self) -> str:
        """ "" for cluster-scoped objects."""
        return self.request.namespace

    @property
    def user(self) -> UserInfo:
        """Who asks."""
        return self.request.user_info

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be written: then change nothing elsewhere, either."""
        return bool(self.request.dry_run)

    @property
    def object(self) -> T:
        """The object as it is to be; of a delete, the one that is to go. A private copy: a mutator edits it in place.

        Of another kind than the webhook's (the Scale of a `scale`, the options of a CONNECT), it is an Unstructured.

        Raises:
            DecodeError: it does not fit its class; the request is then refused with the fields, as a 422.
        """
        if not self._typed:
            self._typed.append(self._decode(self._came or self._was))
        return self._typed[0]

    @object.setter  # noqa: A003
    def object(self, value: T) -> None:
        self._typed[:] = [value]

    @property
    def old(self) -> T | None:
        """The object as it is stored; None for a create. A private copy.

        Raises:
            DecodeError: as `object`.
        """
        if not self._was:
            return None
        if not self._old:
            self._old.append(self._decode(self._was))
        return self._old[0]

    @property
    def options(self) -> dict[str, Any]:
        """The CreateOptions, UpdateOptions, DeleteOptions or so of the request, as on the wire."""
        return _document(present(self.request.options) or b"")

    def warn(self, text: str) -> None:
        """Have a warning shown to whoever asked, whether the request is allowed or not. kubectl prints it."""
        self.warnings.append(text)

    def deny(self, message: str, *, field: str = "") -> None:
        """Refuse the request at the end, so that all that is wrong is told at once. `raise Denied` ends it here."""
        self._denials.append(Denied(message, field=field))

    def changed(self, field: str) -> bool:
        """Whether an update changes a field, as in "spec.image"; of a create, whether it is there at all."""
        return not same(at_path(_document(self._was), field), at_path(_document(self._came), field))

    def immutable(self, *fields: str) -> None:
        """Refuse an update that changes one of these fields, sets it, or takes it away; see `deny`."""
        if self.operation == "update":
            for field in fields:
                if self.changed(field):
                    self.deny("field is immutable", field=field)

    async def user_can(  # a question has as many parts
        self, verb: str, kind: Any, *, name: str = "", namespace: str | None = None, subresource: str = ""
    ) -> bool:
        """Whether the user who asks may do something else, too. Asks the API server; needs the right to create
        `subjectaccessreviews`.

        Args:
            verb: e.g. "get" or "create".
            kind: of what: a class or a Kind.
            name: of the object; "": of any.
            namespace: None: of the object under review; "": in all.

        Raises:
            ApiError, TransportError, KindNotFound: there is no answer.
        """
        if self._client is None:
            raise UsageError("user_can() asks the API server, and this review has no client: Review(..., client=...)")
        resource = await self._client.api.resources.find(kind_of(kind))
        attributes = {
            "verb": verb, "group": resource.kind.group, "version": resource.kind.version, "resource": resource.plural,
            "subresource": subresource, "name": name,
            "namespace": self.namespace if namespace is None else namespace,
        }  # fmt: skip
        user = self.user
        spec: dict[str, Any] = {"user": user.username, "resourceAttributes": {k: v for k, v in attributes.items() if v}}
        spec |= {"uid": user.uid} if user.uid else {}
        spec |= {"groups": list(user.groups)} if user.groups else {}
        spec |= {"extra": {key: list(values) for key, values in user.extra.items()}} if user.extra else {}
        kind_named = {"apiVersion": SUBJECT_ACCESS_REVIEW.api_version, "kind": SUBJECT_ACCESS_REVIEW.kind}
        answer = await self._client.live.create(Unstructured({**kind_named, "metadata": {}, "spec": spec}))
        return answer.status.get("allowed") is True

    def denial(self) -> Denied | None:
        """What `deny` has noted, as one; for kopylite."""
        if not self._denials:
            return None
        if len(self._denials) == 1:
            return self._denials[0]
        joined = Denied("; ".join(denial.message for denial in self._denials))
        joined.causes = tuple(cause for denial in self._denials for cause in denial.causes)
        return joined

    def shown(self) -> str:
        """Kind and key, for logs."""
        key = "/".join(part for part in (self.namespace, self.name or "(no name yet)") if part)
        below = f"/{self.subresource}" if self.subresource else ""
        return printable(f"{self.operation} of {self.request.kind.kind}{below} {key}", 500)

    def __repr__(self) -> str:
        return f"<Review: {self.shown()}>"

    def _decode(self, raw: bytes) -> Any:
        if not raw:
            empty = {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {})
            return Unstructured(_kind_named(self.request.kind), metadata=empty)
        return adapter_of(self._fitting()).decode(raw)

    def _fitting(self) -> Kind | type[Any]:
        """The declared kind, unless the object is of another one."""
        kind, came = kind_of(self._kind), self.request.kind
        if (kind.api_version, kind.kind) == (came.api_version, came.kind) and self.subresource in _WHOLE:
            return self._kind
        return Kind(came.api_version, came.kind)


def status_of(denied: Denied, request: AdmissionRequest) -> dict[str, Any]:
    """The Status of a denial."""
    if not denied.causes:
        told = denied.message if denied.args == (denied.message,) else str(denied)
        return Forbidden(text_of(told, MAX_MESSAGE) or "denied, and not told why").to_status()
    causes = [
        Cause(cause.reason, text_of(cause.message, MAX_MESSAGE), text_of(cause.field, 500))
        for cause in denied.causes[:MAX_CAUSES]
    ]
    shown = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    listed = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
    kind = f"{request.kind.kind}.{request.kind.group}" if request.kind.group else request.kind.kind
    details = {"name": request.name, "group": request.kind.group, "kind": request.kind.kind}
    text = printable(f'{kind} "{request.name}" is invalid: {listed}', 8000)
    return Invalid(text, details={k: v for k, v in details.items() if v}, causes=causes).to_status()


def _kind_named(kind: GroupVersionKind) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _document(raw: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(raw) if raw else {}
    return found if isinstance(found, dict) else {}
