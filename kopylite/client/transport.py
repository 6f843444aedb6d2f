"""Sends one ApiRequest and brings the answer: the seam below which there is only HTTP.

Answers of any status are returned, not raised: `api_error` makes exceptions of them where their meaning is known.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, Self, TypeVar
from urllib.parse import quote, urlsplit

import anyio
from multidict import CIMultiDict

from kopylite.client.addresses import host_header, origin_of, without_user
from kopylite.client.apiwarnings import ApiWarnings
from kopylite.client.config import ClientConfig
from kopylite.client.connections import Connections
from kopylite.client.credentials import ClientIdentity
from kopylite.client.dialing import Dialer, proxy_headers
from kopylite.client.lanes import Lane
from kopylite.client.pace import Pace
from kopylite.client.permits import PERMIT
from kopylite.client.retries import NO_ANSWER, REQUEST_TIMEOUT, Retries
from kopylite.client.tls import TlsContexts
from kopylite.client.verbs import ApiRequest
from kopylite.client.wire import Broken, HttpAnswer, HttpConnection, head_of, lines_of
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import ConnectionFailed, KubeconfigError, RequestTimeout, StreamBroken, TransportError
from kopylite.observers import ClientObserver

logger = logging.getLogger(__name__)

# Requests at the same time, and as many lists; more wait for a turn. Watches have connections of their own, without a
# limit. So none can starve the others.
MAX_CONNECTIONS = 64
_PLAIN_IN_PATHS = "/%:@!$&'()*+,;=~"


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


class HttpTransport:
    """A Transport over HTTP/1.1 with connections that are kept. Use it inside one event loop; close it at the end.

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
        url = urlsplit(self._base)
        self._host = url.netloc
        self._observer = observer or ClientObserver()
        self._clock = clock
        self._tls = TlsContexts(config.tls, clock) if url.scheme == "https" else None
        size = config.max_connections or MAX_CONNECTIONS
        self._small, self._bulk = Lane("requests", size, clock), Lane("lists", size, clock)
        self._identified = False
        self._warnings = ApiWarnings()
        self._connections = Connections(Dialer(self._base, config.proxy or "", config.tls.server_name))
        proxy = urlsplit(config.proxy or "")
        # What a proxy passes on without looking in is asked for by its whole URL.
        asks_proxy = url.scheme == "http" and proxy.scheme in ("http", "https")
        host = host_header(url)
        # What the target of each request begins with, and the headers that all have.
        self._prefix = (f"http://{host}" if asks_proxy else "") + quote(url.path, safe=_PLAIN_IN_PATHS)
        self._lines_for = lru_cache(maxsize=16)(self._make_lines)
        self._lines = lines_of((
            ("Host", host),
            ("User-Agent", config.user_agent),
            # Compression costs the client 1.6 ms a list page: worth it only over slow links.
            ("Accept-Encoding", "gzip" if config.compression else "identity"),
            *config.headers,
            *(proxy_headers(proxy) if asks_proxy else ()),
        ))  # fmt: skip

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections. Requests under way end with StreamBroken; what needs another one, with UsageError."""
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
        stream = await self._begin(request, identity)
        if stream.status == 401 and self._renew(identity):
            await stream.aclose()
            identity = self.config.credentials.current() or await self._identify()
            stream = await self._begin(request, identity)
        try:
            yield self._checked(stream)
        finally:
            await stream.aclose()

    async def _attempt(
        self, request: ApiRequest, identity: ClientIdentity, remaining: float, *, total: bool
    ) -> ApiResponse:
        """Send a request once. `total`: everything has to be over in the `remaining` seconds."""
        code, started = NO_ANSWER, self._clock.monotonic()
        head, context = self._head(request, identity), self._context(identity)  # before its time begins: reads files
        pace = Pace(request, remaining, total=total)
        connection: HttpConnection | None = None
        try:
            async with pace.limit:
                connection = await self._connections.take(context)
                answer = await _sent(connection, head, request)
                body = answer.take() if answer.is_whole else await pace.read(answer.chunks())
            code = str(answer.status)
            if "Warning" in answer.headers:
                self._warnings.show(request, answer.headers.getall("Warning"))
            return ApiResponse(answer.status, answer.headers, body)
        except (TimeoutError, Broken) as error:
            if connection is None:
                raise self._connections.too_slow(pace.spent) from error
            self._connections.distrust(pace.began)
            raise self._given_up(request, error, pace.describe(self._base)) from error
        except ConnectionFailed:
            self._look_again()
            raise
        finally:
            if connection is not None:
                self._connections.give_back(connection)
            seconds = self._clock.monotonic() - started
            self._observer.requested(method=request.method, host=self._host, code=code, seconds=seconds)

    async def _begin(self, request: ApiRequest, identity: ClientIdentity) -> HttpStream:
        """Begin a stream: the time limit begins with its turn, and ends with the headers."""
        async with self._connections.opening:
            code, started = NO_ANSWER, self._clock.monotonic()
            stream: HttpStream | None = None
            began = asyncio.get_running_loop().time()
            try:
                head, context = self._head(request, identity), self._context(identity)
                with anyio.fail_after(REQUEST_TIMEOUT):
                    connection = await self._connections.open(context)
                    try:
                        stream = HttpStream(connection, await _sent(connection, head, request), self._connections)
                    finally:
                        if stream is None:
                            self._connections.give_back(connection)
                code = str(stream.status)
                if "Warning" in stream.headers:
                    self._warnings.show(request, stream.headers.getall("Warning"))
                return stream
            except (TimeoutError, Broken) as error:
                self._connections.distrust(began)
                raise self._given_up(request, error, f"no answer from {self._base} in time") from error
            except ConnectionFailed:
                self._look_again()
                raise
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
        origin = origin_of(answer.headers.get("Location", ""))  # the rest may hold a secret
        to = f" to {origin}" if origin else ""
        raise StreamBroken(
            f"{self._base} is no Kubernetes API server, or stands in front of one: "
            f"it redirects{to} (HTTP {answer.status}), and credentials are not carried there"
        )

    def _head(self, request: ApiRequest, identity: ClientIdentity) -> bytes:
        lines = self._lines_for(request.accept, request.content_type, identity.authorization)
        return head_of(request.method, self._prefix + request.target, lines, request.body)

    def _make_lines(self, accept: str, content_type: str | None, authorization: str | None) -> bytes:
        """The headers of a request; there are few different ones."""
        headers = [("Accept", accept)]
        if content_type is not None:
            headers.append(("Content-Type", content_type))
        if authorization is not None:
            headers.append(("Authorization", authorization))
        return self._lines + lines_of(headers)

    def _context(self, identity: ClientIdentity) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls.current(identity.key_pair)

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

    def _given_up(self, request: ApiRequest, error: TimeoutError | Broken, late: str) -> TransportError:
        """What becomes of a request that may have been carried out; `late`: what has taken too long."""
        if isinstance(error, TimeoutError):
            return RequestTimeout(f"{request}: {late}")
        through = f" (through the proxy {without_user(self.config.proxy)})" if self.config.proxy else ""
        return StreamBroken(f"{request}: no whole answer from {self._base}{through}: {error}")

    def _look_again(self) -> None:
        """There was no connection: addresses and certificates may be others by now."""
        self._connections.look_up_anew()
        if self._tls is not None:
            self._tls.recheck()


class HttpStream:
    """An ApiStream, on a connection of its own."""

    __slots__ = ("_answer", "_connection", "_connections")

    def __init__(self, connection: HttpConnection, answer: HttpAnswer, connections: Connections) -> None:
        self._connection = connection
        self._answer = answer
        self._connections = connections

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> CIMultiDict[str]:
        return self._answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.chunks():
                yield chunk
        except Broken as error:
            raise StreamBroken(f"the stream broke: {error}") from error

    async def read(self) -> bytes:
        try:
            with anyio.fail_after(REQUEST_TIMEOUT):
                return b"".join([chunk async for chunk in self.chunks()])
        except TimeoutError as error:
            raise StreamBroken(f"the stream broke: no end within {REQUEST_TIMEOUT:.0f} s") from error

    async def aclose(self) -> None:
        self._connections.cut(self._connection)


async def _sent(connection: HttpConnection, head: bytes, request: ApiRequest) -> HttpAnswer:
    """The answer to a request, as soon as it begins."""
    if (permit := PERMIT.get()) is not None:
        permit()
    answer = await connection.send(head, request.body)
    await answer.begin()
    return answer
