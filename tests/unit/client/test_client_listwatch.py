from __future__ import annotations

import pytest

from kopylite.client.config import ClientConfig
from kopylite.client.listwatch import ListWatch
from kopylite.client.transport import HttpTransport
from kopylite.client.verbs import ResourceInfo, Selection
from kopylite.errors import Expired, Forbidden, KindNotFound, NotFound
from kopylite.objects import Kind
from tests.unit.client.scripted import ScriptedServer, answer, chunked

FOOS = ResourceInfo(Kind("example.com/v1", "Foo"), "foos", True)
GONE = b'{"kind":"Status","reason":"Expired","message":"too old","code":410}'


async def test_a_page_is_asked_for_as_configured() -> None:
    async with (
        ScriptedServer(answer(body=b'{"items":[]}')) as server,
        HttpTransport(ClientConfig(server.url)) as transport,
    ):
        collection = ListWatch(transport, FOOS, "shop", Selection("a=b"), metadata_only=True)
        assert await collection.list_page(resource_version="7") == b'{"items":[]}'
    received = server.received[0]
    assert received.target == (
        "/apis/example.com/v1/namespaces/shop/foos"
        "?labelSelector=a%3Db&limit=500&resourceVersion=7&resourceVersionMatch=NotOlderThan"
    )
    assert received.headers["accept"].startswith("application/json;as=PartialObjectMetadataList")


async def test_a_refused_list_or_watch_raises_with_its_reason() -> None:
    async with (
        ScriptedServer(answer(410, GONE), answer(410, GONE), answer(403, b"<html>no</html>")) as server,
        HttpTransport(ClientConfig(server.url)) as transport,
    ):
        collection = ListWatch(transport, FOOS)
        with pytest.raises(Expired):
            await collection.list_page()
        with pytest.raises(Expired, match="too old"):
            async with collection.watch(resource_version="1"):
                pass
        with pytest.raises(Forbidden, match="<html>no"):
            async with collection.watch():
                pass


async def test_a_404_of_a_collection_means_that_the_kind_is_not_served() -> None:
    named = b'{"kind":"Status","reason":"NotFound","message":"gone","details":{"name":"x"},"code":404}'
    async with (
        ScriptedServer(answer(404, b"404 page not found"), answer(404, named)) as server,
        HttpTransport(ClientConfig(server.url)) as transport,
    ):
        with pytest.raises(KindNotFound, match="is the CRD installed"):
            await ListWatch(transport, FOOS).list_page()
        with pytest.raises(NotFound):
            await ListWatch(transport, FOOS).list_page()


async def test_a_watch_is_a_stream_of_what_the_server_sends() -> None:
    async with (
        ScriptedServer(chunked(b'{"type"', b':"ADDED"}\n')) as server,
        HttpTransport(ClientConfig(server.url)) as transport,
        ListWatch(transport, FOOS).watch(timeout_seconds=300, send_initial_events=True) as stream,
    ):
        assert b"".join([chunk async for chunk in stream.chunks()]) == b'{"type":"ADDED"}\n'
    assert "timeoutSeconds=300" in server.received[0].target
    assert "sendInitialEvents=true" in server.received[0].target


async def test_a_server_that_will_not_divide_is_asked_for_everything() -> None:
    body = b'{"kind":"Status","message":"invalid shard selector: unsupported function","code":500}'
    async with (
        ScriptedServer(answer(500, body), answer(body=b'{"items":[]}'), answer(500, body), chunked(b"x")) as server,
        HttpTransport(ClientConfig(server.url)) as transport,
    ):
        collection = ListWatch(transport, FOOS, "shop", Selection("a=b", shards="shardRange(x)"))
        assert await collection.list_page() == b'{"items":[]}'
        async with collection.watch(resource_version="1") as stream:
            assert [chunk async for chunk in stream.chunks()] == [b"x"]
    assert ["shardSelector=shardRange" in each.target for each in server.received] == [True, False, True, False]
    assert all("labelSelector=a%3Db" in each.target for each in server.received)
