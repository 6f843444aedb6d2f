"""Service account tokens: TokenRequest, and who a token stands for. Signed with a key of this process."""

from __future__ import annotations

import base64
import hmac
import secrets
from typing import Any

import msgspec

from kopylite.apiserver.builtin import data
from kopylite.apiserver.builtin.strategies import CODECS
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.patching.apply.field_manager import EMPTY
from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.options import write_options
from kopylite.apiserver.request.request import Response, User
from kopylite.apiserver.schema.field_errors import invalid, invalid_error
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes.decoding import read_typed
from kopylite.apiserver.writes.metadata import timestamp

_DEFAULT_SECONDS, _SHORTEST_SECONDS = 3600, 600
_LONGEST_SECONDS = 1 << 32
_AUDIENCE = "https://kubernetes.default.svc"
_REQUEST = "io.k8s.api.authentication.v1.TokenRequest"
_HEADER = {"alg": "HS256", "typ": "JWT"}


class ServiceAccountTokens:
    """Issues and reads JSON web tokens. They end with the process, like everything signed with its key."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._key = secrets.token_bytes(32)

    async def request(self, call: Call) -> Response:
        """POST serviceaccounts/NAME/token. Raises NotFound or Invalid."""
        given = read_typed(call.request, _REQUEST)
        account = self._world.lookup("", "serviceaccounts", call.target.namespace, call.target.name)
        if account is None:
            raise call.not_found()
        spec = given.get("spec") or {}
        seconds = spec.get("expirationSeconds") or _DEFAULT_SECONDS
        if seconds < _SHORTEST_SECONDS:
            error = invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
            raise invalid_error("TokenRequest", "authentication.k8s.io", "", [error])
        if seconds > _LONGEST_SECONDS:
            error = invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
            raise invalid_error("TokenRequest", "authentication.k8s.io", "", [error])
        audiences = spec.get("audiences") or [_AUDIENCE]
        now = self._world.clock.now()
        expires = int(now.timestamp()) + seconds
        answer: dict[str, Any] = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": call.target.name,
                "namespace": call.target.namespace,
                "creationTimestamp": timestamp(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {
                "token": self._sign(account, audiences, int(now.timestamp()), expires),
                "expirationTimestamp": timestamp(now.fromtimestamp(expires, tz=now.tzinfo)),
            },
        }
        metadata = answer["metadata"] = {**answer["metadata"], "uid": account["metadata"]["uid"]}
        metadata["managedFields"] = self._owners(call, spec)
        media = accept_media(call.request, views=False)
        return Response(201, media.encode(answer), media.type)

    def _owners(self, call: Call, spec: dict[str, Any]) -> Any:
        """Nothing of a request is kept, and yet the real server notes whose fields it has."""
        sent: dict[str, Any] = {"metadata": {}, "spec": spec}
        update_managed_fields(
            sent,
            None,
            schema=SchemaNode({**data.SCHEMAS[_REQUEST], EMPTY: CODECS[_REQUEST].zero}, data.DEFINITIONS),
            manager=write_options(call.request, "CreateOptions").field_manager,
            api_version="authentication.k8s.io/v1",
            subresource=call.target.subresource,
            now=timestamp(self._world.clock.now()),
        )
        return sent["metadata"].get("managedFields", [])

    def user(self, token: str) -> User | None:
        """The service account that a valid token of this server stands for; None for any other text."""
        head, _, signature = token.rpartition(".")
        if not hmac.compare_digest(self._signature(head), signature.encode("utf-8", "surrogateescape")):
            return None
        claims = msgspec.json.decode(_decode(head.partition(".")[2]))
        if claims["exp"] <= self._world.clock.now().timestamp():
            return None
        own = claims["kubernetes.io"]
        namespace, name = own["namespace"], own["serviceaccount"]["name"]
        account = self._world.lookup("", "serviceaccounts", namespace, name)
        if account is None or account["metadata"]["uid"] != own["serviceaccount"]["uid"]:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return User(f"system:serviceaccount:{namespace}:{name}", groups, account["metadata"]["uid"])

    def _sign(self, account: dict[str, Any], audiences: list[str], issued: int, expires: int) -> str:
        metadata = account["metadata"]
        claims = {
            "aud": audiences,
            "exp": expires,
            "iat": issued,
            "nbf": issued,
            "iss": _AUDIENCE,
            "jti": self._world.clock.uuid(),
            "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            },
        }
        head = f"{_encode(msgspec.json.encode(_HEADER))}.{_encode(msgspec.json.encode(claims))}"
        return f"{head}.{self._signature(head).decode()}"

    def _signature(self, head: str) -> bytes:
        return _encode(hmac.digest(self._key, head.encode("utf-8", "surrogateescape"), "sha256")).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
