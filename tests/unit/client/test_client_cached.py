from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes_asyncio.client import V1Deployment, V1DeploymentStatus
from pydantic import BaseModel

from kopylite.client import ApiResponse, Client
from kopylite.errors import Conflict, EncodeError, KindNotFound, NotFound, RequestTimeout, UsageError
from kopylite.objects import CustomResource, Kind, ObjectKey, ObjectMeta, Unstructured
from tests.unit.client.memcache import MemoryCache
from tests.unit.client.memory import MemoryServer

CM = Kind("v1", "ConfigMap")
SECRET = Kind("v1", "Secret")
KEY = ObjectKey("shop", "a")
PATH = "/api/v1/namespaces/shop/configmaps/a"


class AppSpec(BaseModel):
    image: str


class AppStatus(BaseModel):
    ready_replicas: int = 0
    message: str | None = None


class MyApp(CustomResource[AppSpec, AppStatus], group="example.com", version="v1"):
    pass


class World:
    """A client whose cache shows what `show` copies from the server."""

    def __init__(self) -> None:
        self.server = MemoryServer()
        self.cache = MemoryCache(CM, Kind("example.com/v1", "MyApp"))
        self.client = Client(self.server, cache=self.cache)

    def show(self) -> None:
        for obj in self.server.objects.values():
            self.cache.store.see(json.loads(json.dumps(obj)))

    async def create(self, **data: str) -> Unstructured:
        metadata = {"name": "a", "namespace": "shop"}
        return await self.client.create(
            Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        )


@pytest.fixture
def world() -> World:
    return World()


async def test_a_key_of_the_wrong_scope_is_refused_by_the_cache_as_by_the_server(world: World) -> None:
    # Not found would mean deleted, and a clean-up would follow.
    node, scoped = Kind("v1", "Node"), Kind("v1", "ConfigMap")
    client = Client(world.server, cache=MemoryCache(node, scoped))
    for kind, key in ((node, ObjectKey("shop", "n1")), (scoped, ObjectKey("", "a"))):
        for reader in (client, client.live):
            with pytest.raises(UsageError, match=r"cluster-scoped|needs a namespace"):
                await reader.find(kind, key)
            with pytest.raises(UsageError, match=r"cluster-scoped|needs a namespace"):
                await reader.get(kind, key)
    for reader in (client, client.live):
        with pytest.raises(UsageError, match="cluster-scoped"):
            await reader.list(node, namespace="shop")


async def test_an_index_of_a_cache_that_is_not_in_sync_yet_is_no_mistake_of_the_program(world: World) -> None:
    class Unsynced(MemoryCache):
        def store_for(self, kind: Kind, namespace: str) -> None:
            return None

    client = Client(world.server, cache=Unsynced(CM))
    with pytest.raises(RequestTimeout, match=r"ConfigMap\.v1 in namespace shop is not in sync yet"):
        await client.list(CM, namespace="shop", index={"data.x": "1"})
    with pytest.raises(UsageError, match=r"app\.cache"):
        await client.list(SECRET, namespace="shop", index={"data.x": "1"})


async def test_a_cached_kind_is_read_without_a_request(world: World) -> None:
    await world.create(x="1")
    world.show()
    world.server.requests.clear()
    assert (await world.client.get(CM, KEY))["data"] == {"x": "1"}
    assert [m.name for m in await world.client.list(CM, namespace="shop")] == ["a"]
    assert await world.client.find(CM, "none", namespace="shop") is None
    with pytest.raises(NotFound, match=r"ConfigMap.v1 shop/none not found"):
        await world.client.get(CM, "none", namespace="shop")
    assert world.server.requests == []


