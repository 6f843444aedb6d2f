from __future__ import annotations

import json

import pytest

from kopylite.client.api import Api
from kopylite.client.live import LiveClient
from kopylite.client.transport import ApiResponse
from kopylite.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Invalid,
    KindNotFound,
    NotFound,
    SubresourceNotFound,
    UsageError,
)
from kopylite.objects import Kind, ObjectKey, Unstructured
from tests.unit.client.memory import MemoryServer

CM = Kind("v1", "ConfigMap")
PATH = "/api/v1/namespaces/shop/configmaps/a"
OWNER = Unstructured(
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "o", "namespace": "shop", "uid": "ou"}}
)


def config_map(name: str = "a", **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": "shop"}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def client(server: MemoryServer) -> LiveClient:
    return LiveClient(Api(server), field_manager="me")


async def test_an_object_is_created_read_updated_and_deleted(client: LiveClient, server: MemoryServer) -> None:
    created = await client.create(config_map(x="1"))
    assert created.uid
    read = await client.get(CM, "a", namespace="shop")
    assert read == created
    read["data"]["x"] = "2"
    assert (await client.update(read))["data"] == {"x": "2"}
    assert [m.name for m in await client.list(CM, namespace="shop")] == ["a"]
    assert await client.delete(CM, ObjectKey("shop", "a"))
    assert await client.find(CM, ObjectKey("shop", "a")) is None
    with pytest.raises(NotFound):
        await client.get(CM, ObjectKey("shop", "a"))
    assert server.sent[0].params == {"fieldManager": "me"}


async def test_a_second_create_and_a_stale_update_are_refused(client: LiveClient) -> None:
    created = await client.create(config_map())
    with pytest.raises(AlreadyExists):
        await client.create(config_map())
    await client.patch(created, patch={"data": {"x": "1"}})
    with pytest.raises(Conflict):
        await client.update(created)


async def test_an_update_of_what_was_never_read_is_refused_before_it_is_sent(
    client: LiveClient, server: MemoryServer
) -> None:
    with pytest.raises(UsageError, match="no resourceVersion"):
        await client.update(config_map())
    assert server.requests == []


async def test_create_with_an_owner_leaves_the_given_object_alone(client: LiveClient, server: MemoryServer) -> None:
    given = config_map()
    created = await client.create(given, owner=OWNER)
    assert [(r.uid, r.controller) for r in created.owner_references] == [("ou", True)]
    assert given.owner_references == []


async def test_an_empty_patch_reads_instead(client: LiveClient, server: MemoryServer) -> None:
    await client.create(config_map(x="1"))
    assert (await client.patch(CM, "a", {}, namespace="shop"))["data"] == {"x": "1"}
    assert len(server.writes) == 1


async def test_patch_options_reach_the_server(client: LiveClient, server: MemoryServer) -> None:
    await client.create(config_map())
    await client.patch(
        CM,
        "a",
        {"status": {}},
        namespace="shop",
        type="strategic",
        subresource="status",
        dry_run=True,
        field_manager="x",
    )
    request = server.sent[-1]
    assert request.path == f"{PATH}/status"
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.params == {"fieldManager": "x", "dryRun": "All"}


async def test_a_failed_test_of_a_json_patch_is_a_conflict(client: LiveClient, server: MemoryServer) -> None:
    refused = ApiResponse(422, {}, b'{"kind":"Status","reason":"Invalid","message":"the server rejected","code":422}')
    steps: list[dict[str, object]] = [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}]
    server.answers = [refused]
    with pytest.raises(Conflict):
        await client.patch(CM, "a", steps, namespace="shop", type="json")
    server.answers = [refused]
    with pytest.raises(Invalid):
        await client.patch(CM, "a", steps[1:], namespace="shop", type="json")


async def test_deleting_an_object_deletes_no_other_of_its_name(client: LiveClient, server: MemoryServer) -> None:
    created = await client.create(config_map())
    await client.delete(created, propagation="Foreground", grace_period=0)
    body = json.loads(server.sent[-1].body or b"")
    assert body["preconditions"] == {"uid": created.uid}
    assert (body["propagationPolicy"], body["gracePeriodSeconds"]) == ("Foreground", 0)


