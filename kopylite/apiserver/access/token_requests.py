"""TokenRequest: a client asks for a token of a service account."""

from __future__ import annotations

from typing import Any, Final

from kopylite.apiserver.access.authentication import API_AUDIENCE
from kopylite.apiserver.access.tokens import ServiceAccountTokens
from kopylite.apiserver.builtin import data
from kopylite.apiserver.builtin.strategies import CODECS
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.patching.apply.field_manager import EMPTY
from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.options import write_options
from kopylite.apiserver.request.request import Response
from kopylite.apiserver.schema.field_errors import FieldError, go_quote, invalid, invalid_error
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.world import Admission, Call, World
from kopylite.apiserver.writes.decoding import check_namespace_matches, read_typed
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.errors import BadRequest, Conflict, NotFound

_DEFAULT_SECONDS, _SHORTEST_SECONDS, _LONGEST_SECONDS = 3600, 600, 2**32
# What kubelets ask for when a pod wants a token. For the API server it lasts a year, so that old clients, which read
# it once, live on; upstream marks such a token after the time asked for.
_PROJECTED_SECONDS, _PROJECTED_LASTS = 3607, 365 * 24 * 3600
_GROUP = "authentication.k8s.io"
_REQUEST = "io.k8s.api.authentication.v1.TokenRequest"
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_WEBHOOK_API = "admissionregistration.k8s.io/v1"
_WEBHOOK_GATE = "APIServerWebhookAuthenticationToken"

Object = dict[str, Any]


