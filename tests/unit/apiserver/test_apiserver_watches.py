from __future__ import annotations

from typing import Any

import anyio
import pytest

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Any) -> None:
    await api.config_map("b")
    await api.config_map("a")
    events = await api.watch(f"{CONFIG_MAPS}?watch=1")
    assert await events.take(2) == [("ADDED", "a"), ("ADDED", "b")]
    await api.config_map("c")
    assert await events.take(1) == [("ADDED", "c")]
    await events.close()


async def test_a_watch_from_a_version_has_every_later_event_once_and_in_order(api: Any) -> None:
    first = await api.config_map("a")
    await api.config_map("b")
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
    await api.call("DELETE", f"{CONFIG_MAPS}/b")
    events = await api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
    assert await events.take(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    await api.call("DELETE", f"{CONFIG_MAPS}/a")
    event = await events.next()
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["resourceVersion"] == str(api.world.store.version)
    await events.close()


async def test_a_watch_from_the_future_waits_for_it(api: Any) -> None:
    version = api.world.store.version + 2
    events = await api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
    for name in ("a", "b", "c"):
        await api.config_map(name)
    assert await events.take(1) == [("ADDED", "c")]
    await events.close()


async def test_a_watch_from_before_the_history_says_so_in_one_event(api: Any) -> None:
    made = await api.config_map("a")
    await api.config_map("b")
    api.world.store.compact()
    events = await api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={made['metadata']['resourceVersion']}")
    (event,) = await events.rest()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: ")


async def test_a_compaction_leaves_running_watches_alone(api: Any) -> None:
    events = await api.watch(f"{CONFIG_MAPS}?watch=1")
    await api.config_map("a")
    api.world.store.compact()
    assert await events.take(1) == [("ADDED", "a")]
    await api.config_map("b")
    api.world.store.compact()
    assert await events.take(1) == [("ADDED", "b")]
    await events.close()


async def test_a_watcher_slower_than_the_history_window_is_closed(api: Any) -> None:
    api.world.store.history_events = 8
    events = await api.watch(f"{CONFIG_MAPS}?watch=1")
    await api.config_map("first")
    assert await events.take(1) == [("ADDED", "first")]
    for number in range(40):
        await api.config_map(f"c{number}")
    with anyio.fail_after(5):
        assert await events.rest() == []


async def test_objects_enter_and_leave_a_selection(api: Any) -> None:
    await api.config_map("in", labels={"a": "1"})
    await api.config_map("out")
    events = await api.watch(f"{CONFIG_MAPS}?watch=1&labelSelector=a%3D1")
    assert await events.take(1) == [("ADDED", "in")]
    await api.call("PATCH", f"{CONFIG_MAPS}/out", {"data": {"x": "1"}})
    await api.call("PATCH", f"{CONFIG_MAPS}/out", {"metadata": {"labels": {"a": "1"}}})
    await api.call("PATCH", f"{CONFIG_MAPS}/in", {"metadata": {"labels": {"a": "2"}}, "data": {"x": "1"}})
    await api.call("DELETE", f"{CONFIG_MAPS}/in")
    assert await events.take(1) == [("ADDED", "out")]
    gone = await events.next()
    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["labels"] == {"a": "1"}, "the object as it was while it matched"
    assert "data" not in gone["object"]
    changed = await api.config_map("later", labels={"a": "1"})
    assert int(gone["object"]["metadata"]["resourceVersion"]) < int(changed["metadata"]["resourceVersion"])
    assert await events.take(1) == [("ADDED", "later")]
    await events.close()


async def test_a_watch_of_one_name_sees_only_that(api: Any) -> None:
    events = await api.watch(f"{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Db")
    for name in ("a", "b"):
        await api.config_map(name)
    assert await events.take(1) == [("ADDED", "b")]
    await events.close()


async def test_a_watch_of_a_namespace_is_not_one_of_its_neighbour(api: Any) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": "default-2"}})
    events = await api.watch(f"{CONFIG_MAPS}?watch=1")
    await api.create("/api/v1/namespaces/default-2/configmaps", {"metadata": {"name": "other"}})
    await api.config_map("mine")
    assert await events.take(1) == [("ADDED", "mine")]
    await events.close()


async def test_a_streaming_list_ends_with_a_marked_bookmark_and_goes_on(api: Any) -> None:
    await api.config_map("a")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = await api.watch(f"{CONFIG_MAPS}?{query}")
    assert await events.take(1) == [("ADDED", "a")]
    mark = await events.next()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "ConfigMap"
    assert mark["object"]["metadata"] == {
        "resourceVersion": str(api.world.store.version),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }
    await api.config_map("b")
    assert await events.take(1) == [("ADDED", "b")]
    await events.close()


async def test_streaming_lists_are_refused_where_the_emulated_version_has_none(api: Any) -> None:
    api.world.minor = 33
    status, answer = await api.call(
        "GET", f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    )
    assert (status, answer["reason"]) == (422, "Invalid")


async def test_send_initial_events_false_begins_now(api: Any) -> None:
    await api.config_map("a")
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    events = await api.watch(f"{CONFIG_MAPS}?{query}&timeoutSeconds=1")
    with anyio.fail_after(10):
        assert await events.rest() == []


async def test_a_watch_ends_in_time_with_a_bookmark_before(api: Any) -> None:
    await api.config_map("a")
    version = api.world.store.version
    events = await api.watch(
        f"{CONFIG_MAPS}?watch=1&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion={version}"
    )
    with anyio.fail_after(10):
        found = await events.rest()
    assert [event["type"] for event in found] == ["BOOKMARK"]
    assert found[0]["object"]["metadata"] == {"resourceVersion": str(version)}


async def test_no_bookmarks_come_unasked(api: Any) -> None:
    events = await api.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
    with anyio.fail_after(10):
        assert await events.rest() == []


@pytest.mark.parametrize("view", ["Table", "PartialObjectMetadata"])
async def test_events_come_in_the_form_asked_for(api: Any, view: str) -> None:
    events = await api.watch(f"{CONFIG_MAPS}?watch=1", accept=f"application/json;as={view};v=v1;g=meta.k8s.io")
    await api.config_map("a", data={"x": "1"})
    await api.config_map("b")
    first, second = await events.next(), await events.next()
    assert first["object"]["kind"] == view
    if view == "Table":
        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:2] == ["b", 0]
    else:
        assert "data" not in first["object"]
        assert second["object"]["metadata"]["name"] == "b"
    await events.close()


