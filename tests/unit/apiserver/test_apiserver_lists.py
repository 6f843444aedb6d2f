from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.reads.lists import decode_token, encode_token
from kopylite.errors import BadRequest

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def test_an_empty_list_has_items_and_the_version_of_the_store(api: Any) -> None:
    listed = await api.get(CONFIG_MAPS)
    assert listed == {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(api.world.store.version)},
        "items": [],
    }


async def test_items_of_built_ins_do_not_repeat_their_kind_and_custom_ones_do(widgets: Any) -> None:
    await widgets.config_map("a")
    await widgets.create(
        WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    )
    assert "kind" not in (await widgets.get(CONFIG_MAPS))["items"][0]
    listed = await widgets.get(WIDGETS)
    assert listed["items"][0]["kind"] == "Widget"
    assert listed["metadata"]["continue"] == ""


async def test_pages_show_one_version_whatever_is_written_between_them(api: Any) -> None:
    for name in "abcde":
        await api.config_map(name)
    first = await api.get(f"{CONFIG_MAPS}?limit=2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await api.call("DELETE", f"{CONFIG_MAPS}/d")
    await api.config_map("bb")
    second = await api.get(f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    last = await api.get(f"{CONFIG_MAPS}?limit=2&continue={second['metadata']['continue']}")
    assert names(last) == ["e"]
    assert "continue" not in last["metadata"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, last)}
    assert len(versions) == 1


async def test_a_selection_in_pages_does_not_count_what_remains(api: Any) -> None:
    for name in "abcd":
        await api.config_map(name, labels={"x": "1"} if name in "ad" else {})
    page = await api.get(f"{CONFIG_MAPS}?limit=1&labelSelector=x%3D1")
    assert names(page) == ["a"]
    assert "remainingItemCount" not in page["metadata"]
    page = await api.get(f"{CONFIG_MAPS}?limit=1&labelSelector=x%3D1&continue={page['metadata']['continue']}")
    assert (names(page), "continue" in page["metadata"]) == (["d"], False)


async def test_a_compacted_continue_token_offers_one_that_goes_on_inconsistently(api: Any) -> None:
    for name in "abc":
        await api.config_map(name)
    first = await api.get(f"{CONFIG_MAPS}?limit=1")
    await api.config_map("bb")
    api.world.store.compact()
    status, answer = await api.call("GET", f"{CONFIG_MAPS}?limit=1&continue={first['metadata']['continue']}")
    assert (status, answer["reason"]) == (410, "Expired")
    assert "continue parameter is too old" in answer["message"]
    rest = await api.get(f"{CONFIG_MAPS}?continue={answer['metadata']['continue']}")
    assert names(rest) == ["b", "bb", "c"]


async def test_exact_shows_an_old_version_and_not_older_than_the_newest(api: Any) -> None:
    made = await api.config_map("a")
    await api.config_map("b")
    version = made["metadata"]["resourceVersion"]
    exact = await api.get(f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert (names(exact), exact["metadata"]["resourceVersion"]) == (["a"], version)
    newer = await api.get(f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan")
    assert names(newer) == ["a", "b"]
    legacy = await api.get(f"{CONFIG_MAPS}?resourceVersion={version}&limit=10")
    assert names(legacy) == ["a"]
    api.world.store.compact()
    status, answer = await api.call("GET", f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert (status, answer["message"]) == (410, "The resourceVersion for the provided list is too old.")


async def test_a_version_from_the_future_times_out_and_says_why(api: Any) -> None:
    async def no_time(seconds: float) -> None:
        return

    class Hurried:
        monotonic, now = api.world.clock.monotonic, api.world.clock.now
        random, uuid, sleep = api.world.clock.random, api.world.clock.uuid, staticmethod(no_time)

    api.world.clock = Hurried()
    for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/a"):
        status, answer = await api.call("GET", f"{path}?resourceVersion=99999")
        assert (status, answer["reason"]) == (504, "Timeout")
        assert answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert answer["details"]["retryAfterSeconds"] == 1


async def test_keys_are_in_the_order_of_etcd(api: Any) -> None:
    for namespace in ("team", "team-a"):
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await api.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "x"}})
    listed = await api.get("/api/v1/configmaps")
    found = [item["metadata"]["namespace"] for item in listed["items"]]
    assert found == ["kube-system", "team-a", "team"], "'-' sorts before '/'"


async def test_field_selectors_know_the_fields_of_their_kind(api: Any) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
    await api.create("/api/v1/namespaces/default/pods", pod)
    assert names(await api.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")) == ["p"]
    assert names(await api.get("/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1")) == []
    status, answer = await api.call("GET", "/api/v1/pods?fieldSelector=spec.x%3D1")
    assert (status, answer["message"]) == (400, "field label not supported: spec.x")
    status, answer = await api.call("GET", "/api/v1/configmaps?fieldSelector=data.x%3D1")
    assert answer["message"].startswith('"data.x" is not a known field selector')


async def test_an_object_written_by_one_version_of_a_crd_is_read_by_the_other(api: Any, open_crd: Any) -> None:
    (v1,) = open_crd["spec"]["versions"]
    open_crd["spec"]["versions"].append({**v1, "name": "v2", "storage": False})
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", open_crd)
    made = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    await api.create(WIDGETS, made)
    other = WIDGETS.replace("/v1/", "/v2/")
    read = await api.get(f"{other}/w")
    assert (read["apiVersion"], read["spec"]) == ("example.com/v2", {"size": 1})
    assert (await api.get(other))["items"] == [read]
    events = await api.watch(f"{other}?watch=1")
    assert (await events.next())["object"] == read
    await events.close()


def test_a_token_comes_back_as_it_was_made() -> None:
    assert decode_token(encode_token(12, "ns/name\0")) == (12, "ns/name\0")


@pytest.mark.parametrize("token", ["abc", "?", "e30", "bnVsbA", encode_token(0, "a"), encode_token(3, "")[:-4]])
def test_a_forged_token_is_a_bad_request(token: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        decode_token(token)
