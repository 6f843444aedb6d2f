from __future__ import annotations

import anyio
import pytest

from kopylite.cache import Informer, Scope, SharedCache
from kopylite.cache.part import ShardPart
from kopylite.cache.shared import PartCache, PartReader
from kopylite.cache.steps import Replacement
from kopylite.client.config import ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.metrics import Metrics
from kopylite.objects import Kind, ObjectKey, Shard
from tests.chaos.faultserver import FaultServer

THING = Kind("example.com/v1", "Thing")


async def test_one_informer_for_each_kind_namespace_selector_and_form() -> None:
    transport = HttpTransport(ClientConfig(server="http://127.0.0.1:1"))
    cache = SharedCache(transport, Resources(transport))
    informer = cache.acquire(THING)
    assert cache.acquire(Kind("example.com/v1", "Thing", plural="things", namespaced=True)) is informer
    others = [
        cache.acquire(THING, namespace="ns"),
        cache.acquire(THING, labels="a=b"),
        cache.acquire(THING, fields="metadata.name=x"),
        cache.acquire(THING, metadata_only=True),
        cache.acquire(Kind("example.com/v2", "Thing")),
    ]
    assert len({id(one) for one in (informer, *others)}) == 6
    assert len(cache.informers) == 6


async def test_an_informer_lives_until_its_last_user_releases_it() -> None:
    server = FaultServer()
    server.put("a")
    async with server.running(), HttpTransport(ClientConfig(server=server.url)) as transport:
        cache = SharedCache(transport, Resources(transport))
        first = cache.acquire(THING)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            assert cache.acquire(THING) is first
            assert cache.store_for(THING, "") is None, "not yet complete: reads go to the server"
            assert cache.is_namespaced(THING) is None
            with anyio.fail_after(5):
                await cache.wait_scope(THING)
                assert cache.is_namespaced(THING) is True
                await first.wait_synced()
            assert cache.is_namespaced(THING) is True
            cache.release(first)
            store = cache.store_for(THING, "")
            assert store is not None
            assert store.get(ObjectKey("ns", "a")) is not None
            entry = cache._entries[first.scope]
            assert not entry.stop.cancel_called
            cache.release(first)
            cache.release(first)
            assert entry.stop.cancel_called
            assert cache.store_for(THING, "") is None
            assert cache.informers == []
            second = cache.acquire(THING)
            assert second is not first
            with anyio.fail_after(5):
                await second.wait_synced()
            assert [one.objects for one in cache.statistics()] == [1]
            tasks.cancel_scope.cancel()


async def test_a_scope_that_a_kind_declares_wrongly_is_told_and_corrected_by_the_servers_objects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, declared = FaultServer(), Kind("example.com/v1", "Thing", plural="things", namespaced=False)
    server.put("a")
    server.put("b")
    async with server.running(), HttpTransport(ClientConfig(server=server.url)) as transport:
        resources = Resources(transport)
        cache = SharedCache(transport, resources)
        informer = cache.acquire(declared)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            with anyio.fail_after(5):
                await informer.wait_synced()
            assert cache.is_namespaced(declared) is True
            assert (await resources.find(declared)).namespaced
            assert len(caplog.records) == 1
            tasks.cancel_scope.cancel()


