"""QuietServer: HTTP by aiohttp that answers what it cannot read in plain words, and does not quote it in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

logger = logging.getLogger(__name__)

# aiohttp logs what it cannot parse with a traceback that quotes it, tokens included.
_MUTE = logging.Logger("kopylite.serving.http", logging.CRITICAL + 1)


class QuietServer(web.Server):
    """What a server of aiohttp is, with the same settings; `refusal` gives its answers to what is no request.

    A connection whose TLS handshake ends when the server has ended is cut. aiohttp would serve it for as long as its
    client likes: it is in no list while it shakes hands, so nobody closes it.
    """

    _over = False

    def __init__(self, handler: Any, *, handler_cancellation: bool = False, **settings: Any) -> None:
        self._settings = {**settings, "access_log": None, "logger": _MUTE}
        super().__init__(handler, handler_cancellation=handler_cancellation, **self._settings)

    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._settings)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self._over:
            transport.abort()

    async def shutdown(self, timeout: float | None = None) -> None:
        """As aiohttp's, and for good."""
        self._over = True
        await super().shutdown(timeout)

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
