"""An API server in process, without a socket, and a few words to talk to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import Any, TypeVar

import msgspec
import pytest

from kopylite.apiserver.depth import deep_stack
from kopylite.apiserver.request.request import ADMIN, HttpRequest, Response, User
from kopylite.apiserver.server import ApiServer, ApiServerOptions

T = TypeVar("T")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Api:
    """The server under test. Calls return (HTTP status, decoded body)."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.world = server.world
        self.core = server.core
        self._streams: list[Any] = []

    async def respond(
        self, method: str, target: str, obj: Any = None, *, user: User = ADMIN, **headers: str
    ) -> Response:
        body = obj if isinstance(obj, bytes) else b"" if obj is None else msgspec.json.encode(obj)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if method == "PATCH":
            named.setdefault("content-type", "application/merge-patch+json")
        response = await self.server.handle(HttpRequest.of(method, target, headers=named, body=body, user=user))
        if response.stream is not None:
            self._streams.append(response.stream)
        return response

    async def close(self) -> None:
        """Leave every watch, as a client does whose connection ends."""
        for stream in self._streams:
            await stream.aclose()

    async def call(self, method: str, target: str, obj: Any = None, **headers: Any) -> tuple[int, dict[str, Any]]:
        response = await self.respond(method, target, obj, **headers)
        with deep_stack():  # a client of an odd object needs one too
            return response.status, msgspec.json.decode(response.body) if response.body else {}

    async def get(self, target: str, **headers: Any) -> dict[str, Any]:
        status, body = await self.call("GET", target, **headers)
        assert status == 200, body
        return body

    async def create(self, target: str, obj: Any, **headers: Any) -> dict[str, Any]:
        status, body = await self.call("POST", target, obj, **headers)
        assert status == 201, body["message"]
        return body

    async def config_map(self, name: str, **fields: Any) -> dict[str, Any]:
        labels = fields.pop("labels", None)
        metadata = {"name": name} | ({"labels": labels} if labels else {})
        return await self.create(CONFIG_MAPS, {"metadata": metadata, **fields})

    async def watch(self, target: str, **headers: str) -> Events:
        response = await self.respond("GET", target, user=ADMIN, **headers)
        assert response.stream is not None, response.body
        return Events(response)


def finished(steps: Generator[None, None, T]) -> T:
    """What all steps together make."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class Events:
    """The decoded events of a watch, one by one."""

    def __init__(self, response: Response) -> None:
        assert response.stream is not None
        self._stream = response.stream
        self._waiting: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        """Raises StopAsyncIteration at the end of the stream."""
        while not self._waiting:
            chunk = await anext(self._stream)
            self._waiting.extend(msgspec.json.decode(line) for line in chunk.splitlines())
        return self._waiting.pop(0)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events."""
        found = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in found]

    async def rest(self) -> list[dict[str, Any]]:
        """All events until the stream ends."""
        found = []
        while True:
            try:
                found.append(await self.next())
            except StopAsyncIteration:
                return found

    async def close(self) -> None:
        await self._stream.aclose()


def widget_crd(**version: Any) -> dict[str, Any]:
    """A CRD with status and scale; `version` overrides parts of its one version."""
    size = {"type": "integer", "minimum": 1}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {"size": size}},
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
    only = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [only],
        },
    }


def widget(name: str, size: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": {"size": size},
    }


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with ApiServer(ApiServerOptions(listen=False)) as server:
        api = Api(server)
        yield api
        await api.close()


@pytest.fixture
async def widgets(api: Api) -> Api:
    """The server, with the Widget CRD."""
    await api.create(CRDS, widget_crd())
    return api


@pytest.fixture
def open_crd() -> dict[str, Any]:
    """The Widget CRD with a schema that keeps everything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return widget_crd(schema={"openAPIV3Schema": schema})
