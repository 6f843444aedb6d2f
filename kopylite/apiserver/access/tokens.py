"""Service account tokens: JSON web tokens, and who such a token stands for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from kopylite.apiserver.access.authentication import API_AUDIENCE, CREDENTIAL_ID, TokenIdentity, TokenRefused
from kopylite.apiserver.access.impersonation import account_groups
from kopylite.apiserver.access.signing import ALGORITHM, SigningKey, encode
from kopylite.apiserver.request.request import SERVICE_ACCOUNT, User
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import World

# Clocks may differ by so much, and so long lives on what is being deleted. go-jose's DefaultLeeway.
_LEEWAY_SECONDS = 60
_EXTRA = "authentication.kubernetes.io"
_BOUND: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class ServiceAccountTokens:
    """Signs and reads tokens."""

    def __init__(self, world: World, key: SigningKey) -> None:
        self._world = world
        self._key = key

    def sign(
        self, account: dict[str, Any], audiences: Sequence[str], seconds: int, bound: Mapping[str, dict[str, str]]
    ) -> str:
        """A token of a service account.

        Args:
            seconds: how long it is valid.
            bound: the objects with which it ends, as {name, uid}, by `pod`, `secret` or `node`.
        """
        metadata = account["metadata"]
        now = int(self._world.clock.now().timestamp())
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "iss": API_AUDIENCE,
            "jti": self._world.clock.uuid(),
            "sub": f"{SERVICE_ACCOUNT}{metadata['namespace']}:{metadata['name']}",
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
                **bound,
            },
        }
        header = {"alg": ALGORITHM, "kid": self._key.id}
        head = f"{encode(msgspec.json.encode(header))}.{encode(msgspec.json.encode(claims))}"
        return f"{head}.{encode(self._key.sign(head.encode()))}"

    def read(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        """The service account that a token of this server stands for; None for any other text.

        Raises:
            TokenRefused: it was valid once, or is for other audiences.
        """
        head, _, signature = token.rpartition(".")
        if not self._key.verifies(head.encode("utf-8", "surrogateescape"), _decode(signature)):
            return None
        claims: dict[str, Any] = msgspec.json.decode(_decode(head.partition(".")[2]))
        given = claims["aud"]
        common = tuple(audience for audience in audiences if audience in given)
        if not common:
            text = f"token audiences {_listed(given)} is invalid for the target audiences {_listed(audiences)}"
            raise _refused(text)
        return TokenIdentity(self._account(claims), common)

    def _account(self, claims: dict[str, Any]) -> User:
        """Raises TokenRefused."""
        if claims["exp"] < self._world.clock.now().timestamp() - _LEEWAY_SECONDS:
            raise _refused("service account token has expired")
        own = claims["kubernetes.io"]
        namespace, name, uid = own["namespace"], own["serviceaccount"]["name"], own["serviceaccount"]["uid"]
        account = self._world.lookup("", "serviceaccounts", namespace, name)
        if account is None:
            raise _refused(f"serviceaccounts {go_quote(name)} not found")
        if account["metadata"]["uid"] != uid:
            found = account["metadata"]["uid"]
            raise _refused(f"service account UID ({found}) does not match claim ({uid})")
        if self._is_gone(account):
            raise _refused(f"service account {namespace}/{name} has been deleted")
        for kind, plural in _BOUND.items():
            if kind in own and not (kind == "node" and "pod" in own):
                self._check_bound(kind, plural, namespace, own[kind])
        return User(f"{SERVICE_ACCOUNT}{namespace}:{name}", account_groups(namespace), uid, _extra(claims["jti"], own))

    def _check_bound(self, kind: str, plural: str, namespace: str, ref: dict[str, str]) -> None:
        """Raises TokenRefused: the object with which the token ends is no more."""
        obj = self._world.lookup("", plural, "" if kind == "node" else namespace, ref["name"])
        if obj is not None and obj["metadata"]["uid"] != ref["uid"]:
            found = obj["metadata"]["uid"]
            text = f"{kind} UID ({found}) does not match service account {kind} ref claim ({ref['uid']})"
            raise _refused(text[:1].upper() + text[1:] if kind == "pod" else text)
        if obj is None or self._is_gone(obj):
            raise _refused("service account token has been invalidated")

    def _is_gone(self, obj: dict[str, Any]) -> bool:
        deleted = obj["metadata"].get("deletionTimestamp")
        if not deleted:
            return False
        return (self._world.clock.now() - datetime.fromisoformat(deleted)).total_seconds() > _LEEWAY_SECONDS


def _refused(text: str) -> TokenRefused:
    """Upstream tries several readers of tokens, and tells what each of them said."""
    return TokenRefused(f"[invalid bearer token, {text}]")


def _extra(token_id: str, own: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """What is known of a token beyond its account."""
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={token_id}",)}
    for kind in ("pod", "node"):
        ref = own.get(kind)
        if ref:
            extra[f"{_EXTRA}/{kind}-name"] = (ref["name"],)
            if ref.get("uid"):
                extra[f"{_EXTRA}/{kind}-uid"] = (ref["uid"],)
    return extra


def _listed(texts: Sequence[str]) -> str:
    return f"[{' '.join(go_quote(text) for text in texts)}]"


def _decode(text: str) -> bytes:
    """What base64 stands for; b"" for what is none."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return b""
