"""The embedded server without a socket: requests in, decoded answers out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.clock import SYSTEM_CLOCK, Clock

Object = dict[str, Any]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


class Api:
    """Requests as the administrator."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Object]:
        encoded = b"" if body is None else json.dumps(body).encode()
        response = await self.server.handle(HttpRequest.of(method, path, headers=headers, body=encoded))
        return response.status, json.loads(response.body)

    async def create(self, path: str, name: str, **metadata: Any) -> Object:
        content = metadata.pop("content", {})
        status, obj = await self.ask("POST", path, {"metadata": {"name": name, **metadata}, **content})
        assert status == 201, obj
        return obj

    async def get(self, path: str) -> Object | None:
        status, obj = await self.ask("GET", path)
        return obj if status == 200 else None

    async def names(self, path: str) -> list[str]:
        _, found = await self.ask("GET", path)
        return [item["metadata"]["name"] for item in found["items"]]

    async def delete(self, path: str, policy: str | None = None) -> Object:
        query = f"?propagationPolicy={policy}" if policy else ""
        status, answer = await self.ask("DELETE", path + query)
        assert status == 200, answer
        return answer

    async def merge(self, path: str, patch: Object) -> Object:
        status, obj = await self.ask("PATCH", path, patch, **{"content-type": "application/merge-patch+json"})
        assert status == 200, obj
        return obj

    async def settle(self) -> None:
        """Let the controllers come to rest: nothing was written for some turns of the loop."""
        quiet, version = 0, -1
        while quiet < 50:
            await anyio.lowlevel.checkpoint()
            quiet = quiet + 1 if self.server.world.store.version == version else 0
            version = self.server.world.store.version


@asynccontextmanager
async def serving(*controllers: str, clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[Api]:
    """A server with these controllers."""
    options = ApiServerOptions(listen=False, controllers=controllers)
    async with ApiServer(options, clock=clock) as server:
        yield Api(server)


def owner(obj: Object, **more: Any) -> Object:
    """An owner reference to an object."""
    kind = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**kind, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"], **more}