async def test_deleting_what_is_gone_says_so_or_raises(client: LiveClient) -> None:
    assert not await client.delete(CM, "a", namespace="shop")
    with pytest.raises(NotFound):
        await client.delete(CM, "a", namespace="shop", missing_ok=False)


async def test_what_is_meant_must_be_clear(client: LiveClient, server: MemoryServer) -> None:
    with pytest.raises(UsageError, match="needs a key"):
        await client.delete(CM)
    with pytest.raises(UsageError, match="another key"):
        await client.delete(config_map(), "b")
    with pytest.raises(UsageError, match="name cannot be ''"):
        await client.delete(CM, "", namespace="shop")
    with pytest.raises(UsageError, match="needs a namespace"):
        await client.get(CM, "a")
    assert server.requests == []


async def test_delete_all_goes_to_the_collection_with_its_selectors(client: LiveClient, server: MemoryServer) -> None:
    server.answers = [ApiResponse(200, {}, b"{}")]
    await client.delete_all(CM, namespace="shop", labels="a=b", propagation="Orphan", dry_run=True)
    request = server.sent[-1]
    assert (str(request), request.params) == ("DELETE /api/v1/namespaces/shop/configmaps", {"labelSelector": "a=b"})
    assert json.loads(request.body or b"")["dryRun"] == ["All"]


def page(names: list[str], token: str = "") -> ApiResponse:
    items = [{"metadata": {"name": name, "namespace": "shop"}} for name in names]
    return ApiResponse(200, {}, json.dumps({"metadata": {"continue": token}, "items": items}).encode())


async def test_a_list_is_read_page_by_page_and_its_items_get_their_kind(
    client: LiveClient, server: MemoryServer
) -> None:
    server.answers = [page(["a", "b"], "t1"), page(["c"])]
    found = await client.list(CM)
    assert [(m.name, m.kind, m.api_version) for m in found] == [(n, "ConfigMap", "v1") for n in "abc"]
    assert [r.params.get("continue") for r in server.sent] == [None, "t1"]


async def test_a_list_whose_state_expired_begins_again_once(client: LiveClient, server: MemoryServer) -> None:
    gone = ApiResponse(410, {}, b'{"kind":"Status","reason":"Expired","code":410}')
    server.answers = [page(["a"], "t1"), gone, page(["a", "b"])]
    assert [m.name for m in await client.list(CM)] == ["a", "b"]
    server.answers = [gone, gone]
    with pytest.raises(Expired):
        await client.list(CM)


async def test_a_404_without_a_name_is_a_missing_kind_and_never_a_missing_object(
    client: LiveClient, server: MemoryServer
) -> None:
    server.answers = [ApiResponse(404, {}, b"404 page not found")] * 2
    with pytest.raises(KindNotFound):
        await client.find(CM, "a", namespace="shop")
    with pytest.raises(KindNotFound):
        await client.delete(CM, "a", namespace="shop")


async def test_sub_resources_are_read_and_written(client: LiveClient, server: MemoryServer) -> None:
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
    server.answers = [ApiResponse(200, {}, json.dumps(scale).encode())] * 2
    deployment = Kind("apps/v1", "Deployment")
    assert (await client.get_subresource(deployment, "a", "scale", namespace="shop")).spec == {"replicas": 2}
    await client.create_subresource(deployment, "a", "eviction", {"kind": "Eviction"}, namespace="shop")
    assert server.requests == [
        "GET /apis/apps/v1/namespaces/shop/deployments/a/scale",
        "POST /apis/apps/v1/namespaces/shop/deployments/a/eviction",
    ]


async def test_a_sub_resource_that_is_not_served_is_named_as_what_is_missing(
    client: LiveClient, server: MemoryServer
) -> None:
    served = b'{"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}]}'
    server.answers = [ApiResponse(404, {}, b"404 page not found"), ApiResponse(200, {}, served)]
    with pytest.raises(SubresourceNotFound, match=r"ConfigMap\.v1 shop/a has no sub-resource 'status'"):
        await client.patch(CM, "a", {"status": {"x": 1}}, namespace="shop", subresource="status")
