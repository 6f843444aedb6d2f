"""PostServer: JSON documents in, JSON documents out, over TLS on one address: how the API server calls a webhook."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from aiohttp import web

from kopylite.boundary import say
from kopylite.errors import BadRequest
from kopylite.serving.address import Address
from kopylite.serving.listener import LimitedServer, Listener

logger = logging.getLogger(__name__)

# What the API server sends at most: two objects of the most that etcd takes, and what is around them.
MAX_BODY = 7 * 1024 * 1024
# The API server keeps its connections; one that it forgot need not stay for ever.
IDLE_SECONDS = 300.0
# An API server has one for each call in progress, and lets no more than some hundred requests in at a time.
MAX_CONNECTIONS = 1000
# It keeps 25 for later calls. Each takes 300 KiB with TLS of asyncio.
MAX_IDLE = 256
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


class PostServer(Listener):
    """Serves handlers by path, from entering the context until leaving it; the calls in progress are then finished.

    What is no call gets 404, 405, 411, 413, 415 or 400 with a line of text; what a handler raises, a 500.

    Args:
        context: of TLS; None: plain HTTP, for tests.
        observe: told of each call to a path that is served.
        now: a monotonic clock.
        setting: what the user set the address with, for the error when it cannot be had.
        shared: other processes of this user listen there, too; each connection comes to one of them (SO_REUSEPORT).
        limits: bytes of a body, for the paths for which MAX_BODY is not the most.
    """

    def __init__(
        self,
        address: Address,
        handlers: Mapping[str, PostHandler],
        context: ssl.SSLContext | None,
        *,
        limits: Mapping[str, int] | None = None,
        observe: Observe = lambda path, status, seconds: None,
        now: Callable[[], float],
        setting: str = "",
        shared: bool = False,
    ) -> None:
        self._handlers = dict(handlers)
        self.paths = tuple(handlers)
        self._limits = dict.fromkeys(handlers, MAX_BODY) | dict(limits or {})
        self._observe = observe
        self._now = now
        self._last = False
        self.in_flight: dict[str, int] = dict.fromkeys(handlers, 0)
        server = LimitedServer(
            self._respond, _refusal, most=MAX_CONNECTIONS, idle=MAX_IDLE, keepalive_timeout=IDLE_SECONDS,
            auto_decompress=False,
        )  # fmt: skip
        super().__init__(
            address, server, purpose="for webhooks", setting=setting, grace=SHUTDOWN_SECONDS, context=context,
            way_out="port 0 takes a free one", shared=shared,
        )  # fmt: skip

    def part(self) -> None:
        """From now on each answer is the last on its connection: callers go elsewhere with their next call."""
        self._last = True

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
        if self._last:
            response.force_close()
        return response

    async def _call(self, request: web.BaseRequest, handler: PostHandler) -> web.Response:
        if request.method != "POST":
            return _text(405, "POST only", Allow="POST")
        if request.content_type != "application/json":
            return _text(415, "the body has to be application/json")
        if request.headers.get("Content-Encoding", "identity") != "identity":
            return _text(415, "the body must not be compressed")
        limit = self._limits[request.path]
        timeout = timeout_of(request.query.get("timeout", ""))
        try:
            with anyio.move_on_after(timeout) as scope:
                body = await _body(request, limit)
            if scope.cancelled_caught:
                return _text(408, "the body did not come in time")
            if body is None:
                return _text(413, f"the body is larger than {limit} bytes")
            answer = await handler(body, timeout)
        except BadRequest as error:
            return _text(400, error.message)
        except Exception as error:
            logger.exception("the call of %s could not be answered: %s", request.path, type(error).__name__)
            return _text(500, "the call could not be answered; the log says why")
        return web.Response(body=answer, content_type="application/json")


def _refusal(status: int) -> web.Response:
    return _text(status, "the request cannot be answered")


async def _body(request: web.BaseRequest, limit: int) -> bytes | None:
    """None: it is too large. Raises BadRequest: it broke off, or is none."""
    if (request.content_length or 0) > limit:
        return None
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.content.iter_any():
            size += len(part)
            if size > limit:
                return None
            parts.append(part)
    except (web.HTTPException, OSError, ValueError) as error:
        raise BadRequest(say(error)) from None
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
