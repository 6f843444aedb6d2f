"""MemoryTransport: a Transport to an API server in this process, without a socket; it can be cut off for ever."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio

from kopylite.apiserver.request.request import ADMIN, HttpRequest, Response
from kopylite.apiserver.server import ApiServer
from kopylite.apiserver.world import Disconnect
from kopylite.client import ApiRequest, ApiResponse, ApiStream, ClientConfig
from kopylite.client.retries import REQUEST_TIMEOUT, Retries
from kopylite.clock import Clock
from kopylite.errors import StreamBroken, TransportError
from kopylite.observers import ClientObserver

# What a request takes on its way there, and the answer on its way back, in virtual seconds: between once and twice
# this, so that another seed gives another order of what runs at the same time.
LATENCY = 0.002
URL = "http://127.0.0.1:1"


class Link:
    """How one program reaches the server. Cut, nothing of it gets there any more, and nothing ever comes back.

    Attributes:
        agent: as whom the program writes, the start of its user agent.
    """

    def __init__(self, server: ApiServer, agent: str) -> None:
        self.server = server
        self.agent = agent
        self._cut = False

    @property
    def alive(self) -> bool:
        return not self._cut

    def cut(self) -> None:
        """From now on its requests hang; what waits for an answer waits for ever."""
        self._cut = True

    def connect(self, config: ClientConfig, *, observer: ClientObserver, clock: Clock) -> MemoryTransport:
        """For a Manager: see `manager.connection.Connect`."""
        return MemoryTransport(self, config.user_agent, clock)

    def config(self) -> ClientConfig:
        """Settings that lead nowhere: the transport does not look at them."""
        return ClientConfig(URL, source="the cluster of the sweep")

    async def pass_on(self, request: HttpRequest) -> Response:
        """The server's answer. Raises Disconnect."""
        await self.check()
        response = await self.server.core.handle(request)
        await self.check()
        return response

    async def check(self) -> None:
        """Return if there is a way; else never."""
        if self._cut:
            await anyio.sleep_forever()


class MemoryTransport:
    """What HttpTransport is over HTTP: the same retries of the same answers.

    Args:
        link: to the server; every request is allowed.
        agent: the user agent.
        clock: of latencies and retries.
    """

    def __init__(self, link: Link, agent: str, clock: Clock) -> None:
        self._link = link
        self._agent = agent
        self._clock = clock

    async def aclose(self) -> None:
        """Nothing is held."""

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        retries = Retries(request.method, REQUEST_TIMEOUT if timeout is None else timeout, self._clock)
        while True:
            try:
                response = await self._attempt(request)
            except TransportError as error:
                delay = retries.after_failure(error)
                if delay is None:
                    raise
            else:
                if response.status < 400:
                    return response
                delay = retries.after_answer(response.status, response.headers, response.body)
                if delay is None:
                    return response
            await self._clock.sleep(delay)

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[ApiStream]:
        stream = _MemoryStream(self._link, await self._answer(request))
        try:
            yield stream
        finally:
            await stream.aclose()

    async def _attempt(self, request: ApiRequest) -> ApiResponse:
        response = await self._answer(request)
        if response.stream is None:
            return ApiResponse(response.status, response.headers, response.body)
        stream = _MemoryStream(self._link, response)
        try:
            return ApiResponse(response.status, response.headers, await stream.read())
        finally:
            await stream.aclose()

    async def _answer(self, request: ApiRequest) -> Response:
        headers = {"accept": request.accept, "user-agent": self._agent}
        if request.content_type is not None:
            headers["content-type"] = request.content_type
        await self._travel()
        asked = HttpRequest.of(request.method, request.target, headers=headers, body=request.body or b"", user=ADMIN)
        try:
            response = await self._link.pass_on(asked)
        except Disconnect:
            raise StreamBroken(f"{request}: the connection was cut before the answer came") from None
        await self._travel()
        return response

    async def _travel(self) -> None:
        await self._clock.sleep(LATENCY * (1 + self._clock.random()))
        await self._link.check()


class _MemoryStream:
    """An ApiStream from a Response of the core."""

    def __init__(self, link: Link, response: Response) -> None:
        self._link = link
        self._response = response
        self._reading = anyio.CancelScope()

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._response.stream is None:
            yield self._response.body
            return
        while True:
            with anyio.CancelScope() as self._reading:
                try:
                    chunk = await anext(self._response.stream)
                except StopAsyncIteration:
                    return
                except Disconnect:
                    break
            if self._reading.cancel_called:
                break
            await self._link.check()
            yield chunk
        raise StreamBroken("the stream broke: the connection was cut")

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def aclose(self) -> None:
        self._reading.cancel()
        if self._response.stream is not None:
            with suppress(RuntimeError):  # it is being read: the cancellation above ends it
                await self._response.stream.aclose()
