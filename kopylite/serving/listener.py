"""Listener: has a server listen on one address. LimitedServer: QuietServer within limits."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import anyio
from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from anyio.abc import SocketAttribute

from kopylite.errors import UsageError
from kopylite.serving.address import Address
from kopylite.serving.door import Door
from kopylite.serving.protocol import QuietServer

# Of a request's line and each of its headers; the number of headers.
MAX_LINE_BYTES = 8190
MAX_HEADERS = 100
# For the rest of a body that is not read.
LINGER_SECONDS = 1.0


class LimitedServer(QuietServer):
    """Keeps connections and heads of requests within bounds.

    Args:
        respond: answers a request.
        refuse: answers what is no request; it gets the HTTP status.
        most: connections at the same time; beyond, the oldest goes on which nothing is being answered.
        idle: of them, those on which nothing is being answered.
        settings: more of aiohttp's.
    """

    def __init__(
        self,
        respond: Callable[[web.BaseRequest], Awaitable[web.Response]],
        refuse: Callable[[int], web.Response],
        *,
        most: int,
        idle: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            self._answer, max_line_size=MAX_LINE_BYTES, max_field_size=MAX_LINE_BYTES, max_headers=MAX_HEADERS,
            lingering_time=LINGER_SECONDS, **settings,
        )  # fmt: skip
        self._respond = respond
        self._refuse = refuse
        self._most = most
        self._most_idle = most if idle is None else idle
        # The oldest first.
        self._open: dict[RequestHandler, Any] = {}
        self._busy: set[RequestHandler] = set()

    def refusal(self, status: int) -> web.Response:
        return self._refuse(status)

    def connection_made(self, handler: RequestHandler, transport: Any) -> None:
        super().connection_made(handler, transport)
        self._open[handler] = transport
        if len(self._open) > self._most or len(self._open) - len(self._busy) > self._most_idle:
            idle = (one for one in self._open if one not in self._busy)
            self._open.pop(next(idle)).abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._open.pop(handler, None)
        super().connection_lost(handler, exc)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        self._busy.add(request.protocol)
        try:
            return await self._respond(request)
        finally:
            self._busy.discard(request.protocol)


class Listener:
    """Has a server listen on one address, from entering the context until leaving it.

    Args:
        address: port 0 takes a free one.
        server: gets the connections.
        purpose: what is served, for the error when the address cannot be had: "for /metrics".
        setting: what the user set the address with, for the same.
        way_out: what to do when the port is taken.
        grace: seconds that requests in progress may go on at the end.
        context: of TLS; None: plain HTTP.
        shared: other processes of this user listen there, too; each connection comes to one of them (SO_REUSEPORT).
    """

    def __init__(
        self,
        address: Address,
        server: QuietServer,
        *,
        purpose: str,
        setting: str,
        way_out: str,
        grace: float,
        context: ssl.SSLContext | None = None,
        shared: bool = False,
    ) -> None:
        self._wanted = address
        self._told = f"{setting}: " if setting else "", purpose, way_out
        self._tls = context
        self._shared = shared
        self._door: Door | None = None
        self._address = address
        self._runner = web.ServerRunner(server, shutdown_timeout=grace)
        self.listening = False

    @property
    def address(self) -> Address:
        """Where it listens; the port that was taken if 0 was asked for. Only while it does."""
        return self._address

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            UsageError: the address is taken, or is none of this machine, or needs a privilege.
        """
        await self._runner.setup()
        try:
            await self._listen()
        except OSError as error:
            await self._runner.cleanup()
            setting, purpose, way_out = self._told
            taken = error.errno == errno.EADDRINUSE
            why = f"the port is taken by another process ({way_out})" if taken else error.strerror or str(error)
            raise UsageError(f"{setting}cannot listen on {self._wanted} {purpose}: {why}") from error
        self.listening = True
        return self

    async def _listen(self) -> None:
        host, port = self._wanted
        if self._tls is None:
            await web.TCPSite(self._runner, host, port, reuse_port=self._shared or None).start()
            self._address = Address(*self._runner.addresses[0][:2])
            return
        found = await anyio.create_tcp_listener(local_host=host, local_port=port, reuse_port=self._shared)
        sockets = [one.extra(SocketAttribute.raw_socket) for one in found.listeners]
        assert self._runner.server is not None, "it is set up"
        self._door = await Door(sockets, self._tls, self._runner.server).__aenter__()
        self._address = Address(*sockets[0].getsockname()[:2])

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.listening = False
        try:
            if self._door is not None:
                await self._door.__aexit__(None, None, None)  # the error stays itself, and no member of a group
        finally:
            with anyio.CancelScope(shield=True):
                await self._runner.cleanup()
