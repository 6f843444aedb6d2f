"""Who is asking: client certificates, bearer tokens, anonymous. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kopylite.apiserver.request.request import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from kopylite.errors import Unauthorized

# Whom tokens of this server are for, unless they say otherwise; upstream: the issuer of its service account tokens.
API_AUDIENCE: Final = "https://kubernetes.default.svc"

# The extra that tells one credential of a user from another.
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"


class TokenRefused(Exception):
    """A token stands for nobody. The text is what a TokenReview says about it."""


class TokenIdentity(NamedTuple):
    """Whom a token stands for, and which of the audiences asked for it is meant for."""

    user: User
    audiences: tuple[str, ...]


# From a token and the audiences that it should be for; None: no token of this kind. May raise TokenRefused.
TokenReader = Callable[[str, Sequence[str]], TokenIdentity | None]


class Authenticator:
    """Knows users by their credentials.

    Args:
        tokens: static bearer tokens.
        anonymous: whether requests without credentials are let in as system:anonymous.
        lookup: further tokens, such as those of service accounts.
    """

    def __init__(
        self,
        tokens: Mapping[str, User],
        *,
        anonymous: bool = False,
        lookup: TokenReader = lambda token, audiences: None,
    ) -> None:
        self._tokens = {token.encode(): user for token, user in tokens.items()}
        self._anonymous = anonymous
        self._lookup = lookup

    def authenticate(
        self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None = None, der: bytes = b""
    ) -> User:
        """The user of a request. A certificate goes before a token.

        Args:
            headers: by lower-case name.
            certificate: the verified client certificate, in the form of `ssl.getpeercert()`.
            der: the same in binary form.

        Raises:
            Unauthorized: bad credentials, or none where anonymous requests are refused.
        """
        if certificate and (user := certificate_user(certificate, der)).name:
            return user
        token = bearer_token(headers.get("authorization", ""))
        if token:
            try:
                return self.identify(token, (API_AUDIENCE,)).user
            except TokenRefused:
                raise Unauthorized("Unauthorized") from None
        if not self._anonymous:
            raise Unauthorized("Unauthorized")
        return User(ANONYMOUS, (UNAUTHENTICATED,))

    def identify(self, token: str, audiences: Sequence[str] = ()) -> TokenIdentity:
        """Whom a token stands for.

        Args:
            audiences: it has to be for one of them; none: for this server.

        Raises:
            TokenRefused: it stands for nobody, is not valid any more, or is for others.
        """
        wanted = tuple(audiences) or (API_AUDIENCE,)
        given = token.encode("utf-8", "surrogateescape")
        for known, user in self._tokens.items():
            if hmac.compare_digest(known, given) and API_AUDIENCE in wanted:
                return TokenIdentity(_authenticated(user), (API_AUDIENCE,))
        found = self._lookup(token, wanted)
        if found is None:
            raise TokenRefused("invalid bearer token")
        return found._replace(user=_authenticated(found.user))


def bearer_token(header: str) -> str:
    """The token in an Authorization header; "" if it holds none."""
    parts = header.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def header_warning(header: str) -> str:
    """What is odd about an Authorization header that is passed over; "" for nothing."""
    parts = header.strip().split(" ", 2)
    odd = len(parts) == 3 and parts[0].lower() == "bearer" and not parts[1]
    return (
        "the provided Authorization header contains extra space before the bearer token, and is ignored" if odd else ""
    )


def certificate_user(certificate: Mapping[str, Any], der: bytes = b"") -> User:
    """CN is the user, each O a group."""
    parts: Sequence[tuple[str, str]] = [pair for group in certificate.get("subject", ()) for pair in group]
    name = next((value for key, value in parts if key == "commonName"), "")
    groups = tuple(value for key, value in parts if key == "organizationName")
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)} if der else {}
    return _authenticated(User(name, groups, extra=extra))


def _authenticated(user: User) -> User:
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
