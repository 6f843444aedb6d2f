from __future__ import annotations

import json
import logging

import pytest
from pydantic import BaseModel

from kopylite.client import Client
from kopylite.client import misfits as misfits_module
from kopylite.client.misfits import Misfits
from kopylite.errors import DecodeError
from kopylite.objects import CustomResource, Kind, adapter_of
from tests.unit.client.memcache import MemoryCache
from tests.unit.client.memory import MemoryServer


class AppSpec(BaseModel):
    replicas: int


class MyApp(CustomResource[AppSpec, None], group="example.com", version="v1"):
    pass


KIND = Kind("example.com/v1", "MyApp", "myapps", True)


class World:
    """Two objects, one of which does not fit; the cache shows what the server has."""

    def __init__(self) -> None:
        self.server = MemoryServer()
        self.cache = MemoryCache(KIND)
        self.told: list[str] = []
        self.client = Client(self.server, cache=self.cache, on_misfit=lambda error: self.told.append(str(error)))
        self.put("good", 3)
        self.put("bad", "three")

    def put(self, name: str, replicas: object) -> None:
        obj = {"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": {"name": name, "namespace": "shop"}}
        path = f"/apis/example.com/v1/namespaces/shop/myapps/{name}"
        stored = self.server.put_in(path, obj | {"spec": {"replicas": replicas}})
        self.cache.store.see(json.loads(json.dumps(stored)))


@pytest.fixture
def world() -> World:
    return World()


async def test_a_list_leaves_out_what_does_not_fit_and_tells_of_it_once_per_change(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        assert [app.name for app in await world.client.list(MyApp, namespace="shop")] == ["good"]
    problem = "MyApp shop/bad does not fit its model: spec.replicas: Input should be a valid integer"
    assert world.told == [problem]
    assert caplog.messages == [f"left out: {problem}"]
    world.put("bad", "four")
    await world.client.list(MyApp, namespace="shop")
    assert world.told == [problem] * 2
    world.put("bad", 4)
    assert len(await world.client.list(MyApp, namespace="shop")) == 2


async def test_a_list_that_must_be_complete_fails_and_names_the_object(world: World) -> None:
    with pytest.raises(DecodeError, match="MyApp shop/bad"):
        await world.client.list(MyApp, namespace="shop", invalid="raise")
    assert len(await world.client.list(KIND, namespace="shop", invalid="raise")) == 2


async def test_the_live_client_lists_in_the_same_way(world: World) -> None:
    assert [app.name for app in await world.client.live.list(MyApp, namespace="shop")] == ["good"]
    await world.client.list(MyApp, namespace="shop")
    assert len(world.told) == 1
    with pytest.raises(DecodeError):
        await world.client.live.list(MyApp, namespace="shop", invalid="raise")


async def test_the_error_carries_the_object_as_it_is_stored(world: World) -> None:
    with pytest.raises(DecodeError) as caught:
        await world.client.get(MyApp, "bad", namespace="shop")
    assert caught.value.object is not None
    assert caught.value.object.spec == {"replicas": "three"}
    assert caught.value.__suppress_context__, "a traceback would show the values"


def test_the_memory_of_what_was_told_is_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(misfits_module, "MAX_KNOWN", 50)
    misfits = Misfits()
    caplog.set_level(logging.CRITICAL)
    bodies = [json.dumps({"metadata": {"uid": str(n)}, "spec": {}}).encode() for n in range(60)]
    assert misfits.decode_all(adapter_of(MyApp), bodies) == []
    assert len(misfits._known) == 50
