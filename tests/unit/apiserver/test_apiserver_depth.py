"""The server's deep stack is its own: whoever runs beside it has Python's."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

import anyio
import anyio.lowlevel
import msgspec
import pytest

from kopylite.apiserver.depth import LIMIT, deep, deep_stream
from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/things"
LEVELS = 900


def crd() -> bytes:
    schema = {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return msgspec.json.encode({"metadata": {"name": "things.example.com"}, "spec": spec})


async def test_between_the_steps_of_the_server_the_limit_is_the_one_of_its_process() -> None:
    seen: list[int] = []
    before = sys.getrecursionlimit()

    async def work() -> str:
        seen.append(sys.getrecursionlimit())
        await anyio.lowlevel.checkpoint()
        seen.append(sys.getrecursionlimit())
        return "done"

    async def chunks() -> AsyncGenerator[bytes, None]:
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
            seen.append(sys.getrecursionlimit())
            yield b"x"

    assert await deep(work()) == "done"
    async for _ in deep_stream(chunks()):
        assert sys.getrecursionlimit() == before
    assert seen == [max(before, LIMIT)] * 4
    assert sys.getrecursionlimit() == before


async def test_errors_and_cancellation_go_through() -> None:
    before = sys.getrecursionlimit()

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await deep(fail())
    with anyio.move_on_after(0.01) as scope:
        await deep(anyio.sleep(60))
    assert scope.cancelled_caught
    assert sys.getrecursionlimit() == before


async def test_deep_objects_are_written_watched_and_collected_beside_a_shallow_stack() -> None:
    before = sys.getrecursionlimit()
    spec = b'{"a":' * LEVELS + b"1" + b"}" * LEVELS
    controllers = ("garbage-collector", "namespace")
    async with ApiServer(ApiServerOptions(listen=False, controllers=controllers)) as server:
        assert (await server.handle(HttpRequest.of("POST", CRD_PATH, body=crd()))).status == 201
        watch = await server.handle(HttpRequest.of("GET", f"{THINGS}?watch=1"))
        body = b'{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":' + spec + b"}"
        assert (await server.handle(HttpRequest.of("POST", THINGS, body=body))).status == 201
        assert watch.stream is not None
        assert spec in await anext(watch.stream)
        await watch.stream.aclose()
        patch = HttpRequest.of(
            "PATCH", f"{THINGS}/a", headers={"content-type": "application/merge-patch+json"}, body=b'{"other":1}'
        )
        assert (await server.handle(patch)).status == 200
        assert (await server.handle(HttpRequest.of("DELETE", f"{THINGS}/a"))).status == 200
        assert sys.getrecursionlimit() == before
