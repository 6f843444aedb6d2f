from __future__ import annotations

import asyncio
import json

import anyio
import pytest

from kopylite.cache import Store
from kopylite.errors import StreamBroken
from kopylite.objects import Kind, ObjectKey
from tests.unit.cache.things import thing

KEY = ObjectKey("ns", "a")


def test_the_same_state_again_is_no_change() -> None:
    store = Store()
    assert len(store.put(thing(version=1))) == 1
    assert store.put(thing(version=1)) == ()


def test_states_without_versions_are_always_changes() -> None:
    store = Store()
    store.put(thing(version=""))
    (delta,) = store.put(thing(version=""))
    assert delta.old is not None


def test_another_uid_is_a_delete_and_a_create() -> None:
    store = Store()
    first, second = thing(version=1, uid="u1"), thing(version=2, uid="u2")
    store.put(first)
    gone, come = store.put(second)
    assert (gone.old, gone.new) == (first, None)
    assert (come.old, come.new) == (None, second)


def test_a_delete_carries_the_last_word_of_the_server() -> None:
    store = Store()
    store.put(thing(version=1))
    last = thing(version=2)
    (delta,) = store.remove(KEY, last)
    assert delta.old is last
    assert store.remove(KEY, last) == ()


def test_a_delete_of_another_incarnation_carries_the_one_that_was_stored() -> None:
    store = Store()
    stored = thing(version=1, uid="u1")
    store.put(stored)
    (delta,) = store.remove(KEY, thing(version=2, uid="u2"))
    assert delta.old is stored


def test_a_list_may_be_kept_while_the_store_changes() -> None:
    store = Store()
    store.put(thing("a"))
    held = store.list()
    store.remove(KEY)
    assert [record.name for record in held] == ["a"]


def test_an_equal_state_is_shared_with_what_is_stored() -> None:
    store = Store()
    stored = thing(version=1)
    store.put(stored)
    assert store.known(thing(version=1)) is stored
    newer = thing(version=2)
    assert store.known(newer) is newer


# Reading your own writes


async def test_a_write_is_seen_at_once_when_the_store_has_it_or_is_past_it() -> None:
    store = Store()
    store.put(thing(version=10))
    assert await store.wait_newer(KEY, "10", 0.0)
    store.advance("20")
    assert await store.wait_newer(ObjectKey("ns", "deleted"), "15", 0.0)


async def test_a_write_is_waited_for_until_its_event_or_a_later_bookmark_comes() -> None:
    store = Store()
    store.advance("9")
    seen: list[str] = []

    async def wait(version: str) -> None:
        assert await store.wait_newer(KEY, version, 5.0)
        seen.append(version)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "10")
        tasks.start_soon(wait, "100")
        await asyncio.sleep(0)
        store.advance("10")
        await asyncio.sleep(0.001)
        assert seen == ["10"], "10 is less than 100, and more than 9"
        store.advance("101")
    assert seen == ["10", "100"]


async def test_waiting_ends_with_its_limit() -> None:
    store = Store()
    assert not await store.wait_newer(KEY, "10", 0.01)
    assert not store._waiters


def test_what_the_server_lists_is_searched_by_the_same_index_functions() -> None:
    store = Store()
    store.add_index("by-name", lambda record: [record.name[:1]])
    names = ("ann", "abe", "bob")
    bodies = [
        json.dumps({"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"team": name[-1]}}).encode()
        for name in names
    ]
    kind = Kind("v1", "ConfigMap")
    assert [json.loads(body)["metadata"]["name"] for body in store.find_in(kind, bodies, {"by-name": "a"})] == [
        "ann",
        "abe",
    ]
    [found] = store.find_in(kind, bodies, {"by-name": "a", "spec.team": "e"})
    assert json.loads(found) | {"metadata": {}, "spec": {}} == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {},
        "spec": {},
    }


@pytest.mark.parametrize("odd", [b"null", b'{"metadata":{}}', b'{"kind":"Secret","metadata":{"name":"a"}}'])
def test_what_is_no_object_of_the_kind_is_a_broken_answer_of_a_list_by_an_index(odd: bytes) -> None:
    with pytest.raises(StreamBroken, match=r"not a list of ConfigMap\.v1"):
        Store().find_in(Kind("v1", "ConfigMap"), [odd], {"spec.team": "e"})


def test_an_index_at_which_no_object_has_a_value_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.put(thing(spec={"id": "a"}))
    with caplog.at_level("INFO", logger="kopylite.cache"):
        for _ in range(3):
            assert store.list(index={"spec.idd": "a"}) == []
            assert len(store.list(index={"spec.id": "a"})) == 1
    assert caplog.messages == ["list by the index 'spec.idd': no object has a value there yet; is it spelt rightly?"]


def test_nothing_is_kept_of_a_namespace_without_objects() -> None:
    store = Store()
    store.add_index("kind", lambda record: ["thing"])
    for number in range(3):
        store.put(thing("a", namespace=f"n{number}"))
        store.remove(ObjectKey(f"n{number}", "a"))
    assert not store._indexer.find("kind", "thing", ""), "nor in an index"
    assert (store.names(), dict(store._spaces), len(store), store.body_bytes) == ({}, {}, 0, 0)
