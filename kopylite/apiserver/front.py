"""Front: HTTP around the core. Thin: bodies in, headers out, streams with back-pressure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from kopylite.apiserver.access.authentication import Authenticator, header_warning
from kopylite.apiserver.access.impersonation import Impersonator
from kopylite.apiserver.access.origins import check_no_web_page
from kopylite.apiserver.core import MAX_BODY_BYTES, Core, error_response, too_large
from kopylite.apiserver.request.request import HttpRequest, Response, parse_query, parse_target
from kopylite.apiserver.world import Disconnect
from kopylite.errors import ApiError, GatewayTimeout
from kopylite.serving.protocol import QuietServer

# Upstream compresses answers from 128 KiB on.
_COMPRESS_BYTES = 128 * 1024
# How long a body may stand still, and how long the whole may take: upstream gives a request 60 s, its body included.
_BODY_IDLE_SECONDS = 30.0
_BODY_SECONDS = 60.0
# The one expectation of a client that is known: to be told that its body is wanted, before it sends it.
_CONTINUE = "100-continue"
# All warnings of an answer together; upstream truncates there.
_MAX_WARNING_BYTES = 4096


class Front:
    """The handler of an `aiohttp.web.Server`.

    Args:
        listening: the host that it listens on.
    """

    def __init__(self, core: Core, authenticator: Authenticator, listening: str) -> None:
        self._core = core
        self._authenticator = authenticator
        self._listening = listening
        self._impersonator = Impersonator(core.authorizer, core.world.minor)
        self._new_id = core.world.clock.uuid

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        if http.version.major != 1:
            return refusal(505, ": unsupported protocol version")
        if http.headers.get("Expect", _CONTINUE).lower() != _CONTINUE:
            return refusal(417)
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = HttpRequest(http.method, http.path, parse_query(http.query_string), headers)
        try:
            response = await self._answer(http, request)
            if response.stream is not None:
                return await self._stream(http, request, response)
        except Disconnect:
            return _cut(http)
        return self._whole(request, response)

    async def _answer(self, http: web.BaseRequest, request: HttpRequest) -> Response:
        try:
            check_no_web_page(request.method, request.headers, listening=self._listening)
            certificate, der = _certificate(http)
            request.user = self._authenticator.authenticate(request.headers, certificate, der)
            fields = ((name.lower(), value) for name, value in http.headers.items())
            request.user = self._impersonator.user(fields, request.user, parse_target(request))
            request.body = await read_body(http)
        except ApiError as error:
            return error_response(request, error)
        response = await self._core.handle(request)
        if warning := header_warning(request.headers.get("authorization", "")):
            response.warnings.insert(0, warning)
        return response

    def _whole(self, request: HttpRequest, response: Response) -> web.Response:
        answer = web.Response(
            status=response.status,
            body=b"" if request.method == "HEAD" else _line(request, response),
            headers=self._headers(request, response),
            zlib_executor_size=_COMPRESS_BYTES,  # what is compressed at all, is so in a thread
        )
        long = len(response.body) > _COMPRESS_BYTES and response.content_type.startswith("application/")
        if long and "gzip" in request.headers.get("accept-encoding", ""):
            answer.enable_compression(web.ContentCoding.gzip)
            answer.headers.setdefault("Vary", "Accept-Encoding")
        return answer

    async def _stream(self, http: web.BaseRequest, request: HttpRequest, response: Response) -> web.StreamResponse:
        assert response.stream is not None
        answer = web.StreamResponse(status=response.status, headers=self._headers(request, response))
        try:
            await answer.prepare(http)
            async for chunk in response.stream:
                await answer.write(chunk)
            await answer.write_eof()
        except ConnectionError:
            pass  # the client left; nobody is there to be told
        finally:
            await response.stream.aclose()
        return answer

    def _headers(self, request: HttpRequest, response: Response) -> CIMultiDict[str]:
        headers = CIMultiDict(
            {
                **({"Content-Type": response.content_type} if response.content_type else {}),
                "Cache-Control": "no-cache, private",
                "Audit-Id": request.headers.get("audit-id") or self._new_id(),
                "Server": "",
            }
        )
        headers.update(response.headers)
        if "Vary" in response.headers:  # upstream sends one for each value
            headers.popall("Vary")
            headers.extend(("Vary", value) for value in response.headers["Vary"].split(", "))
        for text in bounded_warnings(response.warnings):
            headers.add("Warning", text)
        return headers


class FrontServer(QuietServer):
    """Refuses what is no HTTP in the words of Go's server."""

    def refusal(self, status: int) -> web.Response:
        return refusal(status)


def refusal(status: int, why: str = "") -> web.Response:
    text = f"{status} {HTTPStatus(status).phrase}{why}"
    response = web.Response(
        status=status, text=text, headers={"Content-Type": "text/plain; charset=utf-8", "Server": ""}
    )
    response.force_close()
    return response


def _line(request: HttpRequest, response: Response) -> bytes:
    """The body; that of an object ends its line, as Go's encoder has it, that of other documents does not."""
    is_object = response.content_type.startswith("application/json") and request.path.startswith("/api")
    return response.body + b"\n" if is_object and response.body else response.body


async def read_body(http: web.BaseRequest) -> bytes:
    """The whole body.

    Raises:
        RequestEntityTooLarge: without reading on.
        GatewayTimeout: the client has stopped in the middle of its body, or sends it too slowly.
    """
    if not http.body_exists:
        return b""
    if "Expect" in http.headers and http.version.minor and http.transport is not None:
        http.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while part := await _next_part(http):
                size += len(part)
                if size > MAX_BODY_BYTES:
                    raise too_large()
                parts.append(part)
    except TimeoutError:
        raise GatewayTimeout("Timeout: the body of the request did not come in time") from None
    return b"".join(parts)


async def _next_part(http: web.BaseRequest) -> bytes:
    """Raises TimeoutError."""
    async with asyncio.timeout(_BODY_IDLE_SECONDS):
        return await http.content.readany()


def _certificate(http: web.BaseRequest) -> tuple[Mapping[str, Any] | None, bytes]:
    """The verified client certificate, parsed and in binary form."""
    transport = http.transport
    found: Mapping[str, Any] | None = transport.get_extra_info("peercert") if transport else None
    if not found or transport is None:
        return None, b""
    return found, transport.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""


def _cut(http: web.BaseRequest) -> web.StreamResponse:
    """Close the connection under the client's feet."""
    if http.transport is not None:
        http.transport.abort()
    return web.StreamResponse()


def bounded_warnings(texts: list[str]) -> list[str]:
    """Warning header values: without repetitions, cut when they take too much room."""
    values: list[str] = []
    room = _MAX_WARNING_BYTES
    for text in dict.fromkeys(texts):
        quoted = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
        value = f'299 - "{quoted}"'
        room -= len(value)
        if room < 0:
            break
        values.append(value)
    return values