class TokenRequests:
    """The handler of serviceaccounts/NAME/token."""

    def __init__(self, world: World, tokens: ServiceAccountTokens) -> None:
        self._world = world
        self._tokens = tokens

    async def _admitted(self, call: Call, given: Object, account: Object) -> Object:
        """The spec, when nobody has said no. Raises ApiError."""
        metadata = {"name": call.target.name, "namespace": call.target.namespace, **(given.get("metadata") or {})}
        metadata.setdefault("uid", account["metadata"]["uid"])
        spec = {"expirationSeconds": _DEFAULT_SECONDS, **(given.get("spec") or {})}
        obj = {"kind": "TokenRequest", "apiVersion": f"{_GROUP}/v1", "metadata": metadata, "spec": spec}
        obj["status"] = {"token": "", "expirationTimestamp": None}
        dry_run = write_options(call.request, "CreateOptions").dry_run
        admission = Admission(call, "CREATE", obj, None, dry_run)
        for plugin in (*self._world.mutating, *self._world.validating):
            await plugin(admission)
        return admission.obj["spec"] if admission.obj is not None else spec

    async def create(self, call: Call) -> Response:
        """POST. Raises NotFound, Invalid, Conflict or BadRequest."""
        accept_media(call.request, views=False)  # before the body is looked at
        given = read_typed(call.request, _REQUEST, "authentication.k8s.io/v1")
        sent = {key: value for key, value in (given.get("metadata") or {}).items() if value}
        check_namespace_matches(call, sent)
        account = self._account(call, sent)
        spec = await self._admitted(call, given, account)
        seconds = spec.get("expirationSeconds")
        seconds = _DEFAULT_SECONDS if seconds is None else seconds
        audiences = spec.get("audiences") or [API_AUDIENCE]
        ref = spec.get("boundObjectRef")
        _refuse(_errors(seconds, audiences, spec.get("attestations"), ref))
        bound = self._bound(call, account, ref) if ref is not None else {}
        lasts = seconds
        if "pod" in bound and seconds == _PROJECTED_SECONDS and audiences == [API_AUDIENCE]:
            lasts = _PROJECTED_LASTS
        now = self._world.clock.now()
        metadata = {
            "name": call.target.name,
            "namespace": call.target.namespace,
            "uid": account["metadata"]["uid"],
            "creationTimestamp": timestamp(now),
            "managedFields": self._owners(call, sent, {**spec, "expirationSeconds": seconds}),
        }
        answer: Object = {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": sent | metadata,
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": ref},
            "status": {
                "token": self._tokens.sign(account, audiences, lasts, bound),
                "expirationTimestamp": timestamp(now.fromtimestamp(int(now.timestamp()) + seconds, tz=now.tzinfo)),
            },
        }
        media = accept_media(call.request, views=False)
        return Response(201, media.encode(answer), media.type)

    def _account(self, call: Call, metadata: Object) -> Object:
        """The account that the path names and the body does not deny."""
        name, uid = call.target.name, metadata.get("uid")
        if metadata.get("name", name) != name:
            text = "must match the service account name if specified"
            raise invalid_error("TokenRequest", _GROUP, name, [invalid("metadata.name", metadata["name"], text)])
        account = self._world.lookup("", "serviceaccounts", call.target.namespace, name)
        if account is None:
            raise call.not_found()
        found = account["metadata"]["uid"]
        if uid and uid != found:
            text = f"the UID in the token request ({uid}) does not match the UID of the service account ({found})"
            raise _conflict(_GROUP, "TokenRequest", name, text)
        return account

    def _bound(self, call: Call, account: Object, ref: Object) -> dict[str, dict[str, str]]:
        """The objects with which the token ends, as they are claimed in it."""
        kind, name, version = ref.get("kind", ""), ref.get("name", ""), ref.get("apiVersion", "")
        group, _, short = version.rpartition("/")
        namespace = call.target.namespace
        if group or kind not in ("Pod", "Secret", "Node"):
            gate = version == _WEBHOOK_API and kind in _WEBHOOKS
            text = f"cannot bind token to object of type {group}/{short}, Kind={kind}"
            raise BadRequest(text + (f" (feature gate {_WEBHOOK_GATE} is disabled)" if gate else ""))
        obj = self._object(f"{kind.lower()}s", "" if kind == "Node" else namespace, name)
        bound = {kind.lower(): {"name": name, "uid": obj["metadata"]["uid"]}}
        if kind == "Pod":
            spec = obj["spec"]
            if spec.get("serviceAccountName") != account["metadata"]["name"]:
                text = (
                    f"cannot bind token for serviceaccount {go_quote(account['metadata']['name'])} to pod running with "
                    "different serviceaccount name."
                )
                raise BadRequest(text)
            if spec.get("nodeName"):
                node = self._world.lookup("", "nodes", "", spec["nodeName"])
                bound["node"] = {"name": spec["nodeName"]} | ({"uid": node["metadata"]["uid"]} if node else {})
        uid = obj["metadata"]["uid"]
        if ref.get("uid") and ref["uid"] != uid:
            text = (
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. The object "
                "might have been deleted and then recreated"
            )
            raise _conflict("", kind, name, text)
        return bound

    def _object(self, plural: str, namespace: str, name: str) -> Object:
        """Raises NotFound."""
        found = self._world.lookup("", plural, namespace, name)
        if found is None:
            details = {key: value for key, value in (("name", name), ("kind", plural)) if value}
            raise NotFound(f"{plural} {go_quote(name)} not found", details=details)
        return found

    def _owners(self, call: Call, metadata: Object, spec: Object) -> Any:
        """Nothing of a request is kept, and yet the real server notes whose fields it has."""
        sent: Object = {"metadata": dict(metadata), "spec": spec}
        update_managed_fields(
            sent,
            None,
            schema=SchemaNode({**data.SCHEMAS[_REQUEST], EMPTY: CODECS[_REQUEST].zero}, data.DEFINITIONS),
            manager=write_options(call.request, "CreateOptions").field_manager,
            api_version=f"{_GROUP}/v1",
            subresource=call.target.subresource,
            now=timestamp(self._world.clock.now()),
        )
        return sent["metadata"].get("managedFields", [])


def _errors(seconds: int, audiences: list[str], attestations: Object | None, ref: Object | None) -> list[FieldError]:
    field = "spec.expirationSeconds"
    errors: list[FieldError] = []
    if seconds < _SHORTEST_SECONDS:
        errors.append(invalid(field, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST_SECONDS:
        errors.append(invalid(field, seconds, "may not specify a duration larger than 2^32 seconds"))
    field = "spec.attestations"
    if ref is None or ref.get("apiVersion") != _WEBHOOK_API or ref.get("kind") not in _WEBHOOKS:
        if attestations:
            text = "attestations may only be specified with a webhook bound object reference"
            return [invalid(field, attestations, text)]
        return errors
    if len(audiences) != 1:
        errors.append(invalid("spec.audiences", audiences, "must be length 1 when bound to a webhook config"))
    if len(attestations or ()) != 1:
        text = "webhook bound requests require exactly one admissionReviewAPIGroups attestation"
        errors.append(invalid(field, attestations, text))
    return errors


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        raise invalid_error("TokenRequest", _GROUP, "", errors)


def _conflict(group: str, kind: str, name: str, text: str) -> Conflict:
    qualified = f"{kind}.{group}" if group else kind
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    return Conflict(f"Operation cannot be fulfilled on {qualified} {go_quote(name)}: {text}", details=details)
