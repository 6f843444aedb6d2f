"""FaultServer: serves lists and watches of one resource over plain TCP, byte by byte, and goes wrong on command.

Left alone it behaves like an API server for `things` of the group example.com. A fault is an async function of
(server, call, wire) that answers one request instead; queue faults in `lists`, `watches`, `streams` (watches with
sendInitialEvents) and `discoveries`. It lives in the loop of the test, so with a virtual clock minutes take
milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

BOOKMARK_PERIOD = 60.0
ROOT = "/apis/example.com/v1"


@dataclass(frozen=True)
class Call:
    """One request."""

    path: str
    params: dict[str, str]

    @property
    def role(self) -> str:
        if self.path == ROOT:
            return "discovery"
        if "watch" not in self.params:
            return "list"
        return "stream" if "sendInitialEvents" in self.params else "watch"


class Wire:
    """The server's end of a connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def answer(self, status: int, body: bytes | dict[str, Any], **headers: str) -> None:
        """A whole answer."""
        if isinstance(body, dict):
            body, headers = json.dumps(body).encode(), {"content_type": "application/json"} | headers
        await self.head(status, content_length=str(len(body)), **headers)
        await self.raw(body)

    async def head(self, status: int, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def open(self) -> None:
        """The head of a watch."""
        await self.head(200, transfer_encoding="chunked", content_type="application/json")

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(self, word: str, obj: dict[str, Any]) -> None:
        await self.chunk(line(word, obj))

    async def end(self) -> None:
        """A clean end of a watch."""
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def cut(self) -> None:
        """FIN, in the middle of whatever it was."""
        self._writer.close()

    def reset(self) -> None:
        """RST."""
        if self.closed:
            return
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    @property
    def closed(self) -> bool:
        return self._writer.is_closing()


Fault = Callable[["FaultServer", Call, Wire], Awaitable[None]]


def line(word: str, obj: dict[str, Any]) -> bytes:
    """One line of a watch, spelled as the API server does."""
    return json.dumps({"type": word, "object": obj}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def status(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
        "details": details,
    }


def bookmark(version: int, *, initial_end: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": metadata}


@dataclass
class FaultServer:
    """See the module."""

    streaming: bool = True
    served: bool = True
    bookmarks: bool = True  # False: of a kind that the API server keeps no watch cache for, as Events
    idle_cut: float | None = None  # what is silent for so long is cut, as by a load balancer
    cut: Callable[[Wire], Any] = Wire.cut
    version: int = 100
    compacted: int = 0
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    lists: deque[Fault] = field(default_factory=deque)
    watches: deque[Fault] = field(default_factory=deque)
    streams: deque[Fault] = field(default_factory=deque)
    discoveries: deque[Fault] = field(default_factory=deque)
    url: str = ""
    port: int = 0
    history: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _open: dict[asyncio.Task[None], Wire] = field(default_factory=dict)

    # The world

    def put(self, name: str, **spec: Any) -> dict[str, Any]:
        old = self.objects.get(name)
        self.version += 1
        obj = {
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": old["metadata"]["uid"] if old else f"uid-{name}-{self.version}",
                "resourceVersion": str(self.version),
            },
            "spec": spec,
        }
        self.objects[name] = obj
        self._record("MODIFIED" if old else "ADDED", obj)
        return obj

    def delete(self, name: str) -> None:
        self.version += 1
        obj = self.objects.pop(name)
        last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self._record("DELETED", last)

    def _record(self, word: str, obj: dict[str, Any]) -> None:
        self.history.append((self.version, word, obj))
        self._changed.set()
        self._changed = asyncio.Event()

    def count(self, role: str) -> int:
        return sum(call.role == role for call in self.calls)

    # The server

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FaultServer]:
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Go away: what is open is cut, what comes is refused."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self.break_connections()
            await asyncio.sleep(0.01)

    def break_connections(self) -> None:
        """Reset what is open, as a load balancer does that goes away."""
        for task, wire in self._open.items():
            wire.reset()
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire, task = Wire(writer), asyncio.current_task()
        assert task is not None
        self._open[task] = wire
        try:
            while not wire.closed:
                head = await reader.readuntil(b"\r\n\r\n")
                target = urlsplit(head.split(b" ", 2)[1].decode())
                call = Call(target.path, dict(parse_qsl(target.query, keep_blank_values=True)))
                self.calls.append(call)
                await self._answer(call, wire)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # cancelled by break_connections
        finally:
            writer.close()
            del self._open[task]

    async def _answer(self, call: Call, wire: Wire) -> None:
        faults = {
            "list": self.lists,
            "watch": self.watches,
            "stream": self.streams,
            "discovery": self.discoveries,
        }[call.role]
        if faults:
            await faults.popleft()(self, call, wire)
        else:
            await self.behave(call, wire)

    async def behave(self, call: Call, wire: Wire) -> None:
        """Answer as it should be."""
        if not self.served:
            await wire.answer(404, b"404 page not found", content_type="text/plain")
        elif call.role == "discovery":
            resources = [{"name": "things", "kind": "Thing", "namespaced": True, "verbs": ["list", "watch"]}]
            await wire.answer(200, {"kind": "APIResourceList", "resources": resources})
        elif call.role == "list":
            await self.page(call, wire)
        elif call.role == "stream" and not self.streaming:
            await wire.answer(422, status(422, "Invalid", "sendInitialEvents is forbidden"))
        elif call.role == "stream":
            await wire.open()
            for obj in list(self.objects.values()):
                await wire.event("ADDED", obj)
            await wire.event("BOOKMARK", bookmark(self.version, initial_end=True))
            await self.follow(self.version, wire)
        elif int(call.params["resourceVersion"]) < self.compacted:
            await wire.open()
            await wire.event("ERROR", status(410, "Expired", "too old resource version"))
            await wire.end()
        else:
            await wire.open()
            await self.follow(int(call.params["resourceVersion"]), wire)

    async def page(self, call: Call, wire: Wire) -> None:
        objects = list(self.objects.values())
        begin, limit = int(call.params.get("continue", 0)), int(call.params.get("limit", 0)) or len(objects) + 1
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if begin + limit < len(objects):
            metadata["continue"] = str(begin + limit)
        body = {"kind": "ThingList", "metadata": metadata, "items": objects[begin : begin + limit]}
        await wire.answer(200, body)

    async def follow(self, version: int, wire: Wire) -> None:
        """Send what comes after a version, and bookmarks, until the connection ends."""
        pause = BOOKMARK_PERIOD if self.bookmarks else 10_000.0
        while not wire.closed:
            changed = self._changed
            for number, word, obj in list(self.history):
                if number > version:
                    await wire.event(word, obj)
                    version = number
            try:
                await asyncio.wait_for(changed.wait(), pause if self.idle_cut is None else self.idle_cut)
            except TimeoutError:
                if self.idle_cut is not None:
                    ended = self.cut(wire)
                    if ended is not None:
                        await ended
                    return
                version = max(version, self.version)
                await wire.event("BOOKMARK", bookmark(version))
