"""Sends one ApiRequest and brings the answer: the seam below which there is only HTTP, and the only door to aiohttp.

Answers of any status are returned, not raised: `api_error` makes exceptions of them where their meaning is known.
"""

from __future__ import annotations

import io
import logging
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import aiohttp
import anyio
from yarl import URL

from kopylite.client.addresses import without_user
from kopylite.client.apiwarnings import ApiWarnings
from kopylite.client.config import ClientConfig
from kopylite.client.connections import Connections
from kopylite.client.credentials import ClientIdentity
from kopylite.client.lanes import Lane
from kopylite.client.pace import Pace
from kopylite.client.retries import NO_ANSWER, REQUEST_TIMEOUT, Retries
from kopylite.client.socks import require_socks
from kopylite.client.streams import AiohttpStream, drop, text_of
from kopylite.client.tls import TlsContexts
from kopylite.client.verbs import ApiRequest
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import ConnectionFailed, KubeconfigError, RequestTimeout, StreamBroken, TransportError
from kopylite.observers import ClientObserver

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 10.0
# Requests at the same time, and as many lists; more wait for a turn. Watches have connections of their own, without a
# limit. So none can starve the others.
MAX_CONNECTIONS = 64
# Longer bodies are handed to aiohttp as a file, which it reads piece by piece.
LARGE_BODY = 256 * 1024
# All else is timed by Pace.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A whole answer. `headers` may be asked in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class ApiStream(Protocol):
    """An answer whose body comes in pieces, for as long as the server likes."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; ends when the server ends it. Raises StreamBroken when the connection breaks.
        No time limit: whoever reads decides how long silence may last."""

    async def read(self) -> bytes:
        """The rest of the body."""

    async def aclose(self) -> None:
        """Drop the connection; a read that waits ends with StreamBroken. Harmless when repeated."""


class Transport(Protocol):
    """How requests reach an API server."""

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        """Send a request and wait for the whole answer, of whatever status.

        Args:
            timeout: seconds for everything, retries and their waiting included. None: as long as the request's
                `patience`, and for the time until the answer begins 30 s in all. Waiting for a turn beside other
                requests of this client doesn't count.

        Raises:
            ConnectionFailed: it was not sent; also when there was no turn.
            RequestTimeout, StreamBroken: it may or may not have been carried out.
        """

    def stream(self, request: ApiRequest) -> AbstractAsyncContextManager[ApiStream]:
        """Send a request once and hand out the answer when its headers are there (30 s at most).

        Raises:
            ConnectionFailed, RequestTimeout, StreamBroken: as in `request`.
        """


A = TypeVar("A", ApiResponse, ApiStream)


