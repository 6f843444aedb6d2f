"""HookClient: POSTs reviews to webhooks, by URL or by Service, with the errors of Go's client."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from kopylite.apiserver.outbound.certificates import certificate_problem, trust
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import World

DEFAULT_TIMEOUT = 10
_MAX_ANSWER = 16 * 1024 * 1024
_SHOWN = 2048
_MAX_BUNDLES = 100


class HookFailed(Exception):
    """There is no answer; the text is that of Go's client."""


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """Attributes: shown: the URL as errors name it; dialled: where the connection goes; server: whom TLS expects."""

    shown: str
    dialled: str
    server: str | None


class HookClient:
    """Keeps connections open between calls; close it with `aclose`.

    Args:
        services: where Services are reached: a local port for "namespace/name" or "namespace/name:port".

    Attributes:
        inside: who answers for a URL in this process, without a socket: called with the body and the seconds that are
            waited for it.
    """

    def __init__(self, world: World, services: Mapping[str, int] | None = None) -> None:
        self.inside: dict[str, Callable[[bytes, float], Awaitable[bytes]]] = {}
        self._world = world
        self._services = dict(services or {})
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def aclose(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    async def post(self, config: Mapping[str, Any], body: bytes, timeout: float | None) -> bytes:
        """The body of the answer to a review.

        Args:
            config: a clientConfig: `url` or `service`, and `caBundle`.
            timeout: seconds; None: no limit of its own, and none is told to the webhook.

        Raises:
            HookFailed: no answer, or not one of success.
        """
        endpoint = self._endpoint(config)
        if (answer_inside := self.inside.get(endpoint.shown)) is not None:
            return await answer_inside(body, timeout or DEFAULT_TIMEOUT)
        shown = f"{endpoint.shown}?timeout={timeout:g}s" if timeout else endpoint.shown
        url = URL(f"{endpoint.dialled}?timeout={timeout:g}s" if timeout else endpoint.dialled, encoded=True)
        bundle = str(config.get("caBundle") or "")
        session = await self._session(bundle)
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
        if endpoint.server:
            headers["Host"] = endpoint.server
        try:
            async with asyncio.timeout(timeout or 30):
                # Of more than a mebibyte of bytes aiohttp warns, and of a file not.
                async with session.post(
                    url,
                    data=io.BytesIO(body),
                    headers={**headers, "Content-Length": str(len(body))},
                    allow_redirects=True,
                    server_hostname=endpoint.server,
                ) as response:
                    answer = await response.content.read(_MAX_ANSWER)
                    status, kind = response.status, response.headers.get("Content-Type", "")
        except TimeoutError:
            raise HookFailed(f'Post "{shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            refused = certificate_error(error)
            if refused is None:
                raise HookFailed(f'Post "{shown}": {go_problem(error, url)}') from error
            address = str(url.host), int(url.port or 443)
            why = await certificate_problem(
                refused, address, endpoint.server or address[0], bundle, self._world.clock.now()
            )
            raise HookFailed(f'Post "{shown}": tls: failed to verify certificate: x509: {why}') from error
        if not 200 <= status < 300:
            raise HookFailed(_refusal(status, answer))
        if not answer:
            raise HookFailed(f"0-length response with status code: {status} and content type: {kind}")
        return answer

    def _endpoint(self, config: Mapping[str, Any]) -> _Endpoint:
        service = config.get("service")
        if service is None:
            return _Endpoint(str(config.get("url") or ""), str(config.get("url") or ""), None)
        namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
        path = service.get("path") or "/"
        server = f"{name}.{namespace}.svc"
        shown = f"https://{server}:{port}{path}"
        local = self._services.get(f"{namespace}/{name}:{port}", self._services.get(f"{namespace}/{name}"))
        if local is None:
            known = self._world.lookup("", "services", namespace, name) is not None
            why = (
                f"no endpoints available for service {go_quote(name)}"
                if known
                else f"service {go_quote(name)} not found"
            )
            raise HookFailed(f'Post "{shown}?timeout={DEFAULT_TIMEOUT}s": {why}')
        return _Endpoint(shown, f"https://127.0.0.1:{local}{path}", server)

    async def _session(self, bundle: str) -> aiohttp.ClientSession:
        session = self._sessions.pop(bundle, None)
        if session is None:
            try:
                context = trust(bundle)
            except (ssl.SSLError, ValueError):
                raise HookFailed("unable to load root certificates: unable to parse bytes as PEM block") from None
            # Without a limit: calls that wait for others, which wait for them, would never end.
            connector = aiohttp.TCPConnector(ssl=context, limit=0)
            session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        self._sessions[bundle] = session  # the last: the first is of a bundle that was rotated away
        if len(self._sessions) > _MAX_BUNDLES:
            await self._sessions.pop(next(iter(self._sessions))).close()
        return session


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """The refusal of a certificate that is behind an error, if one is."""
    return next((one for one in _causes(error) if isinstance(one, ssl.SSLCertVerificationError)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        cause = getattr(cause, "certificate_error", cause)
        assert cause is not None
        yield cause
        cause = cause.__cause__ or getattr(cause, "os_error", None)


def go_problem(error: BaseException, url: URL) -> str:
    """Why a connection failed, as Go says it."""
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            return f"dial tcp {url.host}:{url.port}: connect: connection refused"
        if isinstance(cause, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(cause):
            return "http: server gave HTTP response to HTTPS client"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {url.host}: no such host"
    return str(error)


def _refusal(status: int, body: bytes) -> str:
    """What client-go makes of an answer that is no success and no Status."""
    text = body[:_SHOWN].decode("utf-8", "replace").strip()
    shown = go_quote(text) if text else '"unknown"'
    if status == 404:
        return "the server could not find the requested resource"
    if status == 400:
        return "the server rejected our request for an unknown reason"
    if status == 401:
        return "the server has asked for the client to provide credentials"
    if status == 403:
        return text or "unknown"
    if status == 429:
        return "the server has received too many requests and has asked us to try again later"
    if status in (408, 504):
        return (
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        )
    if status == 503:
        return "the server is currently unable to handle the request"
    if status >= 500:
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"
