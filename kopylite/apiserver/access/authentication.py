"""Who is asking: bearer tokens, client certificates, anonymous, and impersonation. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kopylite.apiserver.access.authorization import Authorizer, forbidden
from kopylite.apiserver.request.request import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Request, Target, User
from kopylite.errors import BadRequest, Unauthorized

_IMPERSONATE_USER, _IMPERSONATE_GROUP = "impersonate-user", "impersonate-group"
_IMPERSONATE_UID, _IMPERSONATE_EXTRA = "impersonate-uid", "impersonate-extra-"


class Authenticator:
    """Knows users by their credentials.

    Args:
        tokens: static bearer tokens.
        anonymous: whether requests without credentials are let in as system:anonymous.
        lookup: further tokens, such as those of service accounts; None: not known.
    """

    def __init__(
        self,
        tokens: Mapping[str, User],
        *,
        anonymous: bool = False,
        lookup: Callable[[str], User | None] = lambda token: None,
    ) -> None:
        self._tokens = {token.encode(): user for token, user in tokens.items()}
        self._anonymous = anonymous
        self._lookup = lookup

    def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> User:
        """The user of a request.

        Args:
            headers: by lower-case name.
            certificate: the verified client certificate, in the form of `ssl.getpeercert()`.

        Raises:
            Unauthorized: bad credentials, or none where anonymous requests are refused.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            user = self.token_user(token.strip())
            if user is None:
                raise Unauthorized("Unauthorized")
            return user
        if certificate:
            return certificate_user(certificate)
        if not self._anonymous:
            raise Unauthorized("Unauthorized")
        return User(ANONYMOUS, (UNAUTHENTICATED,))

    def token_user(self, token: str) -> User | None:
        """The user that a token stands for; None if it is not, or no longer, valid."""
        given = token.encode("utf-8", "surrogateescape")
        for known, user in self._tokens.items():
            if hmac.compare_digest(known, given):
                return _authenticated(user)
        found = self._lookup(token)
        return _authenticated(found) if found else None


def certificate_user(certificate: Mapping[str, Any]) -> User:
    """CN is the user, each O a group."""
    parts: Sequence[tuple[str, str]] = [pair for group in certificate.get("subject", ()) for pair in group]
    name = next((value for key, value in parts if key == "commonName"), "")
    groups = tuple(value for key, value in parts if key == "organizationName")
    return _authenticated(User(name, groups))


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def impersonated(request: Request, groups: Sequence[str], authorizer: Authorizer) -> User:
    """The user that a request wants to act as, or its own. Raises Forbidden, BadRequest.

    Args:
        groups: the values of all Impersonate-Group headers.
    """
    name = request.headers.get(_IMPERSONATE_USER, "")
    if not name and not groups:
        return request.user
    if not name:
        shown = ", ".join(f'"{group}"' for group in groups)
        raise BadRequest(
            f'requested &user.DefaultInfo{{Name:"", UID:"", Groups:[]string{{{shown}}}, '
            "Extra:map[string][]string(nil)} without impersonating a user name"
        )
    for resource, wanted in (("users", name), *(("groups", group) for group in groups)):
        target = Target("impersonate", request.path, resource=resource, name=wanted)
        if wanted and not authorizer.allows(request.user, target):
            raise forbidden(request.user, target)
    extra = {
        key.removeprefix(_IMPERSONATE_EXTRA): (value,)
        for key, value in request.headers.items()
        if key.startswith(_IMPERSONATE_EXTRA)
    }
    default = () if name == ANONYMOUS else (AUTHENTICATED,)
    all_groups = tuple(dict.fromkeys((*groups, *default)))
    return User(name, all_groups, request.headers.get(_IMPERSONATE_UID, ""), extra)
