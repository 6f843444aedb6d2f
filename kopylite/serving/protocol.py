"""QuietServer: HTTP by aiohttp that answers what it cannot read in plain words, and does not quote it in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anyio
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

logger = logging.getLogger(__name__)

# aiohttp logs what it cannot parse with a traceback that quotes it, tokens included.
_MUTE = logging.Logger("kopylite.serving.http", logging.CRITICAL + 1)


# At the end, for the last bytes of answers and TLS's goodbye: who is there says it within milliseconds.
GOODBYE_SECONDS = 0.5


class QuietServer(web.Server):
    """What a server of aiohttp is, with the same settings; `refusal` gives its answers to what is no request.

    A connection whose TLS handshake ends when the server has ended is cut. aiohttp would serve it for as long as its
    client likes: it is in no list while it shakes hands, so nobody closes it.
    """

    _over = False
    _last_gone: anyio.Event | None = None

    def __init__(self, handler: Any, *, handler_cancellation: bool = False, **settings: Any) -> None:
        self._settings = {**settings, "access_log": None, "logger": _MUTE}
        # Until their sockets are closed; aiohttp lets go of them when it asks for that.
        self._transports: dict[RequestHandler, asyncio.Transport] = {}
        super().__init__(handler, handler_cancellation=handler_cancellation, **self._settings)

    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._settings)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._transports[handler] = transport
        if self._over:
            transport.abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._transports.pop(handler, None)
        if self._last_gone is not None and not self._transports:
            self._last_gone.set()

    async def shutdown(self, timeout: float | None = None) -> None:
        """As aiohttp's, and for good: when it returns, the sockets are closed.

        aiohttp only asks for that. TLS waits for the other end's goodbye then, for 30 s, and a socket of which that has
        not come when the event loop ends is never closed.
        """
        self._over = True
        await super().shutdown(timeout)
        if self._transports:
            self._last_gone = anyio.Event()
            with anyio.move_on_after(GOODBYE_SECONDS):
                await self._last_gone.wait()
            for transport in self._transports.values():
                transport.abort()
            await asyncio.sleep(0)  # in the next turn of the event loop it is done

    def refusal(self, status: int) -> web.Response:
        raise NotImplementedError


class _Protocol(RequestHandler):
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Not aiohttp's own, which quotes what it could not read."""
        if status >= 500:
            logger.error("%s %s could not be answered", request.method, request.path, exc_info=exc)
        server = self._manager
        assert isinstance(server, QuietServer)
        response = server.refusal(status)
        response.force_close()
        return response
