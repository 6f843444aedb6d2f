"""One connection to an HTTP/1.1 server: a request goes out as bytes, its answer comes as it comes.

llhttp reads, by way of httptools: heads, lengths, chunks, and when a connection may be used again. What is here gives
the pieces to whoever waits, and makes the server wait when nobody reads.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, cast

import httptools
from multidict import CIMultiDict

from kopylite.client.credentials import UNUSABLE
from kopylite.client.gunzip import MOST, Gunzip
from kopylite.errors import UsageError

# Bytes of a body that wait for whoever reads; with more, the connection has to wait, and at last the server.
HIGH_WATER: Final = 256 * 1024
# Of everything before the body, or between it and its end; Go takes up to 10 MiB.
LONGEST_HEAD: Final = 256 * 1024
# What goes out in one piece. Longer bodies go in such pieces: TLS encrypts each while nothing else runs.
PIECE: Final = 64 * 1024
ENDED: Final = "the connection ended in mid-answer"
NO_ANSWER: Final = "the connection ended before an answer came"

_TARGET: Final = re.compile(r"[\x21-\x7e]+").fullmatch
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
# Not HEAD: its answer tells the length of a body that does not come.
_METHODS: Final = _WITH_BODY | {"GET", "DELETE", "OPTIONS", "CONNECT"}


class Broken(Exception):
    """The connection ended, or what came is no HTTP; its text says which."""


def said(error: OSError) -> str:
    """What an error of the network says, without its number and the address, which other words have told."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or str(error)
    number = error.errno or 0
    if number > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(number)
    return error.strerror or str(error) or "the other end closed the connection"  # what asyncio says without a word


def lines_of(headers: Iterable[tuple[str, str]]) -> bytes:
    """Headers as they go out.

    Raises:
        UsageError: a line break or another control character in one; the value is not quoted.
    """
    lines = []
    for name, value in headers:
        if UNUSABLE.search(name) or UNUSABLE.search(value):
            raise UsageError(f"the header {name!r} holds a control character, which no HTTP header can")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


def head_of(method: str, target: str, lines: bytes, body: bytes | None) -> bytes:
    """The beginning of a request, up to its body.

    Args:
        target: as it stands in the request's line, percent-encoded.
        lines: its headers, from `lines_of`.

    Raises:
        UsageError: no request's line can hold this target, or this method is none of a request here.
    """
    if method not in _METHODS:
        raise UsageError(f"{method[:200]!r} is no method of a request: one of {', '.join(sorted(_METHODS))}")
    if _TARGET(target) is None:
        raise UsageError(f"{target[:200]!r} is no path of a request: encode what is no plain ASCII with percent signs")
    begin = f"{method} {target} HTTP/1.1\r\n".encode()
    if body is None and method not in _WITH_BODY:
        return b"%b%b\r\n" % (begin, lines)
    return b"%b%bContent-Length: %d\r\n\r\n" % (begin, lines, len(body or b""))


