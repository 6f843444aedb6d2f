from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.errors import Conflict
from tests.operators import eventually
from tests.unit.apiserver.inprocess import CONFIG_MAPS, ROLES, Api, Object, owner, serving

SECRETS = "/api/v1/namespaces/default/secrets"
EVENTS = "/api/v1/namespaces/default/events"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOLD = "example.com/hold"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving("garbage-collector") as api:
        yield api


async def test_dependents_go_with_their_owner_and_so_do_theirs(api: Api) -> None:
    first = await api.create(CONFIG_MAPS, "first")
    second = await api.create(CONFIG_MAPS, "second", ownerReferences=[owner(first)])
    await api.create(SECRETS, "third", ownerReferences=[owner(second)])
    await api.create(CONFIG_MAPS, "free")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["first", "free", "second"]
    await api.delete(f"{CONFIG_MAPS}/first")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["free"]
    assert await api.names(SECRETS) == []


async def test_a_dependent_goes_only_when_its_last_owner_has_gone(api: Api) -> None:
    one, two = await api.create(CONFIG_MAPS, "one"), await api.create(CONFIG_MAPS, "two")
    await api.create(CONFIG_MAPS, "child", ownerReferences=[owner(one), owner(two)])
    await api.delete(f"{CONFIG_MAPS}/one")
    await api.settle()
    child = await api.get(f"{CONFIG_MAPS}/child")
    assert child is not None
    assert child["metadata"]["ownerReferences"] == [owner(two)], "the reference to the gone owner is dropped"
    await api.delete(f"{CONFIG_MAPS}/two")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []


async def test_an_owner_that_never_was_counts_as_gone(api: Api) -> None:
    missing = {"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "none"}
    await api.create(CONFIG_MAPS, "child", ownerReferences=[missing])
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []


async def test_an_owner_of_the_same_name_and_another_uid_counts_as_gone(api: Api) -> None:
    present = await api.create(CONFIG_MAPS, "owner")
    await api.create(CONFIG_MAPS, "child", ownerReferences=[owner(present) | {"uid": "another"}])
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["owner"]


async def test_an_owner_of_an_unknown_kind_is_waited_for(api: Api) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "none"}
    await api.create(CONFIG_MAPS, "child", ownerReferences=[unknown])
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["child"], "nobody can say whether its owner exists"
    await api.create(CRDS, "widgets.example.com", content={"spec": widgets("v1")})
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []


@pytest.mark.parametrize("crd_goes", [False, True])
async def test_an_owner_in_a_version_that_is_not_served_is_waited_for_for_ever_as_on_a_real_server(
    api: Api, crd_goes: bool
) -> None:
    await api.create(CRDS, "widgets.example.com", content={"spec": widgets("v1")})
    await api.settle()
    named = {"apiVersion": "example.com/v1", "kind": "Widget"}
    made = await api.create("/apis/example.com/v1/namespaces/default/widgets", "w", content=named)
    for name, version in (("now", "v1"), ("once", "v9")):
        reference = owner(made) | {"apiVersion": f"example.com/{version}", "kind": "Widget"}
        await api.create(CONFIG_MAPS, name, ownerReferences=[reference])
    await api.delete(f"{CRDS}/widgets.example.com" if crd_goes else "/apis/example.com/v1/namespaces/default/widgets/w")
    await eventually(lambda: gone(api), "the other one is collected")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["once"]


async def gone(api: Api) -> bool:
    return "now" not in await api.names(CONFIG_MAPS)


