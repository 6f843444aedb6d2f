"""PostServer: JSON documents in, JSON documents out, over TLS on one address: how the API server calls a webhook."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
from aiohttp import web

from kopylite.boundary import say
from kopylite.errors import BadRequest, UsageError
from kopylite.serving.address import Address
from kopylite.serving.protocol import QuietServer
from kopylite.serving.server import MAX_HEADERS, MAX_LINE_BYTES

logger = logging.getLogger(__name__)

# What the API server sends at most: two objects of the most that etcd takes, and what is around them.
MAX_BODY = 7 * 1024 * 1024
# The API server keeps its connections; one that it forgot need not stay for ever.
IDLE_SECONDS = 300.0
# How long the calls in progress may go on at the end: the longest that a webhook may take.
SHUTDOWN_SECONDS = 30.0
# Where the caller does not say how long it waits.
DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}

PostHandler = Callable[[bytes, float], Awaitable[bytes]]
"""Answers a body; the number is the seconds that the caller waits. BadRequest: there is no answer to that."""

Observe = Callable[[str, int, float], None]
"""Told of each call that ended: its path, the HTTP status, and how many seconds it took."""


class PostServer:
    """Serves handlers by path, from entering the context until leaving it; the calls in progress are then finished.

    What is no call gets 404, 405, 411, 413, 415 or 400 with a line of text; what a handler raises, a 500.

    Args:
        context: of TLS; None: plain HTTP, for tests.
        observe: told of each call to a path that is served.
        now: a monotonic clock.
        setting: what the user set the address with, for the error when it cannot be had.
        shared: other processes of this user listen there, too; each connection comes to one of them (SO_REUSEPORT).
    """

    def __init__(
        self,
        address: Address,
        handlers: Mapping[str, PostHandler],
        context: ssl.SSLContext | None,
        *,
        observe: Observe = lambda path, status, seconds: None,
        now: Callable[[], float],
        setting: str = "",
        shared: bool = False,
    ) -> None:
        self._wanted = address
        self._shared = shared
        self._handlers = dict(handlers)
        self.paths = tuple(handlers)
        self._context = context
        self._observe = observe
        self._now = now
        self._setting = setting
        self.in_flight: dict[str, int] = dict.fromkeys(handlers, 0)
        self.listening = False
        server = _Server(
            self._respond, keepalive_timeout=IDLE_SECONDS, max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES, max_headers=MAX_HEADERS, auto_decompress=False,
        )  # fmt: skip
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)

    @property
    def address(self) -> Address:
        """Where it listens; only while it does."""
        host, port = self._runner.addresses[0][:2]
        return Address(host, port)

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            UsageError: the address is taken, or is none of this machine, or needs a privilege.
        """
        await self._runner.setup()
        try:
            host, port = self._wanted
            site = web.TCPSite(self._runner, host, port, ssl_context=self._context, reuse_port=self._shared or None)
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            setting = f"{self._setting}: " if self._setting else ""
            raise UsageError(
                f"{setting}cannot listen on {self._wanted} for webhooks: {error.strerror or error} (port 0 takes a "
                "free one)"
            ) from error
        self.listening = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.listening = False
        with anyio.CancelScope(shield=True):
            await self._runner.cleanup()

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        path = request.path
        handler = self._handlers.get(path)
        if handler is None:
            return _text(404, "there is no webhook here")
        began = self._now()
        self.in_flight[path] += 1
        status = 500
        try:
            response = await self._call(request, handler)
            status = response.status
        finally:
            self.in_flight[path] -= 1
            self._observe(path, status, self._now() - began)
        return response

    async def _call(self, request: web.BaseRequest, handler: PostHandler) -> web.Response:
        if request.method != "POST":
            return _text(405, "POST only", Allow="POST")
        if request.content_type != "application/json":
            return _text(415, "the body has to be application/json")
        if request.headers.get("Content-Encoding", "identity") != "identity":
            return _text(415, "the body must not be compressed")
        timeout = timeout_of(request.query.get("timeout", ""))
        with anyio.move_on_after(timeout) as scope:
            body = await _body(request)
        if scope.cancelled_caught:
            return _text(408, "the body did not come in time")
        if body is None:
            return _text(413, f"the body is larger than {MAX_BODY} bytes")
        try:
            answer = await handler(body, timeout)
        except BadRequest as error:
            return _text(400, error.message)
        except Exception as error:
            logger.exception("the call of %s could not be answered: %s", request.path, type(error).__name__)
            return _text(500, "the call could not be answered; the log says why")
        return web.Response(body=answer, content_type="application/json")


class _Server(QuietServer):
    def refusal(self, status: int) -> web.Response:
        return _text(status, "the request cannot be answered")


async def _body(request: web.BaseRequest) -> bytes | None:
    """None: it is too large."""
    if (request.content_length or 0) > MAX_BODY:
        return None
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.content.iter_any():
            size += len(part)
            if size > MAX_BODY:
                return None
            parts.append(part)
    except (web.HTTPException, OSError, ValueError) as error:
        raise web.HTTPBadRequest(text=say(error)) from None
    return b"".join(parts)


def timeout_of(text: str) -> float:
    """The seconds of a Go duration, as in "10s"; what is none counts as not said."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    return min(seconds, LONGEST_TIMEOUT) if seconds > 0 else DEFAULT_TIMEOUT


def _text(status: int, text: str, **headers: Any) -> web.Response:
    response = web.Response(status=status, text=f"{status}: {text}\n", headers=headers)
    if status in (408, 413):
        response.force_close()  # the rest of the body is not read
    return response