async def test_reads_rely_only_on_informers_that_leave_nothing_out() -> None:
    server = FaultServer()
    async with server.running(), HttpTransport(ClientConfig(server=server.url)) as transport:
        cache = SharedCache(transport, Resources(transport))
        informers = [cache.acquire(THING, labels="a=b"), cache.acquire(THING, metadata_only=True)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            with anyio.fail_after(5):
                for informer in informers:
                    await informer.wait_synced()
                assert cache.store_for(THING, "") is None
                narrow = cache.acquire(THING, namespace="ns")
                await narrow.wait_synced()
                assert cache.store_for(THING, "ns") is narrow.store
                assert cache.store_for(THING, "other") is None
                assert cache.store_for(THING, "") is None
                wide = cache.acquire(THING)
                await wide.wait_synced()
                assert cache.store_for(THING, "other") is wide.store
            tasks.cancel_scope.cancel()


async def test_a_selector_reaches_the_server_as_it_was_written() -> None:
    server = FaultServer()
    async with server.running(), HttpTransport(ClientConfig(server=server.url)) as transport:
        cache = SharedCache(transport, Resources(transport))
        informer = cache.acquire(THING, namespace="ns", labels="a in (x, y)", fields="metadata.name!=z")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            with anyio.fail_after(5):
                await informer.wait_synced()
            tasks.cancel_scope.cancel()
        call = server.calls[-1]
        assert call.path == "/apis/example.com/v1/namespaces/ns/things"
        assert call.params["labelSelector"] == "a in (x, y)"
        assert call.params["fieldSelector"] == "metadata.name!=z"


async def test_nothing_is_kept_of_an_informer_that_has_ended() -> None:
    metrics, begun = Metrics(), list[Informer]()
    async with HttpTransport(ClientConfig(server="http://127.0.0.1:1")) as transport:
        cache = SharedCache(transport, Resources(transport), observe=metrics.informer, begun=begun.append)
        metrics.informer_statistics = cache.statistics
        informers = [cache.acquire(THING, namespace=f"n{number}") for number in range(3)]
        assert begun == informers
        assert {scope.namespace for scope in metrics._informers} == {"n0", "n1", "n2"}
        assert 'namespace="n1"' in metrics.exposition()[0].decode()
        cache.acquire(THING, namespace="n1")
        for informer in informers:
            cache.release(informer)
        assert {scope.namespace for scope in metrics._informers} == {"n1"}, "it has another user"
        assert begun == informers
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(cache.wait_scope, THING)
            await anyio.wait_all_tasks_blocked()
            assert len(cache._located) == 1
            tasks.cancel_scope.cancel()
        assert not cache._located, "nobody waits any more"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.wait_scope, THING)
            with anyio.move_on_after(0):
                await cache.wait_scope(THING)
            assert cache._located, "somebody still waits"
            tasks.cancel_scope.cancel()


async def test_an_informer_was_tried_when_its_list_came_or_was_refused() -> None:
    server = FaultServer()
    async with server.running(), HttpTransport(ClientConfig(server=server.url)) as transport:
        cache = SharedCache(transport, Resources(transport))
        good, bad = cache.acquire(THING), cache.acquire(Kind("example.com/v1", "Nowhere"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            with anyio.fail_after(5):
                await good.wait_tried()
                await bad.wait_tried()
            assert (good.has_state, bad.has_state) == (True, False)
            tasks.cancel_scope.cancel()


async def test_the_informers_of_a_part_are_shared_by_its_users_and_end_with_them() -> None:
    transport = HttpTransport(ClientConfig(server="http://127.0.0.1:1"))
    cache = SharedCache(transport, Resources(transport))
    first, second = (PartCache(cache, ShardPart(Shard(index, 2))) for index in range(2))
    informer = first.acquire(THING, namespace="ns", labels="a=b", fields="c=d", metadata_only=True)
    assert informer.scope == Scope(THING, "ns", "a=b", "c=d", True, first.part)
    assert first.acquire(THING, namespace="ns", labels="a=b", fields="c=d", metadata_only=True) is informer
    other = second.acquire(THING, namespace="ns", labels="a=b", fields="c=d", metadata_only=True)
    assert other is not informer
    first.release(informer)
    assert cache.informers == [informer, other]
    first.release(informer)
    assert cache.informers == [other]


async def test_a_shard_reads_from_its_own_parts_only_where_there_is_no_whole_cache() -> None:
    transport = HttpTransport(ClientConfig(server="http://127.0.0.1:1"))
    cache = SharedCache(transport, Resources(transport))
    part, others = (ShardPart(Shard(index, 2)) for index in range(2))
    reader = PartReader(cache, {THING: [part]})
    mine, theirs = (PartCache(cache, each).acquire(THING) for each in (part, others))
    assert reader.store_for(THING, "ns") is None, "not complete yet"
    for informer in (mine, theirs):
        await informer.replace(Replacement({}, "1", True))
    assert reader.store_for(THING, "ns") is mine.store
    assert PartReader(cache, {}).store_for(THING, "ns") is None
    assert not reader.follows(THING, "ns"), "what is not of the part is asked for on the server"
    whole = cache.acquire(THING, namespace="ns")
    assert reader.follows(THING, "ns")
    assert not reader.follows(THING, "other")
    assert reader.store_for(THING, "ns") is mine.store, "the whole one is not complete yet"
    await whole.replace(Replacement({}, "1", True))
    assert reader.store_for(THING, "ns") is whole.store
    assert reader.store_for(THING, "other") is mine.store