class AiohttpTransport:
    """A Transport over HTTP/1.1 with pooled connections. Use it inside one event loop; close it at the end.

    Args:
        config: server, TLS, credentials and proxy.
        observer: told of every attempt.
        clock: of time and jitter.
    """

    def __init__(
        self, config: ClientConfig, *, observer: ClientObserver | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.config = config
        self._base = config.server.rstrip("/")
        self._host = URL(self._base).authority
        url = URL(self._base, encoded=True)
        # Of the URL of each request; to put it together is cheaper than to have it parsed again.
        self._scheme, self._authority, self._prefix = url.scheme, url.raw_authority, url.raw_path.rstrip("/")
        self._observer = observer or ClientObserver()
        self._clock = clock
        self._tls = TlsContexts(config.tls, clock) if self._base.startswith("https:") else None
        size = config.max_connections or MAX_CONNECTIONS
        self._small, self._bulk = Lane("requests", size, clock), Lane("lists", size, clock)
        self._identified = False
        self._warnings = ApiWarnings()
        self._socks = (config.proxy or "").startswith("socks5:")
        if self._socks:
            require_socks()
        # Compression costs the client 1.6 ms a list page: worth it only over slow links.
        self._headers = (
            ("User-Agent", config.user_agent),
            ("Accept-Encoding", "gzip" if config.compression else "identity"),
            *config.headers,
        )
        self._connections = Connections(self._headers, (config.proxy or "") if self._socks else "")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections. Requests under way end with StreamBroken."""
        await self._connections.aclose()

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        retries = Retries(request.method, REQUEST_TIMEOUT if timeout is None else timeout, self._clock)
        lane = self._small if request.patience.silence is None else self._bulk
        while True:
            identity = self.config.credentials.current() or await self._identify()
            if timeout is None:
                retries.put_off(await lane.enter())
            else:
                await lane.enter(retries.remaining())
            try:
                response = await self._attempt(request, identity, retries.remaining(), total=timeout is not None)
            except TransportError as error:
                delay = retries.after_failure(error)
                if delay is None:
                    raise
                logger.debug("%s: %s; again in %.1f s", request, error, delay)
            else:
                if response.status < 400:
                    return self._checked(response)
                if response.status == 401 and retries.after_unauthorized() and self._renew(identity):
                    continue
                delay = retries.after_answer(response.status, response.headers, response.body)
                if delay is None:
                    return response
                logger.info("%s: the server asks to wait (HTTP %d); again in %.1f s", request, response.status, delay)
            finally:
                lane.leave()
            await self._clock.sleep(delay)

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[ApiStream]:
        identity = self.config.credentials.current() or await self._identify()
        response = await self._send(request, identity)
        if response.status == 401 and self._renew(identity):
            response.close()
            identity = self.config.credentials.current() or await self._identify()
            response = await self._send(request, identity)
        try:
            yield self._checked(AiohttpStream(response))
        finally:
            drop(response)

    async def _attempt(
        self, request: ApiRequest, identity: ClientIdentity, remaining: float, *, total: bool
    ) -> ApiResponse:
        """Send a request once. `total`: everything has to be over in the `remaining` seconds."""
        code, started = NO_ANSWER, self._clock.monotonic()
        arguments = self._arguments(request, identity)  # before its time begins: reads all certificates at first
        pace = Pace(request, remaining, total=total)
        try:
            async with (
                pace.limit,
                self._connections.requests.request(
                    request.method,
                    self._url(request),
                    timeout=_TIMEOUT,
                    **arguments,
                ) as response,
            ):
                body = await pace.read(response.content.iter_any(), response.content_length)
                code = str(response.status)
                if "Warning" in response.headers:
                    self._warnings.show(request, response.headers.getall("Warning"))
                return ApiResponse(response.status, response.headers, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error, pace) from error
        finally:
            seconds = self._clock.monotonic() - started
            self._observer.requested(method=request.method, host=self._host, code=code, seconds=seconds)

    async def _send(self, request: ApiRequest, identity: ClientIdentity) -> aiohttp.ClientResponse:
        """Begin a stream: the time limit begins with its turn, and ends with the headers."""
        async with self._connections.opening:
            return await self._begin(request, identity)

    async def _begin(self, request: ApiRequest, identity: ClientIdentity) -> aiohttp.ClientResponse:
        code, started = NO_ANSWER, self._clock.monotonic()
        try:
            with anyio.fail_after(REQUEST_TIMEOUT):
                response = await self._connections.streams.request(
                    request.method,
                    self._url(request),
                    timeout=_TIMEOUT,
                    **self._arguments(request, identity),
                )
            code = str(response.status)
            if "Warning" in response.headers:
                self._warnings.show(request, response.headers.getall("Warning"))
            return response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error
        finally:
            seconds = self._clock.monotonic() - started
            self._observer.requested(method=request.method, host=self._host, code=code, seconds=seconds)

    def _checked(self, answer: A) -> A:
        """An answer that is one: neither a redirect nor another protocol.

        Raises:
            StreamBroken: it isn't.
        """
        if 200 <= answer.status < 300 or answer.status >= 400:
            return answer
        try:
            target = URL(answer.headers.get("Location", ""))
            to = f" to {target.origin()}" if target.absolute else ""  # the rest may hold a secret
        except ValueError:
            to = ""
        raise StreamBroken(
            f"{self._base} is no Kubernetes API server, or stands in front of one: "
            f"it redirects{to} (HTTP {answer.status}), and credentials are not carried there"
        )

    def _url(self, request: ApiRequest) -> URL:
        return URL.build(
            scheme=self._scheme,
            authority=self._authority,
            path=self._prefix + request.path,
            query_string=request.query,
            encoded=True,
        )

    def _arguments(self, request: ApiRequest, identity: ClientIdentity) -> dict[str, Any]:
        headers = {"Accept": request.accept}
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        if identity.authorization is not None:
            headers["Authorization"] = identity.authorization
        arguments: dict[str, Any] = {
            "headers": headers,
            "data": request.body if len(request.body or b"") <= LARGE_BODY else io.BytesIO(request.body or b""),
            # A redirect would carry the credentials to wherever the answer points.
            "allow_redirects": False,
        }
        if self._tls is not None:
            arguments["ssl"] = self._tls.current(identity.key_pair)
            arguments["server_hostname"] = self.config.tls.server_name
        if self.config.proxy is not None and not self._socks:
            arguments["proxy"] = self.config.proxy
        return arguments

    async def _identify(self) -> ClientIdentity:
        """New credentials. What worked before and fails now is an outage, and no mistake of the configuration."""
        try:
            identity = await self.config.credentials.fetch()
        except KubeconfigError as error:
            if not self._identified:
                raise
            raise ConnectionFailed(f"no credentials for {self._base}: {error}") from error
        self._identified = True
        return identity

    def _renew(self, identity: ClientIdentity) -> bool:
        """After a 401: whether the next attempt will show another token or certificate."""
        renewed = self.config.credentials.reject(identity)
        if self._tls is not None:
            before = self._tls.current(identity.key_pair)
            self._tls.recheck()
            renewed = renewed or self._tls.current(identity.key_pair) is not before
        return renewed

    def _failure(self, error: Exception, pace: Pace | None = None) -> TransportError:
        failure = failure_of(error, self._base, self.config.proxy)
        if pace is not None and type(error) is TimeoutError:
            failure = RequestTimeout(pace.describe(self._base))
        self._connections.look_up_anew()
        if self._tls is not None and isinstance(failure, ConnectionFailed):
            self._tls.recheck()
        return failure


def failure_of(error: Exception, server: str, proxy: str | None = None) -> TransportError:
    """What an exception of aiohttp or the operating system says about the request."""
    to = f"the proxy {without_user(proxy)} in front of {server}" if proxy else server
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ConnectionFailed(f"no connection to {to} within {CONNECT_TIMEOUT:.0f} s")
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
        return ConnectionFailed(f"the certificate of {server} is not trusted: {text_of(error)}")
    if isinstance(error, aiohttp.ClientConnectorError):
        # aiohttp's own text says the address three times over.
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else text_of(error.os_error)
        named = to if isinstance(error, aiohttp.ClientProxyConnectionError) else server
        return ConnectionFailed(f"no connection to {named}: {reason}")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        hint = "; put user and password into its URL" if error.status == 407 else ""
        return ConnectionFailed(f"{to} refused: HTTP {error.status}{hint}")
    if isinstance(error, TimeoutError):
        return RequestTimeout(f"no answer from {server} in time")
    through = f" (through the proxy {without_user(proxy)})" if proxy else ""
    return StreamBroken(f"{server}{through} ended the connection in mid-answer: {text_of(error)}")