class HttpAnswer:
    """The answer to one request, as far as it has come.

    Attributes:
        status, headers: once it has begun; values in any case of names.
        begun: the headers are there.
        ended: all of the body has come.
    """

    __slots__ = (
        "_connection", "_gunzip", "_loop", "_pieces", "_waiter", "_waiting", "begun", "broken", "ended", "headers",
        "status",
    )  # fmt: skip

    def __init__(self, connection: HttpConnection, loop: asyncio.AbstractEventLoop) -> None:
        self.status = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.begun = False
        self.ended = False
        self.broken = ""
        self._connection = connection
        self._loop = loop
        self._pieces: list[bytes] = []
        self._waiting = 0  # bytes of them
        self._waiter: asyncio.Future[None] | None = None
        self._gunzip: Gunzip | None = None

    async def begin(self) -> None:
        """Wait for the headers. Raises Broken: the connection ended before."""
        while not self.begun:
            if self.broken:
                raise Broken(self.broken)
            await self._wait()

    @property
    def is_whole(self) -> bool:
        """All has come, and `take` gives it."""
        return self.ended and "Content-Encoding" not in self.headers

    def take(self) -> bytes:
        """What has come of the body since the last time, in the encoding that the headers tell."""
        pieces = self._pieces
        if not pieces:
            return b""
        self._pieces = []
        self._waiting = 0
        self._connection.go_on()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, unpacked.

        Raises:
            Broken: after what came: the connection ended, or this is not in the encoding that the headers tell.
        """
        plain = "Content-Encoding" not in self.headers or self._is_identity()
        while True:
            if data := self.take():
                if plain:
                    yield data
                    continue
                for piece in self._unpacked(data):
                    yield piece
                    if len(piece) == MOST:
                        await asyncio.sleep(0)  # there may be any number of them, and others wait
            elif self.ended:
                if self._gunzip is not None and not self._gunzip.ended:
                    raise Broken("the answer is gzip, and ends in the middle")
                return
            elif self.broken:
                raise Broken(self.broken)
            else:
                await self._wait()

    # for its connection

    def starts(self, status: int, fields: Sequence[tuple[bytes, bytes]]) -> None:
        names, values = zip(*fields, strict=True) if fields else ((), ())
        texts = map(str, values, repeat("utf-8"), repeat("replace"))
        self.headers = CIMultiDict(zip(map(str, names, repeat("latin-1")), texts, strict=True))
        self.status = status
        self.begun = True

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._waiting += len(piece)

    @property
    def is_full(self) -> bool:
        """More has come than should wait for whoever reads."""
        return self._waiting > HIGH_WATER

    def lasts_until_the_end(self) -> bool:
        """Nothing but the end of the connection says where its body ends.

        Not with a Transfer-Encoding, however it is written: nobody asked for another one than chunks.
        """
        return self.begun and "Transfer-Encoding" not in self.headers and "Content-Length" not in self.headers

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _is_identity(self) -> bool:
        """Raises Broken: the encoding is another one than gzip, too."""
        encoding = ", ".join(self.headers.getall("Content-Encoding")).strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip"):
            raise Broken(f"the answer is encoded as {encoding[:100]!r}, which was not asked for")
        return encoding == "identity"

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        if self._gunzip is None:
            self._gunzip = Gunzip()
        try:
            yield from self._gunzip.feed(data)
        except ValueError as error:
            raise Broken(f"the answer {error}") from error


class HttpConnection(asyncio.Protocol):
    """One connection, on which one request follows the other.

    Args:
        loop: the running one.
        context: what TLS was set up with; None: none.

    Attributes:
        lost: nothing can be sent any more.
        idle_since: of the loop's time; for whoever keeps connections.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext | None = None) -> None:
        self.context = context
        self.lost = False
        self.idle_since = 0.0
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: HttpAnswer | None = None
        self._sent = True  # the request as a whole
        self._keep = False  # once the answer has ended: another request may follow
        self._interim = False  # what comes is 100 Continue and the like
        self._beside = 0  # bytes that came since the request, or since there was something of the body
        self._fields: list[tuple[bytes, bytes]] = []
        self._reading_paused = False
        self._writing_paused = False
        self._drained: asyncio.Future[None] | None = None

    @property
    def usable(self) -> bool:
        """Another request may be sent: all is quiet."""
        if self.lost or self._transport is None or self._transport.is_closing():
            return False
        return self._answer is None or (self._answer.ended and self._keep and self._sent)

    async def send(self, head: bytes, body: bytes | None = None) -> HttpAnswer:
        """Send a request. The answer may begin before all is sent; what is left is dropped then.

        Raises:
            Broken: the connection ended before.
        """
        transport = self._transport
        if transport is None or self.lost:
            raise Broken(NO_ANSWER)
        answer = self._answer = HttpAnswer(self, self._loop)
        self._beside = 0
        self._fields = []
        self._keep = False
        if body is None or len(body) <= PIECE:
            transport.write(head + body if body else head)
            return answer
        self._sent = False
        transport.write(head)
        view = memoryview(body)
        for at in range(0, len(body), PIECE):
            await self._drain()
            if answer.begun or answer.broken:
                return answer
            transport.write(view[at : at + PIECE])
        self._sent = True
        return answer

    def release(self) -> None:
        """Its answer was read: what comes now was not asked for."""
        self._answer = None

    def go_on(self) -> None:
        """There is room for more of the body."""
        if self._reading_paused:
            self._reading_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def abort(self) -> None:
        """Cut it. What has not arrived is taken back (see `revocable`), and no goodbye is waited for."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:
            return self.abort()
        self._beside += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not answer.ended:
                return self._break(f"what came is no HTTP ({error})")
            self._keep = False  # the answer is whole; what follows it is another protocol's, or nobody asked for it
        if self._beside > LONGEST_HEAD and not answer.ended:
            what = "what stands beside its body is" if answer.begun else "its headers are"
            return self._break(f"{what} longer than {LONGEST_HEAD >> 10} KiB")
        if answer.is_full and not self._reading_paused and not answer.ended:
            self._reading_paused = True
            assert self._transport is not None
            self._transport.pause_reading()
        if answer.begun and self._drained is not None:
            self._wake_writer()  # what it waits to send is not read any more, maybe
        answer.wake()

    def eof_received(self) -> None:
        answer = self._answer
        if answer is None or answer.ended:
            return
        if not answer.lasts_until_the_end():
            return self._break(ENDED if answer.begun else NO_ANSWER)
        answer.ended = True
        answer.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        answer = self._answer
        if answer is not None and not answer.ended:
            ended = ENDED if answer.begun else NO_ANSWER
            answer.broken = answer.broken or (said(exc) if isinstance(exc, OSError) else ended)
            answer.wake()
        self._wake_writer()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake_writer()

    async def _drain(self) -> None:
        if self._writing_paused and not self.lost:
            self._drained = self._loop.create_future()
            try:
                await self._drained
            finally:
                self._drained = None

    def _wake_writer(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _break(self, reason: str) -> None:
        assert self._answer is not None
        self._answer.broken = reason
        self.abort()
        self._answer.wake()

    # httptools' callbacks

    def on_message_begin(self) -> None:
        if self._answer is not None and self._answer.ended:
            self._keep = False  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is not None and not self._answer.begun:  # else it is a trailer
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        answer = self._answer
        if answer is None or answer.begun:
            return
        status = self._parser.get_status_code()
        fields, self._fields = self._fields, []
        self._interim = 100 <= status < 200 and status != 101
        if not self._interim:
            self._beside = 0
            answer.starts(status, fields)

    def on_body(self, body: bytes) -> None:
        if self._answer is not None and not self._answer.ended:
            self._beside = 0
            self._answer.add(body)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif self._answer is not None and not self._answer.ended:
            self._answer.ended = True
            self._keep = self._parser.should_keep_alive()
