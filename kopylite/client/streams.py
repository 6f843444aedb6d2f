"""Streams: answers that last, read off their connections without what aiohttp has in between.

A watch brings its events one by one, each in a chunk of its own. For each, aiohttp's parser, its reader and their flow
control do several times the work that TLS does. So the headers of a stream are aiohttp's, and a chunked body is read
right here. It is possible since the connection of a stream is not used again: it is cut when the stream ends.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final

import aiohttp
import anyio
from aiohttp.connector import Connection

from kopylite.client.chunked import ChunkedBody
from kopylite.client.retries import REQUEST_TIMEOUT
from kopylite.errors import StreamBroken

# Bytes that wait for whoever reads; with more, the connection has to wait, and at last the server.
HIGH_WATER: Final = 256 * 1024
BROKEN: Final = "the connection ended in mid-answer"
# Where headers end, as leniently as aiohttp takes them.
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_LONGEST_END: Final = 3


class Tap(asyncio.Protocol):
    """Stands on a connection in front of aiohttp's protocol, which gets the headers, and at first nothing else.

    Then either `pass_on` lets it have the rest, too, or `chunks` is read here.

    Args:
        transport: of the connection, on which a request has just been sent.
        inner: aiohttp's protocol.
    """

    def __init__(self, transport: asyncio.Transport, inner: asyncio.Protocol) -> None:
        self._transport = transport
        self._inner = inner
        self._head = b""  # what came of the headers
        self._held: bytes | None = None  # what came after them; None: they have not ended
        self._body: ChunkedBody | None = None
        self._pieces: list[bytes] = []
        self._waiting = 0  # bytes that _pieces came in
        self._paused = False  # because there are too many of them
        self._broken = ""
        self._reader: asyncio.Future[None] | None = None
        transport.set_protocol(self)

    @property
    def has_headers(self) -> bool:
        """The headers were seen as a whole, and nothing of the body has gone on to aiohttp."""
        return self._held is not None

    def pass_on(self) -> None:
        """Let aiohttp have all that came and comes."""
        held, self._held = self._held, None
        self._transport.set_protocol(self._inner)
        if held:
            self._inner.data_received(held)
        if held is not None:
            self._resume()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body. Raises StreamBroken, after what came."""
        if self._body is None:
            self._body = ChunkedBody()
            self._take(self._held or b"")
            self._resume()
        loop = asyncio.get_running_loop()  # a system call each time, before Python 3.12
        while True:
            if self._pieces:
                pieces, self._pieces = self._pieces, []
                self._waiting = 0
                if self._paused:
                    self._paused = False
                    self._resume()
                yield pieces[0] if len(pieces) == 1 else b"".join(pieces)
            elif self._body.ended:
                return
            elif self._broken:
                raise StreamBroken(f"the stream broke: {self._broken}")
            else:
                self._reader = loop.create_future()
                try:
                    await self._reader
                finally:
                    self._reader = None

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        if self._body is not None:
            if not self._broken:
                self._take(data)
        elif self._held is not None:
            self._held += data  # it came although reading is paused
        else:
            self._take_head(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._broken = self._broken or BROKEN
        self._wake()
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _take_head(self, data: bytes) -> None:
        """Up to the end of the headers that are no interim answer."""
        known = len(self._head)
        self._head += data
        if not self._head.startswith(b"HTTP/1.1 "[: len(self._head)]):
            self._inner.data_received(data)  # somebody else's protocol, or its first bytes have gone by before
            return
        end = _END_OF_HEAD.search(self._head, max(0, known - _LONGEST_END))
        if end is None:
            self._inner.data_received(data)
            return
        head, rest = data[: end.end() - known], data[end.end() - known :]
        if self._head.startswith(b"HTTP/1.1 1"):
            self._head = b""
            self._inner.data_received(head)
            if rest:
                self._take_head(rest)
            return
        self._held = rest
        self._transport.pause_reading()  # until it is clear who reads
        self._inner.data_received(head)

    def _take(self, data: bytes) -> None:
        assert self._body is not None
        try:
            self._pieces += self._body.feed(data)
        except ValueError as error:
            self._broken = str(error)
            self._transport.abort()
            return self._wake()
        self._waiting += len(data)
        if self._waiting > HIGH_WATER and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class StreamedResponse(aiohttp.ClientResponse):
    """An answer that may be read by a Tap: `response_class` of the session for streams.

    Attributes:
        tap: reads the body; None: aiohttp does.
    """

    tap: Tap | None = None

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        transport, inner = connection.transport, connection.protocol
        if transport is None or inner is None:
            return await super().start(connection)
        tap = Tap(transport, inner)
        try:
            await super().start(connection)
            plain = "Content-Encoding" not in self.headers
            chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
            if tap.has_headers and plain and chunked and self.status == 200:
                self.tap = tap
        finally:
            if self.tap is None:
                tap.pass_on()
        return self


class AiohttpStream:
    """An ApiStream."""

    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    def chunks(self) -> AsyncIterator[bytes]:
        tap = getattr(self._response, "tap", None)
        return tap.chunks() if isinstance(tap, Tap) else self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StreamBroken(f"the stream broke: {text_of(error)}") from error

    async def read(self) -> bytes:
        try:
            with anyio.fail_after(REQUEST_TIMEOUT):
                return b"".join([chunk async for chunk in self.chunks()])
        except TimeoutError as error:
            raise StreamBroken(f"the stream broke: {text_of(error)}") from error

    async def aclose(self) -> None:
        drop(self._response)


def text_of(error: Exception) -> str:
    """What an exception of aiohttp says."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return BROKEN
    return str(error) or type(error).__name__


def drop(response: aiohttp.ClientResponse) -> None:
    """Cut the connection of a stream: an orderly end of TLS waits for the server, maybe longer than the loop lives."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
