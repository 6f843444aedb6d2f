"""Feed: a Transport that answers lists and watches out of memory: a bench then measures the client alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from kopylite.client.transport import ApiResponse, ApiStream
from kopylite.client.verbs import ApiRequest

VERSION = "1000000"


def encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def line(word: str, obj: object) -> bytes:
    """A line of a watch."""
    return encode({"type": word, "object": obj}) + b"\n"


class Feed:
    """Serves collections by path: each has its objects, and then the changes of its watch, one chunk a line.

    Attributes:
        requests: what was asked, watches apart.
        go: the changes wait for it.
    """

    def __init__(self, objects: Mapping[str, Sequence[Any]], changes: Mapping[str, Sequence[bytes]]) -> None:
        self._objects = objects
        self._changes = changes
        self.requests: list[str] = []
        self.go = anyio.Event()

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        self.requests.append(str(request))
        if request.method != "GET" or request.path not in self._objects:
            return ApiResponse(
                404, {}, encode({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            )
        items = {"metadata": {"resourceVersion": VERSION}, "items": list(self._objects[request.path])}
        return ApiResponse(200, {}, encode(items))

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[ApiStream]:
        first: list[bytes] = []
        if "sendInitialEvents" in request.params:
            marks = {"resourceVersion": VERSION, "annotations": {"k8s.io/initial-events-end": "true"}}
            first = [line("ADDED", obj) for obj in self._objects[request.path]]
            first.append(line("BOOKMARK", {"metadata": marks}))
        yield _Stream(first, self._changes.get(request.path, ()), self.go)


class _Stream:
    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, first: Sequence[bytes], changes: Sequence[bytes], go: anyio.Event) -> None:
        self._first, self._changes, self._go = first, changes, go

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._first:
            yield chunk
        await self._go.wait()
        for chunk in self._changes:
            yield chunk
        await anyio.sleep_forever()

    async def read(self) -> bytes:
        return b""

    async def aclose(self) -> None:
        return
