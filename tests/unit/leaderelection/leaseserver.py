"""LeaseServer: as much of an API server as Leases need, in memory, so that time can be a test's own; and its faults.

What a real one does with Leases, `tests/elections` asks.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from kopylite.client import ApiRequest, ApiResponse, ApiStream
from kopylite.errors import RequestTimeout

LATE = 12.0
PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class LeaseServer:
    """A Transport.

    Attributes:
        leases: the objects, by name.
        fault: asked for each request: None, a status to answer with, "cut" (never answered), "lost" (carried out, and
            never answered), "lost, slowly", "late" (answered after `LATE` seconds, even to whom that is too late).
        requests: "METHOD name" of all; WATCH of a watch.
    """

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Any]] = {}
        self.fault: Callable[[ApiRequest], int | str | None] = lambda request: None
        self.requests: list[str] = []
        self._versions = itertools.count(1)
        self._changed = anyio.Event()

    def holders(self) -> dict[str, str]:
        """Who holds what, of those that somebody holds."""
        specs = {name: lease.get("spec") or {} for name, lease in self.leases.items()}
        return {name: spec["holderIdentity"] for name, spec in specs.items() if spec.get("holderIdentity")}

    def put(self, lease: dict[str, Any]) -> dict[str, Any]:
        """Store one, as somebody else would."""
        stored: dict[str, Any] = json.loads(json.dumps(lease))
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self.leases[stored["metadata"]["name"]] = stored
        self._tell()
        return stored

    def hand_to(self, holder: str, name: str = "a") -> None:
        """Have one name another holder, as somebody would by hand."""
        lease = self.leases[name]
        self.put({**lease, "spec": {**lease["spec"], "holderIdentity": holder}})

    def label(self, name: str = "a", **labels: str) -> None:
        """Label one, as somebody else would."""
        lease = self.leases[name]
        metadata = lease["metadata"]
        self.put({**lease, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}})

    def fail(self, method: str, fault: int | str) -> None:
        """From now on requests of this method meet a fault, and no others."""
        self.fault = lambda request: fault if request.method == method else None

    def delete(self, name: str) -> None:
        """Delete one, as somebody else would."""
        del self.leases[name]
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        """As a Transport."""
        assert request.path.startswith(PATH), request.path
        name = request.path.removeprefix(PATH).strip("/")
        self.requests.append(f"{request.method} {name}".strip())
        await anyio.lowlevel.checkpoint()
        fault = self.fault(request)
        if fault == "cut":
            await anyio.sleep_forever()
        if fault == "late":
            with anyio.CancelScope(shield=True):
                await anyio.sleep(LATE)
        if isinstance(fault, int):
            return _answer(fault, {"kind": "Status", "code": fault, "message": "as the test wants it"})
        status, body = self._carry_out(request, name)
        if fault == "lost, slowly":
            await anyio.sleep_forever()
        if fault == "lost":
            raise RequestTimeout("no answer within 1 s")
        return _answer(status, body)

    def _carry_out(self, request: ApiRequest, name: str) -> tuple[int, dict[str, Any]]:
        sent = json.loads(request.body) if request.body else {}
        if request.method == "GET" and not name:
            return 200, self._list(request.params.get("labelSelector", ""))
        if request.method == "POST":
            name = sent["metadata"]["name"]
            return (409, _status(409, "AlreadyExists")) if name in self.leases else (201, self.put(sent))
        stored = self.leases.get(name)
        if stored is None:
            return 404, _status(404, "NotFound", name=name)
        if request.method == "GET":
            return 200, stored
        version = (sent.get("preconditions") or sent.get("metadata") or {}).get("resourceVersion")
        if version != stored["metadata"]["resourceVersion"]:
            return 409, _status(409, "Conflict", name=name)
        if request.method == "PUT":
            return 200, self.put(sent)
        self.delete(name)
        return 200, _status(200, "")

    def _list(self, selector: str) -> dict[str, Any]:
        label, _, value = selector.partition("=")
        items = [each for each in self.leases.values() if (each["metadata"].get("labels") or {}).get(label) == value]
        return {"kind": "LeaseList", "metadata": {"resourceVersion": "1"}, "items": items}

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[Any]:
        """As a Transport: a watch of one Lease."""
        name = request.params["fieldSelector"].removeprefix("metadata.name=")
        self.requests.append(f"WATCH {name}")
        fault = self.fault(request)
        if fault == "cut":
            await anyio.sleep_forever()
        yield _Stream(self, name, fault if isinstance(fault, int) else 200)


class Line:
    """What is between one replica and the server: a Transport that can be cut."""

    def __init__(self, server: LeaseServer) -> None:
        self._server = server
        self.cut = False

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        if self.cut:
            await anyio.sleep_forever()
        return await self._server.request(request)

    def stream(self, request: ApiRequest) -> AbstractAsyncContextManager[ApiStream]:
        return self._server.stream(request)


class _Stream:
    def __init__(self, server: LeaseServer, name: str, status: int) -> None:
        self._server, self._name, self.status = server, name, status
        self.headers: dict[str, str] = {}

    async def read(self) -> bytes:
        return _answer(self.status, _status(self.status, "")).body

    async def chunks(self) -> AsyncIterator[bytes]:
        before = None
        while True:
            now = self._server.leases.get(self._name)
            if now != before:
                line = {"type": "MODIFIED", "object": now} if now else {"type": "DELETED", "object": before}
                before = now
                yield json.dumps(line).encode() + b"\n"
                continue
            await self._server._changed.wait()


def _status(code: int, reason: str, **details: str) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": reason, "details": details}


def _answer(status: int, body: dict[str, Any]) -> ApiResponse:
    return ApiResponse(status, {}, json.dumps(body).encode())