async def test_all_watchers_see_the_same_order_and_share_the_bytes(api: Any) -> None:
    streams = [await api.watch(f"{CONFIG_MAPS}?watch=1") for _ in range(3)]
    for number in range(5):
        await api.config_map(f"c{number}")
        await api.call("PATCH", f"{CONFIG_MAPS}/c{number}", {"data": {"x": "1"}})
    seen = [await events.take(10) for events in streams]
    assert seen[0] == seen[1] == seen[2]
    frames = api.world.store.collection("configmaps").changes[-1].frames
    assert len(frames) == 1
    for events in streams:
        await events.close()


async def test_watches_end_when_the_crd_changes_its_schema_or_goes(widgets: Any) -> None:
    events = await widgets.watch(f"{WIDGETS}?watch=1")
    status, _ = await widgets.call(
        "PATCH", CRD, [{"op": "add", "path": "/spec/names/shortNames", "value": ["wd"]}],
        content_type="application/json-patch+json",
    )  # fmt: skip
    assert status == 200
    with anyio.fail_after(5):
        assert await events.rest() == []
    events = await widgets.watch(f"{WIDGETS}?watch=1")
    await widgets.call("DELETE", CRD)
    with anyio.fail_after(5):
        assert await events.rest() == []
    assert (await widgets.respond("GET", f"{WIDGETS}?watch=1")).status == 404


async def test_a_hook_sees_each_event_and_may_drop_it_or_end_the_stream(api: Any) -> None:
    async def censor(call: Any, frame: bytes) -> bytes | None:
        if b'"drop"' in frame:
            return b""
        return None if b'"end"' in frame else frame

    api.world.hooks.watch.append(censor)
    events = await api.watch(f"{CONFIG_MAPS}?watch=1")
    for name in ("a", "drop", "b", "end", "c"):
        await api.config_map(name)
    with anyio.fail_after(5):
        assert [event["object"]["metadata"]["name"] for event in await events.rest()] == ["a", "b"]


async def test_the_deprecated_watch_prefix_still_works(api: Any) -> None:
    events = await api.watch("/api/v1/watch/namespaces/default/configmaps")
    await api.config_map("a")
    assert await events.take(1) == [("ADDED", "a")]
    await events.close()


async def test_yaml_cannot_be_streamed(api: Any) -> None:
    response = await api.respond("GET", f"{CONFIG_MAPS}?watch=1", accept="application/yaml")
    assert (response.status, response.content_type) == (406, "application/yaml")
    assert b"only the following media types are accepted" in response.body
