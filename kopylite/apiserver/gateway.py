"""Gateway: HTTP around whatever answers requests: a listener for one user, who shows a token."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from kopylite.apiserver.access.tls import server_context
from kopylite.apiserver.core import error_response
from kopylite.apiserver.front import Front, FrontServer, read_body
from kopylite.apiserver.request.request import ADMIN, HttpRequest, Response
from kopylite.clock import Clock
from kopylite.errors import ApiError, Unauthorized
from kopylite.serving.authority import CertificateAuthority

HOST = "127.0.0.1"
RequestAnswer = Callable[[HttpRequest], Awaitable[Response]]


class _TokenFront(Front):
    def __init__(self, handle: RequestAnswer, token: str, clock: Clock) -> None:
        self._handle = handle
        self._token = f"Bearer {token}".encode()
        self._new_id = clock.uuid

    async def _answer(self, http: web.BaseRequest, request: HttpRequest) -> Response:
        try:
            if not hmac.compare_digest(request.headers.get("authorization", "").encode(), self._token):
                raise Unauthorized("Unauthorized")
            request.user = ADMIN
            request.body = await read_body(http)
        except ApiError as error:
            return error_response(request, error)
        return await self._handle(request)


@asynccontextmanager
async def gateway(
    handle: RequestAnswer, token: str, authority: CertificateAuthority, clock: Clock
) -> AsyncIterator[str]:
    """Listen on loopback, with TLS, as long as the block runs. Yields the URL.

    Args:
        handle: answers; may raise Disconnect.
        token: the bearer token that is let in.
        authority: signs the certificate.
    """
    server = FrontServer(
        _TokenFront(handle, token, clock), handler_cancellation=True, keepalive_timeout=90.0, auto_decompress=False
    )
    runner = web.ServerRunner(server, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0, ssl_context=server_context(authority, [HOST, "localhost"])).start()
        yield f"https://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
