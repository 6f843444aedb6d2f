"""TinyServer: as much of an API server as it takes to start an operator: a version, lists and watches of a few kinds.

It runs in the test's own event loop, over plain HTTP, and can refuse things. For what an API server really does,
tests use the embedded one or a real one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from kopylite.client.config import ClientConfig

GROUP_VERSION = "example.com/v1"


class TinyServer:
    """Serves the kinds Thing and Part of example.com/v1, both namespaced unless told otherwise.

    Attributes:
        served: the plurals that exist; others are 404.
        cluster_scoped: the plurals that are in no namespace.
        forbidden: the plurals whose list and watch are 403.
        closed: the namespaces in which everything is 403; "" stands for requests about all of them.
        discoverable: whether the kinds are told to those who ask; they wait until they are.
        foreign: a status and a text for every request, of something that is no API server.
        namespaces: those that exist, as far as anybody asks.
        answer: a status for every request instead of an answer: 401, 503; None: work.
        requests: "METHOD path" of all so far.
    """

    def __init__(self) -> None:
        self.served = {"things", "parts"}
        self.cluster_scoped: set[str] = set()
        self.forbidden: set[str] = set()
        self.closed: set[str] = set()
        self.discoverable = asyncio.Event()
        self.discoverable.set()
        self.answer: int | None = None
        self.foreign: tuple[int, str] | None = None
        self.namespaces: set[str] | None = None
        self.requests: list[str] = []
        self.url = "http://127.0.0.1:9"  # until it listens
        self._version = 10
        self._objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._history: list[tuple[int, str, str, bytes]] = []
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def config(self) -> ClientConfig:
        return ClientConfig(self.url, source="the test")

    def write_kubeconfig(self, folder: Path) -> Path:
        path = folder / "kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "tiny",
            "clusters": [{"name": "tiny", "cluster": {"server": self.url}}],
            "users": [{"name": "tiny", "user": {"token": "tiny"}}],
            "contexts": [{"name": "tiny", "context": {"cluster": "tiny", "user": "tiny"}}],
        }))  # fmt: skip
        return path

    def put(
        self,
        name: str,
        *,
        namespace: str = "default",
        plural: str = "things",
        owner: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """Create or change an object, and tell the watches."""
        self._version += 1
        key = (plural, namespace, name)
        word = "MODIFIED" if key in self._objects else "ADDED"
        version = str(self._version)
        metadata: dict[str, Any] = {
            "namespace": namespace,
            "name": name,
            "uid": f"{plural}-{name}",
            "resourceVersion": version,
        }
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        kind = plural.removesuffix("s").capitalize()
        obj = {"apiVersion": GROUP_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        self._objects[key] = obj
        line = json.dumps({"type": word, "object": obj}).encode() + b"\n"
        self._history.append((self._version, plural, namespace, line))
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End all watches."""
        self._closed = True
        self._changed.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        if self.answer is not None:
            return _status(self.answer, "Unauthorized" if self.answer == 401 else "ServiceUnavailable", "not now")
        if self.foreign is not None:
            return web.Response(status=self.foreign[0], text=self.foreign[1])
        parts = request.path.strip("/").split("/")
        if parts[:3] == ["api", "v1", "namespaces"] and self.namespaces is not None and parts[3] in self.namespaces:
            return web.json_response({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": parts[3]}})
        if parts[:3] == ["api", "v1", "namespaces"]:
            return _status(404, "NotFound", f'namespaces "{parts[3]}" not found', name=parts[3])
        if parts == ["version"]:
            return web.json_response({"gitVersion": "v1.0.0-tiny"})
        if parts[:3] != ["apis", "example.com", "v1"]:
            return _status(404, "NotFound", "the server could not find the requested resource")
        rest = parts[3:]
        if not rest:
            await self.discoverable.wait()
            resources = [_resource(p, p not in self.cluster_scoped) for p in self.served]
            return web.json_response({"kind": "APIResourceList", "resources": resources})
        namespace, rest = (rest[1], rest[2:]) if rest[0] == "namespaces" else ("", rest)
        return await self._collection(request, namespace, rest[0], rest[1:])

    async def _collection(
        self, request: web.Request, namespace: str, plural: str, name: list[str]
    ) -> web.StreamResponse:
        if plural not in self.served:
            return web.Response(status=404, text="404 page not found")
        if plural in self.forbidden or namespace in self.closed:
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            sentence = f'User "bob" cannot list resource "{plural}" in API group "example.com" {where}'
            return _status(403, "Forbidden", f"{plural}.example.com is forbidden: {sentence}")
        if name:
            found = self._objects.get((plural, namespace, name[0]))
            return web.json_response(found) if found else _status(404, "NotFound", "not found", name=name[0])
        if "sendInitialEvents" in request.query:
            return _status(422, "Invalid", "sendInitialEvents is forbidden")
        if "watch" in request.query:
            return await self._watch(request, namespace, plural)
        items = [o for (p, ns, _), o in self._objects.items() if p == plural and namespace in ("", ns)]
        return web.json_response({"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items})

    async def _watch(self, request: web.Request, namespace: str, plural: str) -> web.StreamResponse:
        seen = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        while not self._closed:
            changed = self._changed
            for version, watched, where, line in self._history:
                if version > seen and watched == plural and namespace in ("", where):
                    await response.write(line)
            seen = self._version
            await changed.wait()
        return response


def _resource(plural: str, namespaced: bool) -> dict[str, Any]:
    return {"name": plural, "kind": plural.removesuffix("s").capitalize(), "namespaced": namespaced}


def _status(code: int, reason: str, message: str, **details: str) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }
    return web.json_response(body, status=code)


@asynccontextmanager
async def tiny_server() -> AsyncIterator[TinyServer]:
    """A TinyServer that listens until the block ends."""
    server = TinyServer()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.close()
        await runner.cleanup()
