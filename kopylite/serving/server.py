"""HttpServer: GET routes on one address. The only user of aiohttp.web in the runtime."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

import anyio
from aiohttp import web

from kopylite.errors import UsageError
from kopylite.serving.address import Address
from kopylite.serving.routes import Handler, Query

# An open scrape may finish; a client that keeps its connection open must not hold up a stop.
SHUTDOWN_SECONDS = 1.0


class HttpServer:
    """Serves handlers by path on one address, from entering the context until leaving it.

    A route answers for its own path and for everything below it (`/healthz` for `/healthz/name` too). Other
    paths are 404, other methods than GET and HEAD 405.
    """

    def __init__(self, address: Address, routes: Mapping[str, Handler]) -> None:
        self._wanted = address
        self.paths = tuple(routes)
        application = web.Application()
        for path, handler in routes.items():
            serve = _responder(handler)
            application.router.add_get(path, serve)
            application.router.add_get(path + "/{tail:.+}", serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)

    @property
    def address(self) -> Address:
        """Where it listens; the port that was taken if 0 was asked for. Only while it is open."""
        host, port = self._runner.addresses[0][:2]
        return Address(host, port)

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            UsageError: the address is taken, or is none of this machine, or needs a privilege.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._wanted.host, self._wanted.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UsageError(f"cannot listen on {self._wanted}: {_plain(error)}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._runner.cleanup()


def _responder(handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(request: web.Request) -> web.Response:
        parameters = {name: request.query.getall(name) for name in request.query}
        tail = request.match_info.get("tail", "")
        answer = handler(Query(tail, parameters, request.headers.get("Accept", "")))
        headers = {"Content-Type": answer.content_type, "Cache-Control": "no-store"}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    return respond


def _plain(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is taken by another process (port 0 takes a free one, off switches it off)"
    return error.strerror or str(error)
