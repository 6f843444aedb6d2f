"""When the newest state decides about a change, and when an object is taken at its word."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kopylite.client.changes import merge_change
from kopylite.client.recent import RecentWrites
from kopylite.client.stale import look_again
from kopylite.errors import Conflict
from kopylite.objects import Kind, ObjectKey, Unstructured, adapter_of

SHOP = Kind("example.com/v1", "Shop")


def wire(version: str = "7", uid: str = "u", **parts: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "n", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, **parts}


def read(**parts: Any) -> Unstructured:
    return adapter_of(SHOP).decode(json.dumps(wire(**parts)).encode())


@dataclass
class Server:
    """What is stored now, and whether anybody knows that."""

    stored: dict[str, Any] | None
    newer: bool = True
    asked: list[ObjectKey] = field(default_factory=list)

    def knows_newer(self, kind: Kind, key: ObjectKey, version: str) -> bool:
        return self.newer

    async def read(self, kind: Kind, key: ObjectKey) -> bytes | None:
        self.asked.append(key)
        return None if self.stored is None else json.dumps(self.stored).encode()

    async def look(self, obj: Unstructured, patch: dict[str, Any]) -> tuple[Any, Any]:
        return await look_again(obj, merge_change(obj, patch), cast("RecentWrites", self), self.read)


async def test_an_object_that_nothing_newer_is_known_of_is_taken_at_its_word() -> None:
    server, shop = Server(wire("9", spec={"a": 5}), newer=False), read(spec={"a": 1})
    found, change = await server.look(shop, {"spec": {"a": 1}})
    assert found is shop
    assert change.merged is change.stored
    assert server.asked == []


async def test_the_newest_state_decides_about_an_older_object() -> None:
    found, change = await Server(wire("9", spec={"a": 5})).look(read(spec={"a": 1}), {"spec": {"a": 1}})
    assert found["metadata"]["resourceVersion"] == "9"
    assert change.stored["spec"] == {"a": 5}
    assert change.merged["spec"] == {"a": 1}


async def test_the_newest_state_decides_about_an_object_that_was_built_by_hand() -> None:
    server = Server(wire("9", spec={"a": 5}), newer=False)
    built = Unstructured({**wire("", ""), "metadata": {"name": "a", "namespace": "n"}})
    _, change = await server.look(built, {"spec": {"a": 5}})
    assert change.merged is change.stored
    assert server.asked == [ObjectKey("n", "a")]


async def test_an_object_that_is_gone_is_left_to_the_server() -> None:
    shop = read(spec={"a": 1})
    found, change = await Server(None).look(shop, {"spec": {"a": 1}})
    assert found is shop
    assert change.merged is change.stored


async def test_an_object_that_was_made_anew_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="n/a was deleted and made anew since it was read"):
        await Server(wire("9", uid="another")).look(read(), {"spec": {"a": 1}})


@pytest.mark.parametrize(
    ("before", "now", "wanted", "conflict"),
    [
        ([1], [1, 2], [1], True),
        ([1], [1], [1], False),
        ([1], [1, 2], [1, 2], False),
        ([1], [1], [3], False),
    ],
)
async def test_a_list_that_is_replaced_has_to_be_as_it_was_read(
    before: list[int], now: list[int], wanted: list[int], conflict: bool
) -> None:
    server, shop = Server(wire("9", spec={"deep": {"list": now}})), read(spec={"deep": {"list": before}})
    if conflict:
        with pytest.raises(Conflict, match=r"the list spec\.deep\.list was changed since it was read"):
            await server.look(shop, {"spec": {"deep": {"list": wanted}}})
    else:
        _, change = await server.look(shop, {"spec": {"deep": {"list": wanted}}})
        assert change.merged["spec"]["deep"]["list"] == wanted


async def test_a_list_at_the_version_that_was_read_is_not_compared() -> None:
    _, change = await Server(wire("7", spec={"list": [1, 2]})).look(read(spec={"list": [1]}), {"spec": {"list": [1]}})
    assert change.merged["spec"] == {"list": [1]}
