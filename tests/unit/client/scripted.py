"""ScriptedServer: an HTTP server that does exactly what a test says, down to the byte and the reset."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import anyio.lowlevel

from kopylite.clock import SystemClock


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire. Header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Hurried(SystemClock):
    """Its waiting between attempts is over at once, so that limits can be long."""

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


Act = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def answer(status: int = 200, body: bytes = b"{}", **headers: str) -> bytes:
    """A whole HTTP answer; header names with _ for -."""
    lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def reset(_: Received, writer: asyncio.StreamWriter) -> None:
    """Cut the connection the hard way (RST)."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction of a proxy: what is read is written, until the end of either."""
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


def chunked(*chunks: bytes, end: bool = True) -> Act:
    """A stream in these chunks; without `end`, the connection is dropped in the middle."""

    async def act(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        if end:
            writer.write(b"0\r\n\r\n")
        else:
            writer.close()

    return act


class ScriptedServer:
    """Answers the first request with the first act, and so on; the last act repeats. Use as a context manager."""

    def __init__(self, *acts: bytes | Act, tls: ssl.SSLContext | None = None) -> None:
        self.acts = list(acts)
        self.received: list[Received] = []
        self.connections = 0
        self._tls = tls
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                received = await self._receive(reader)
                act = self.acts[min(len(self.received), len(self.acts) - 1)]
                self.received.append(received)
                if isinstance(act, bytes):
                    writer.write(act)
                else:
                    await act(received, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader) -> Received:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers: dict[str, str] = {}
        for line in head[1:]:
            if line:
                name, value = line.split(": ", 1)
                name = name.lower()
                headers[name] = f"{headers[name]},{value}" if name in headers else value
        return Received(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))