async def test_a_list_without_a_namespace_looks_where_the_operator_is_limited_to(world: World) -> None:
    server = world.server
    client = Client(server, cache=world.cache, namespaces=["shop", "lab"])
    for namespace in ("shop", "lab", "elsewhere"):
        metadata = {"name": "a", "namespace": namespace}
        await client.create(Unstructured({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
    server.requests.clear()
    assert [secret.namespace for secret in await client.list(SECRET)] == ["shop", "lab"]
    assert [secret.namespace for secret in await client.list(SECRET, namespace="elsewhere")] == ["elsewhere"]
    assert server.requests == [
        f"GET /api/v1/namespaces/{namespace}/secrets" for namespace in ("shop", "lab", "elsewhere")
    ]


async def test_each_read_is_a_copy_of_its_own(world: World) -> None:
    await world.create(x="1")
    world.show()
    (await world.client.get(CM, KEY))["data"]["x"] = "changed"
    assert (await world.client.get(CM, KEY))["data"] == {"x": "1"}


async def test_other_kinds_field_selectors_and_live_reads_go_to_the_server(world: World) -> None:
    await world.create()
    world.show()
    world.server.requests.clear()
    assert await world.client.find(SECRET, KEY) is None
    await world.client.list(SECRET)
    await world.client.list(CM, fields="metadata.name=a")
    await world.client.live.get(CM, KEY)
    assert world.server.requests == [
        "GET /api/v1/namespaces/shop/secrets/a",
        "GET /api/v1/secrets",
        "GET /api/v1/configmaps",
        f"GET {PATH}",
    ]


async def test_a_key_that_cannot_be_is_refused_and_not_taken_for_missing(world: World) -> None:
    with pytest.raises(UsageError, match="needs a namespace"):
        await world.client.find(CM, "a")


async def test_a_read_after_a_write_waits_for_the_cache(world: World) -> None:
    await world.create()
    world.cache.store.on_wait = world.show
    world.server.requests.clear()
    assert await world.client.get(CM, KEY)
    assert world.server.requests == []


async def test_a_read_after_a_write_asks_the_server_when_the_cache_stays_behind(world: World) -> None:
    created = await world.create(x="1")
    world.show()
    await world.client.patch(created, patch={"data": {"x": "2"}})
    assert (await world.client.get(CM, KEY))["data"] == {"x": "2"}
    assert [m["data"] for m in await world.client.list(CM, namespace="shop")] == [{"x": "2"}]
    found = await world.client.list(CM, namespace="shop", index={"data.x": "2"})
    assert [m["data"] for m in found] == [{"x": "2"}], "the server's list, searched as the index would"
    assert await world.client.list(CM, namespace="shop", index={"data.x": "1"}) == []


async def test_writes_through_the_live_client_count_too(world: World) -> None:
    created = await world.create(x="1")
    world.show()
    await world.client.live.patch(created, patch={"data": {"x": "2"}})
    assert (await world.client.get(CM, KEY))["data"] == {"x": "2"}


async def test_a_deleted_object_is_not_read_again(world: World) -> None:
    created = await world.create()
    world.show()
    await world.client.delete(created)
    assert await world.client.find(CM, KEY) is None
    assert await world.client.list(CM) == []


async def test_an_object_with_finalizers_is_seen_with_its_mark(world: World) -> None:
    created = await world.create()
    created = await world.client.patch(created, patch={"metadata": {"finalizers": ["example.com/x"]}})
    world.show()
    await world.client.delete(created)
    found = await world.client.get(CM, KEY)
    assert found.deletion_timestamp


async def test_dry_runs_are_no_writes(world: World) -> None:
    created = await world.create(x="1")
    world.show()
    await world.client.patch(created, patch={"data": {"y": "1"}}, dry_run=True)
    world.server.requests.clear()
    await world.client.get(CM, KEY)
    assert world.server.requests == []


async def test_an_index_needs_a_cache(world: World) -> None:
    with pytest.raises(UsageError, match=r"app\.cache"):
        await world.client.list(SECRET, index={"type": "x"})
    with pytest.raises(UsageError, match="leave out field selectors"):
        await world.client.list(CM, index={"type": "x"}, fields="metadata.name=a")


async def myapp(world: World, status: dict[str, Any] | None = None) -> MyApp:
    app = MyApp(metadata=ObjectMeta(name="a", namespace="shop"), spec=AppSpec(image="x"))
    created = await world.client.create(app)
    if status:
        created = await world.client.patch(MyApp, "a", {"status": status}, namespace="shop", subresource="status")
    world.server.sent.clear()
    return created


async def test_a_status_that_holds_already_is_not_sent(world: World) -> None:
    app = await myapp(world, {"readyReplicas": 2, "other": [{"a": 1, "b": None}]})
    assert await world.client.patch_status(app, {"readyReplicas": 2}) is app
    assert await world.client.patch_status(app, {"readyReplicas": 2, "gone": None, "other": [{"a": 1}]}) is app
    assert await world.client.patch_status(app, AppStatus(ready_replicas=2)) is app
    assert world.server.sent == []


async def test_only_the_difference_of_a_status_is_sent(world: World) -> None:
    app = await myapp(world, {"readyReplicas": 2, "message": "m"})
    changed = await world.client.patch_status(app, {"readyReplicas": 3, "message": "m"})
    request = world.server.sent[-1]
    assert request.path.endswith("/myapps/a/status")
    assert request.content_type == "application/json-patch+json"
    this = {"op": "test", "path": "/metadata/uid", "value": app.uid}
    assert json.loads(request.body or b"") == [this, {"op": "add", "path": "/status/readyReplicas", "value": 3}]
    assert changed.status.ready_replicas == 3
    await world.client.patch_status(changed, AppStatus(ready_replicas=4))
    assert json.loads(world.server.sent[-1].body or b"") == [
        this,
        {"op": "add", "path": "/status/readyReplicas", "value": 4},
    ]


async def test_what_was_read_before_the_object_was_made_anew_changes_nothing(world: World) -> None:
    stale, config = await myapp(world), await world.create(x="1")
    for old in (stale, config):
        await world.client.delete(old)
    fresh, _ = await myapp(world), await world.create(x="1")
    assert fresh.uid != stale.uid
    with pytest.raises(Conflict):
        await world.client.patch_status(stale, {"readyReplicas": 7})
    with pytest.raises(Conflict):
        await world.client.add_finalizer(stale, "example.com/x")
    await world.client.patch(config, patch={"data": {"x": "2"}})
    assert json.loads(world.server.sent[-1].body or b"")["metadata"] == {"uid": config.uid}, "the server compares it"
    now = await world.client.live.get(MyApp, KEY)
    assert (now.status.ready_replicas, now.metadata.finalizers) == (0, [])


async def test_a_status_that_came_in_between_is_not_lost(world: World) -> None:
    app = await myapp(world)
    await world.client.patch(MyApp, KEY, {"status": {"message": "mine"}}, subresource="status")
    with pytest.raises(Conflict):
        await world.client.patch_status(app, {"readyReplicas": 7})
    assert (await world.client.live.get(MyApp, KEY)).status.message == "mine"


async def test_a_first_status_of_nothing_but_defaults_is_sent(world: World) -> None:
    app = await myapp(world)
    await world.client.patch_status(app, {"readyReplicas": 0})
    assert len(world.server.sent) == 1


class ShardStatus(BaseModel):
    shards: dict[str, str] = {}
    leader: str | None = None
    phase: str = ""


class Shard(CustomResource[AppSpec, ShardStatus], group="example.com", version="v1"):
    pass


async def test_a_map_in_a_status_model_is_the_whole_map_and_a_none_clears(world: World) -> None:
    metadata = {"name": "a", "namespace": "shop"}
    status = {"shards": {"a": "1", "b": "1"}, "leader": "a", "phase": "Up", "theirs": {"x": 1}}
    wire = {"apiVersion": "example.com/v1", "kind": "Shard", "metadata": metadata, "spec": {"image": "i"}}
    kind = Kind("example.com/v1", "Shard", "shards", namespaced=True)
    await world.client.api.create(kind, "shop", wire | {"status": status})
    read = await world.client.live.get(Shard, "a", namespace="shop")
    await world.client.patch_status(read, ShardStatus(shards={"b": "2"}, leader=None))
    stored = await world.client.live.get(kind, "a", namespace="shop")
    assert stored.status == {"shards": {"b": "2"}, "phase": "Up", "theirs": {"x": 1}}
    read.status.shards.clear()
    read.status.phase = "Down"
    await world.client.patch_status(read, read.status)
    stored = await world.client.live.get(kind, "a", namespace="shop")
    assert (stored.status["shards"], stored.status["phase"], stored.status["theirs"]) == ({}, "Down", {"x": 1})


async def test_the_status_of_a_librarys_model_is_told_from_what_was_read(world: World) -> None:
    metadata = {"name": "a", "namespace": "shop"}
    when = "2026-01-01T00:00:00Z"
    condition = {"type": "Available", "status": "True", "lastUpdateTime": when, "unknown": 1}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {}}
    await world.client.create(Unstructured(deployment | {"status": {"conditions": [condition], "replicas": 1}}))
    read = await world.client.live.get(V1Deployment, "a", namespace="shop")
    assert read.status is not None
    assert await world.client.patch_status(read, read.status) is read
    read.status.replicas = None  # type: ignore[assignment]  # the library clears so, and says int all the same
    read.status.ready_replicas = 2
    stored = await world.client.patch_status(read, read.status)
    assert json.loads(world.server.sent[-1].body or b"")[1:] == [
        {"op": "remove", "path": "/status/replicas"},
        {"op": "add", "path": "/status/readyReplicas", "value": 2},
    ]
    with pytest.raises(UsageError, match="status of Deployment"):
        await world.client.patch_status(stored, V1DeploymentStatus())


async def test_a_merge_patch_that_the_object_holds_already_is_not_sent(world: World) -> None:
    created = await world.create(x="1")
    world.server.requests.clear()
    assert await world.client.patch(created, patch={"data": {"x": "1", "gone": None}}) is created
    assert world.server.requests == []
    changed = await world.client.patch(created, patch={"data": {"x": "2"}})
    assert changed["data"] == {"x": "2"}


async def test_a_patch_by_name_and_one_of_the_live_client_are_sent_in_any_case(world: World) -> None:
    created = await world.create(x="1")
    world.server.requests.clear()
    await world.client.patch(CM, KEY, {"data": {"x": "1"}})
    await world.client.live.patch(created, patch={"data": {"x": "1"}})
    assert len(world.server.requests) == 2


async def test_finalizers_that_are_there_or_gone_already_send_nothing(world: World) -> None:
    app = await myapp(world)
    assert await world.client.remove_finalizer(app, "example.com/x") is app
    app = await world.client.add_finalizer(app, "example.com/x")
    world.server.sent.clear()
    assert await world.client.add_finalizer(app, "example.com/x") is app
    assert world.server.sent == []
    await world.client.remove_finalizer(app, "example.com/x")
    assert world.server.sent[-1].content_type == "application/json-patch+json"
    await world.client.live.delete(app)
    assert await world.client.remove_finalizer(app, "example.com/x") is app, "gone is as good as removed"


async def test_a_kind_that_is_not_served_is_no_missing_object(world: World) -> None:
    world.server.answers = [ApiResponse(404, {}, b"404 page not found")]
    with pytest.raises(KindNotFound):
        await world.client.find(SECRET, KEY)


async def test_what_an_older_object_has_already_is_sent_when_a_newer_one_was_written_otherwise(world: World) -> None:
    for cached in (True, False):
        kind = CM if cached else SECRET
        metadata = {"name": "a", "namespace": "shop"}
        first = Unstructured({"apiVersion": "v1", "kind": kind.kind, "metadata": metadata, "data": {"x": "1"}})
        old = await world.client.create(first)
        await world.client.patch(kind, KEY, {"data": {"x": "2"}})
        if cached:
            world.show()
        answer = await world.client.patch(old, {"data": {"x": "1"}})
        assert (await world.client.live.get(kind, KEY))["data"] == {"x": "1"} == answer["data"], kind


async def test_a_patch_that_changes_nothing_of_an_older_object_returns_the_newest_one(world: World) -> None:
    old = await world.create(x="1")
    await world.client.patch(CM, KEY, {"data": {"y": "2"}})
    world.show()
    sent = len(world.server.sent)
    answer = await world.client.patch(old, {"data": {"x": "1"}})
    assert (answer["data"], len(world.server.sent)) == ({"x": "1", "y": "2"}, sent)


async def test_a_list_that_an_older_object_has_is_not_put_over_a_newer_one(world: World) -> None:
    old = await world.create(x="1")
    old = await world.client.patch(old, {"items": ["a"]})
    await world.client.patch(CM, KEY, {"items": ["a", "b"]})
    world.show()
    with pytest.raises(Conflict, match="items was changed"):
        await world.client.patch(old, {"items": ["a"]})


async def test_a_status_of_an_older_object_is_sent_too(world: World) -> None:
    old = await world.client.patch_status(await myapp(world), {"message": "a"})
    await world.client.patch(MyApp, KEY, {"status": {"message": "b"}}, subresource="status")
    world.show()
    answer = await world.client.patch_status(old, {"message": "a"})
    assert answer.status.message == "a" == (await world.client.live.get(MyApp, KEY)).status.message


async def test_an_object_built_by_hand_does_not_tell_what_is_stored(world: World) -> None:
    await world.create(x="1")
    world.show()
    metadata = {"name": "a", "namespace": "shop"}
    mine = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "2"}})
    assert (await world.client.patch(mine, {"data": {"x": "2"}}))["data"] == {"x": "2"}
    assert (await world.client.live.get(CM, KEY))["data"] == {"x": "2"}


