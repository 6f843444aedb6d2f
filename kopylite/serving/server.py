"""HttpServer: GET routes on one address, hard to stop. The only user of aiohttp.web in the runtime."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from aiohttp import web

from kopylite.serving.address import Address
from kopylite.serving.listener import LimitedServer, Listener
from kopylite.serving.routes import Answer, Query, RouteHandler

logger = logging.getLogger(__name__)

# An open scrape may finish; a client that keeps its connection open must not hold up a stop.
SHUTDOWN_SECONDS = 1.0
# For the head of a request, and until the next one: longer than a scrape interval a connection need not be kept.
IDLE_SECONDS = 30.0
# A kubelet, a Prometheus and some people have ten. Beyond, the oldest goes: answers are at once, so it only waits.
MAX_CONNECTIONS = 100

_REASONS = {400: "the request is no HTTP, or its headers are too large", 500: "the answer failed; the log has why"}


class HttpServer(Listener):
    """Serves handlers by path on one address, from entering the context until leaving it.

    A route answers for its own path and for everything below it (`/healthz` for `/healthz/name` too). Other
    paths are 404, other methods than GET and HEAD 405. A connection on which no whole request came for 30 s is closed;
    of more than 100 connections the oldest.

    Args:
        setting: what the user set the address with, for the error when it cannot be had.
    """

    def __init__(self, address: Address, routes: Mapping[str, RouteHandler], setting: str = "") -> None:
        self._routes = dict(routes)
        self.paths = tuple(routes)
        server = LimitedServer(self._respond, _refusal, most=MAX_CONNECTIONS, keepalive_timeout=IDLE_SECONDS)
        super().__init__(
            address, server, purpose=f"for {' and '.join(self.paths)}", setting=setting, grace=SHUTDOWN_SECONDS,
            way_out="port 0 takes a free one, off switches it off",
        )  # fmt: skip

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        path, tail, handler = request.path, "", self._routes.get(request.path)
        if handler is None:
            route = next((route for route in self._routes if path.startswith(f"{route.rstrip('/')}/")), None)
            if route is None:
                return _response(_text(404, "there is nothing here"))
            handler, tail = self._routes[route], path[len(route.rstrip("/")) + 1 :]
        if request.method not in ("GET", "HEAD"):
            return _response(_text(405, "GET and HEAD only"), Allow="GET, HEAD")
        parameters = {name: request.query.getall(name) for name in request.query}
        try:
            found = handler(Query(tail, parameters, request.headers.get("Accept", "")))
            answer = found if isinstance(found, Answer) else await found
        except Exception:
            logger.exception("the answer to GET %s failed", path)
            answer = _text(500, _REASONS[500])
        return _response(answer)


def _refusal(status: int) -> web.Response:
    return _response(_text(status, _REASONS.get(status, "the request cannot be answered")))


def _text(status: int, text: str) -> Answer:
    return Answer(status, f"{status}: {text}\n".encode())


def _response(answer: Answer, **headers: str) -> web.Response:
    headers |= {"Content-Type": answer.content_type, "Cache-Control": "no-store"}
    return web.Response(status=answer.status, body=answer.body, headers=headers)
