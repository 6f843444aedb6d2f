"""The auth provider `oidc` of kubeconfigs: an id-token that is renewed at its OpenID Connect provider.

Driven here and not by kubernetes_asyncio, whose client does not verify the provider when the kubeconfig names no
authority for it, knows no client without a secret, and lets a dropped connection escape as an exception of its library.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from kopylite.boundary import read, say
from kopylite.client.addresses import environment_proxy, host_header, is_loopback, server_url, without_user
from kopylite.client.credentials import EXPIRY_LEEWAY, CachedCredentials, ClientIdentity, check_header
from kopylite.client.dialing import Dialer
from kopylite.client.tls import TlsSettings, build_context
from kopylite.client.wire import Broken, head_of, lines_of
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import ConnectionFailed, KubeconfigError
from kopylite.redaction import remember

logger = logging.getLogger(__name__)

# For each of the two requests of a renewal.
PROVIDER_TIMEOUT = 20.0
# Documents and tokens are a few KB.
MAX_ANSWER = 1024 * 1024
# As for exec plugins: a token that the server rejects is not renewed for each request.
MIN_INTERVAL = 10.0
_PLAIN = "/?%:@!$&'()*+,;=~"


class _Claims(msgspec.Struct):
    exp: float | None = None


class _Metadata(msgspec.Struct):
    token_endpoint: str | None = None


class _Tokens(msgspec.Struct):
    id_token: str | None = None
    refresh_token: str | None = None


_Document = TypeVar("_Document", _Metadata, _Tokens)


def oidc_provider(config: Mapping[str, str], where: str, *, clock: Clock = SYSTEM_CLOCK) -> CachedCredentials:
    """Credentials from the id-token of a kubeconfig, renewed with its refresh-token shortly before it ends.

    Renewed tokens stay in this process: the kubeconfig is not written.

    Args:
        config: of the auth-provider entry.
        where: names file and user, for errors.

    Raises:
        KubeconfigError: the issuer or the client is not named, or the issuer is no https URL.
    """
    for name in ("idp-issuer-url", "client-id"):
        if not config.get(name):
            raise KubeconfigError(f"{where}: auth-provider oidc needs `{name}`")
    return CachedCredentials(_Provider(config, where, clock).load, min_interval=MIN_INTERVAL, clock=clock)


class _Provider:
    def __init__(self, config: Mapping[str, str], where: str, clock: Clock) -> None:
        self._config = config
        self._where = where
        self._clock = clock
        self._issuer = _secure(config["idp-issuer-url"], f"{where}: idp-issuer-url")
        self._id_token = config.get("id-token", "")
        self._refresh_token = config.get("refresh-token", "")
        for secret in (self._refresh_token, config.get("client-secret", "")):
            remember(secret)

    async def load(self) -> ClientIdentity:
        """The identity of the present token, or near its end of a renewed one. Raises KubeconfigError."""
        if self._id_token and (left := self._seconds_left(self._id_token)) > EXPIRY_LEEWAY:
            return ClientIdentity(f"Bearer {self._id_token}", lifetime=left)
        if not self._refresh_token:
            raise KubeconfigError(
                f"{self._where}: the id-token has ended, and there is no refresh-token to renew it with; sign in again"
            )
        tokens = await self._renew()
        if not tokens.id_token:
            raise KubeconfigError(
                f"{self._where}: {self._issuer} gave no id_token: does the refresh-token have the scope openid?"
            )
        check_header(tokens.id_token, f"{self._where}: the renewed id-token")
        left = self._seconds_left(tokens.id_token)
        self._id_token = tokens.id_token
        if tokens.refresh_token and tokens.refresh_token != self._refresh_token:
            self._refresh_token = tokens.refresh_token
            remember(self._refresh_token)
            logger.warning(
                "%s: the provider gave a new refresh-token, which is kept in this process only; if it takes each "
                "of them once, sign in again before the next start",
                self._where,
            )
        return ClientIdentity(f"Bearer {self._id_token}", lifetime=left)

    def _seconds_left(self, token: str) -> float:
        def refuse(token: str, error: Exception) -> KubeconfigError:
            return KubeconfigError(f"{self._where}: the id-token is no JSON web token; sign in again")

        claims = read(_claims_of, token, refuse)
        return (claims.exp or 0) - self._clock.now().timestamp()

    async def _renew(self) -> _Tokens:
        tls = build_context(_tls(self._config, self._where))
        try:
            url = f"{self._issuer}/.well-known/openid-configuration"
            status, body = await _ask("GET", url, tls)
            metadata = self._decode(status, body, _Metadata, url)
            if not metadata.token_endpoint:
                raise KubeconfigError(f"{self._where}: {url} names no token_endpoint")
            endpoint = metadata.token_endpoint  # as it is: some end with a slash, others have a query
            _secure(endpoint, f"{self._where}: the provider's token_endpoint")
            status, body = await self._ask_for_tokens(endpoint, tls)
            return self._decode(status, body, _Tokens, endpoint)
        except (ConnectionFailed, Broken, TimeoutError) as error:
            reason = str(error) or f"it took more than {PROVIDER_TIMEOUT:.0f} s"
            raise KubeconfigError(f"{self._where}: no answer from the provider {self._issuer}: {reason}") from error

    async def _ask_for_tokens(self, endpoint: str, tls: ssl.SSLContext) -> tuple[int, bytes]:
        """Providers differ in where they look for the client's secret: first in the header, then in the form."""
        client, secret = self._config["client-id"], self._config.get("client-secret", "")
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
        pair = base64.b64encode(f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()).decode()
        status, body = await _ask("POST", endpoint, tls, form, [("Authorization", f"Basic {pair}")])
        if 400 <= status < 500:
            form |= {"client_id": client} | ({"client_secret": secret} if secret else {})
            status, body = await _ask("POST", endpoint, tls, form)
        return status, body

    def _decode(self, status: int, body: bytes, kind: type[_Document], url: str) -> _Document:
        if status != 200:
            # Not its text: it may quote the request.
            raise KubeconfigError(
                f"{self._where}: the provider answered HTTP {status} at {without_user(url)}; sign in again if its "
                "refresh-token has ended"
            )

        def refuse(body: bytes, error: Exception) -> KubeconfigError:
            return KubeconfigError(f"{self._where}: the answer of {without_user(url)} is unusable: {say(error)}")

        return read(msgspec.json.Decoder(kind).decode, body, refuse)