async def test_a_status_that_cannot_be_sent_is_refused_with_object_and_path(world: World) -> None:
    app = await myapp(world)
    cycle: dict[str, Any] = {}
    cycle["a"] = cycle
    with pytest.raises(EncodeError, match=r"MyApp.*shop/a.*status\.list\.a is nan"):
        await world.client.patch_status(app, {"list": {"a": float("nan")}})
    with pytest.raises(EncodeError, match=r"MyApp.*shop/a.*contains itself"):
        await world.client.patch_status(app, cycle)


async def test_labels_and_index_values_are_taken_as_python_has_them(world: World) -> None:
    await world.create(x="3")
    world.show()
    assert len(await world.client.list(CM, namespace="shop", index={"data.x": 3})) == 1
    assert len(await world.client.live.list(CM, namespace="shop", fields={"metadata.name": "a"})) == 1
    with pytest.raises(UsageError, match="labels takes a text"):
        await world.client.delete_all(CM, labels={"app": None})  # type: ignore[dict-item]


async def test_a_list_by_an_index_that_the_class_cannot_have_is_refused(world: World) -> None:
    with pytest.raises(
        UsageError, match=r"index: 'spec\.imag': spec of MyApp has no field 'imag'; did you mean 'image'"
    ):
        await world.client.list(MyApp, index={"spec.imag": "a"})
    with pytest.raises(UsageError, match=r"index=.*a text, a number or a boolean is looked for"):
        await world.client.list(MyApp, index={"spec.image": None})  # type: ignore[dict-item]
