"""Which objects are of a shard, and which Leases shards need."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace

from kopylite import App, Context, Kind, Request, watch
from kopylite.cache import Record
from kopylite.cache.part import ShardPart
from kopylite.cache.record import RecordDecoder
from kopylite.client import ApiRequest, ApiResponse, ApiStream
from kopylite.errors import ConnectionFailed, RegistrationError, UsageError
from kopylite.leaderelection import ElectionObserver
from kopylite.manager import Options
from kopylite.manager.elections import Candidacy, elects, leases_of, shards_of
from kopylite.manager.sharding import ShardClient, parts_of, roster_of, shard_elector
from kopylite.objects import ObjectKey
from kopylite.objects.shard import Shard, fnv1a64
from kopylite.reconcile.context import RUNNING
from kopylite.testing.clock import VirtualClock
from tests.unit.client.memcache import MemoryCache
from tests.unit.client.memory import MemoryServer

PARENT = Kind("example.com/v1", "Parent", plural="parents", namespaced=True)
CHILD = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
CANDIDACY = Candidacy(cast("Any", None), "somewhere", "me_1")


def app_of(**params: Any) -> App:
    app = App("sharded", **params)

    @app.reconciler(PARENT, owns=[CHILD], watches=[watch(CHILD, map=parents)])
    async def reconcile(ctx: Context, request: Request) -> None:
        """Nothing to do."""

    return app


async def parents(obj: Any, ctx: Context) -> list[Request]:
    return []


def record(uid: str, *owners: dict[str, object]) -> Record:
    metadata = {"name": "a", "namespace": "b", "uid": uid, "resourceVersion": "1", "ownerReferences": [*owners]}
    return RecordDecoder(CHILD).record(json.dumps({"metadata": metadata}).encode())


def test_the_hash_is_the_one_that_the_api_server_splits_by() -> None:
    assert fnv1a64("") == 0xCBF29CE484222325
    assert fnv1a64("a") == 0xAF63DC4C8601EC8C
    assert fnv1a64("foobar") == 0x85944171F73967E8


@pytest.mark.parametrize("count", [1, 2, 3, 7, 256])
def test_each_uid_is_in_exactly_one_shard(count: int) -> None:
    shards = [Shard(index, count) for index in range(count)]
    assert (shards[0].first, shards[-1].end) == (0, 2**64)
    for uid in map(str, range(50)):
        assert [shard.holds(uid) for shard in shards].count(True) == 1


def test_an_owned_object_is_where_its_owner_is() -> None:
    owner = {"apiVersion": "example.com/v2", "kind": "Parent", "name": "p", "uid": "u", "controller": True}
    shard = next(Shard(index, 4) for index in range(4) if Shard(index, 4).holds("u"))
    others = [Shard(index, 4) for index in range(4) if Shard(index, 4) != shard]
    part = ShardPart(shard, PARENT.group_kind)
    assert part.holds(record("anything", owner))
    assert not part.holds(record("anything"))
    assert not part.holds(record("anything", {**owner, "kind": "Other"}))
    assert not part.holds(record("anything", {**owner, "controller": False}))
    assert replace(part, any_owner=True).holds(record("anything", {**owner, "controller": False}))
    assert not any(replace(part, shard=other).holds(record("anything", owner)) for other in others)


def test_what_is_cached_in_parts_are_the_own_kind_and_what_it_owns() -> None:
    shard = Shard(1, 4)
    assert parts_of(app_of().controllers, shard) == {
        PARENT: [ShardPart(shard)],
        CHILD: [ShardPart(shard, PARENT.group_kind)],
    }


def test_shards_are_the_apps_unless_the_options_say_others() -> None:
    app = app_of(shards=4)
    assert shards_of(app, Options()) == 4
    assert shards_of(app, Options(shards=0)) == 0
    assert (elects(app, Options()), leases_of(app, Options())) == (True, 5)
    assert (elects(app, Options(shards=0)), leases_of(app, Options(shards=0))) == (False, 0)


@pytest.mark.parametrize("shards", [-1, 257, True, "4"])
def test_what_is_no_number_of_shards_is_refused(shards: Any) -> None:
    with pytest.raises(RegistrationError, match="shards"):
        App("a", shards=shards)
    with pytest.raises(UsageError, match="shards"):
        Options(shards=shards)


def test_a_lease_name_that_is_no_label_is_refused() -> None:
    with pytest.raises(UsageError, match="63 characters"):
        roster_of(app_of(), Options(lease_name="a" * 64), CANDIDACY, 4)
    assert roster_of(app_of(), Options(lease_name="a" * 63), CANDIDACY, 4).name == "a" * 63


class AboutAll:
    """Stands for a run: of whatever is read."""

    def is_about(self, kind: Kind, key: ObjectKey) -> bool:
        return True


@pytest.mark.parametrize("shard", [Shard(0, 2), Shard(1, 2)], ids=str)
async def test_a_run_sees_no_object_of_its_key_that_another_shard_has(shard: Shard) -> None:
    cache = MemoryCache(CHILD)
    metadata = {"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "1"}
    cache.store.see({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    client = ShardClient(shard, MemoryServer(), cache=cache)

    assert await client.find(CHILD, "a", namespace="b"), "what no run is about is read by every shard"
    token = RUNNING.set(cast("Any", AboutAll()))
    try:
        found = await client.find(CHILD, "a", namespace="b")
    finally:
        RUNNING.reset(token)
    assert (found is not None) == shard.holds("1")


def test_the_elector_of_a_shard_asks_for_nothing_before_it_is_told_to_stand() -> None:
    clock, asked = VirtualClock(), list[str]()

    class Nowhere:
        async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
            asked.append(request.method)
            raise ConnectionFailed("nobody is there")

        @asynccontextmanager
        async def stream(self, request: ApiRequest) -> AsyncIterator[ApiStream]:
            asked.append(request.method)
            raise ConnectionFailed("nobody is there")
            yield

    async def work() -> None: ...

    async def main() -> None:
        app, candidacy = app_of(), Candidacy(Nowhere(), "somewhere", "me_1")
        roster = roster_of(app, Options(), candidacy, 4)
        elector = shard_elector(app, Options(), candidacy, roster, Shard(2, 4), clock, ElectionObserver())
        assert elector.settings.name == "sharded-shard-2"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elector.run, work)
            await clock.sleep(60)
            assert not asked
            elector.stand()
            await clock.sleep(60)
            assert asked
            elector.stop()

    clock.run(main)