def widgets(version: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    return {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [served]}


async def test_foreground_deletion_ends_when_the_blocking_dependents_are_gone(api: Api) -> None:
    parent = await api.create(CONFIG_MAPS, "parent")
    await api.create(CONFIG_MAPS, "held", ownerReferences=[owner(parent, blockOwnerDeletion=True)], finalizers=[HOLD])
    await api.create(CONFIG_MAPS, "loose", ownerReferences=[owner(parent)], finalizers=[HOLD])
    answer = await api.delete(f"{CONFIG_MAPS}/parent", "Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["held", "loose", "parent"]
    held = await api.get(f"{CONFIG_MAPS}/held")
    assert held is not None
    assert "deletionTimestamp" in held["metadata"], "dependents are deleted first"
    await api.merge(f"{CONFIG_MAPS}/held", {"metadata": {"finalizers": None}})
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["loose"], "one that does not block is not waited for"


async def test_foreground_deletion_goes_down_the_tree(api: Api) -> None:
    top = await api.create(CONFIG_MAPS, "top")
    middle = await api.create(CONFIG_MAPS, "middle", ownerReferences=[owner(top, blockOwnerDeletion=True)])
    await api.create(CONFIG_MAPS, "leaf", ownerReferences=[owner(middle, blockOwnerDeletion=True)], finalizers=[HOLD])
    await api.delete(f"{CONFIG_MAPS}/top", "Foreground")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["leaf", "middle", "top"], "each waits for what it owns"
    await api.merge(f"{CONFIG_MAPS}/leaf", {"metadata": {"finalizers": None}})
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []


@pytest.mark.parametrize("left", [[{"blockOwnerDeletion": False}], None])
async def test_a_dependent_that_stops_blocking_is_no_longer_waited_for(api: Api, left: list[Object] | None) -> None:
    parent = await api.create(CONFIG_MAPS, "parent")
    reference = owner(parent, blockOwnerDeletion=True)
    await api.create(CONFIG_MAPS, "child", ownerReferences=[reference], finalizers=[HOLD])
    await api.delete(f"{CONFIG_MAPS}/parent", "Foreground")
    await api.settle()
    references = left and [reference | change for change in left]
    await api.merge(f"{CONFIG_MAPS}/child", {"metadata": {"ownerReferences": references}})
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["child"]


async def test_a_circle_of_owners_does_not_block_itself(api: Api) -> None:
    ring = [await api.create(CONFIG_MAPS, name) for name in ("a", "b", "c")]
    for member, previous in zip(ring, [ring[2], *ring[:2]], strict=True):
        reference = owner(previous, blockOwnerDeletion=True)
        await api.merge(f"{CONFIG_MAPS}/{member['metadata']['name']}", {"metadata": {"ownerReferences": [reference]}})
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["a", "b", "c"]
    await api.delete(f"{CONFIG_MAPS}/a", "Foreground")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []


async def test_orphaned_dependents_stay_and_forget_their_owner(api: Api) -> None:
    parent, other = await api.create(CONFIG_MAPS, "parent"), await api.create(CONFIG_MAPS, "other")
    await api.create(CONFIG_MAPS, "child", ownerReferences=[owner(parent)])
    await api.create(CONFIG_MAPS, "shared", ownerReferences=[owner(parent), owner(other)])
    await api.delete(f"{CONFIG_MAPS}/parent", "Orphan")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["child", "other", "shared"]
    child, shared = await api.get(f"{CONFIG_MAPS}/child"), await api.get(f"{CONFIG_MAPS}/shared")
    assert child is not None
    assert shared is not None
    assert "ownerReferences" not in child["metadata"]
    assert shared["metadata"]["ownerReferences"] == [owner(other)]


async def test_an_owner_in_another_namespace_counts_as_gone_and_that_is_told(api: Api) -> None:
    await api.create("/api/v1/namespaces", "elsewhere")
    far = await api.create("/api/v1/namespaces/elsewhere/configmaps", "far")
    child = await api.create(CONFIG_MAPS, "child", ownerReferences=[owner(far)])
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []
    (event,) = await _warnings(api)
    uid = far["metadata"]["uid"]
    assert event["message"] == (
        f'ownerRef [v1/ConfigMap, namespace: default, name: far, uid: {uid}] does not exist in namespace "default"'
    )
    assert event["involvedObject"]["uid"] == child["metadata"]["uid"]
    assert event["source"] == {"component": "garbage-collector-controller"}


async def test_a_cluster_wide_dependent_of_a_namespaced_owner_stays_and_that_is_told_once(api: Api) -> None:
    near = await api.create(CONFIG_MAPS, "near")
    await api.create(ROLES, "role", ownerReferences=[owner(near)])
    await api.settle()
    await api.merge(f"{ROLES}/role", {"metadata": {"ownerReferences": [owner(near, controller=True)]}})
    await api.delete(f"{CONFIG_MAPS}/near")
    await api.settle()
    assert "role" in await api.names(ROLES)
    (event,) = await _warnings(api)
    uid = near["metadata"]["uid"]
    assert event["message"] == (
        f'ownerRef [v1/ConfigMap, namespace: , name: near, uid: {uid}] does not exist in namespace ""'
    )


async def test_a_namespaced_dependent_may_have_a_cluster_wide_owner(api: Api) -> None:
    role = await api.create(ROLES, "role")
    await api.create(CONFIG_MAPS, "child", ownerReferences=[owner(role)])
    await api.settle()
    assert await api.names(CONFIG_MAPS) == ["child"]
    await api.delete(f"{ROLES}/role")
    await api.settle()
    assert await api.names(CONFIG_MAPS) == []


async def test_what_fails_is_tried_again(api: Api) -> None:
    failures = 3

    async def fail(request: HttpRequest) -> Response | None:
        nonlocal failures
        if failures and request.method == "DELETE" and request.path.endswith("/child"):
            failures -= 1
            raise Conflict("not now")
        return None

    api.server.world.hooks.before.append(fail)
    parent = await api.create(CONFIG_MAPS, "parent")
    await api.create(CONFIG_MAPS, "child", ownerReferences=[owner(parent)])
    await api.delete(f"{CONFIG_MAPS}/parent")

    async def gone() -> bool:
        return await api.names(CONFIG_MAPS) == []

    await eventually(gone, "the child was deleted in the end")
    assert failures == 0


async def test_what_happened_before_it_ran_is_made_up_for() -> None:
    async with serving() as bare:
        parent = await bare.create(CONFIG_MAPS, "parent")
        await bare.create(CONFIG_MAPS, "child", ownerReferences=[owner(parent)])
        await bare.create(CONFIG_MAPS, "waiting")
        await bare.delete(f"{CONFIG_MAPS}/parent")
        await bare.delete(f"{CONFIG_MAPS}/waiting", "Foreground")
        await bare.settle()
        assert await bare.names(CONFIG_MAPS) == ["child", "waiting"], "a bare API server collects nothing"
        store = bare.server.world.store.fork()
    options = ApiServerOptions(listen=False, controllers=("garbage-collector",))
    async with ApiServer(options, store=store) as server:
        later = Api(server)
        await later.settle()
        assert await later.names(CONFIG_MAPS) == []


async def _warnings(api: Api) -> list[Object]:
    _, found = await api.ask("GET", EVENTS)
    events: list[Object] = found["items"]
    assert {event["reason"] for event in events} == {"OwnerRefInvalidNamespace"}
    return events