def _claims_of(token: str) -> _Claims:
    parts = token.split(".")
    payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)) if len(parts) == 3 else b""
    return msgspec.json.decode(payload, type=_Claims)


async def _ask(
    method: str,
    url: str,
    tls: ssl.SSLContext,
    form: Mapping[str, str] | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> tuple[int, bytes]:
    """Status and body. A redirect is not followed: it would carry the refresh-token to wherever it points."""
    parts = urlsplit(url)
    lines = [("Host", host_header(parts)), ("Accept", "application/json"), ("Accept-Encoding", "identity"), *headers]
    if form is not None:
        lines.append(("Content-Type", "application/x-www-form-urlencoded"))
    content = urlencode(form).encode() if form is not None else None
    target = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_PLAIN)
    async with asyncio.timeout(PROVIDER_TIMEOUT):
        dialer = Dialer(url, environment_proxy(url, os.environ) or "")
        connection = await dialer.dial(tls if parts.scheme == "https" else None)
        try:
            answer = await connection.send(head_of(method, target, lines_of(lines), content), content)
            await answer.begin()
            body = b""
            async for piece in answer.chunks():
                body += piece
                if len(body) > MAX_ANSWER:
                    raise Broken(f"an answer of more than {MAX_ANSWER >> 20} MiB")
            return answer.status, body
        finally:
            connection.abort()


def _secure(url: str, where: str) -> str:
    """A provider's URL: https, or on this machine. What goes there opens the cluster."""
    checked = server_url(url, where)
    if checked.startswith("http://") and not is_loopback(checked):
        raise KubeconfigError(
            f"{where}: {checked} is plain HTTP: everybody on the way could read the tokens; use https"
        )
    return checked


def _tls(config: Mapping[str, str], where: str) -> TlsSettings:
    data, file = config.get("idp-certificate-authority-data"), config.get("idp-certificate-authority")
    if data:
        try:
            return TlsSettings(ca=base64.b64decode(data, validate=True))
        except binascii.Error:
            raise KubeconfigError(f"{where}: idp-certificate-authority-data is no base64") from None
    return TlsSettings(ca=Path(file) if file else None)
