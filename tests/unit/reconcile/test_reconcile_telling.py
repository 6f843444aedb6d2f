"""What was told is kept in the object; on a control plane: tests/integration/test_telling.py."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.errors import UsageError
from kopylite.objects import Unstructured
from kopylite.reconcile import Context
from kopylite.reconcile.telling import tell

NAME = "example.com/dns"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)


@dataclass
class World:
    """An object, its server, a clock, and whoever is told."""

    obj: Unstructured
    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    heard: int = 0
    patches: list[Any] = field(default_factory=list)
    broken: bool = False

    @property
    def client(self) -> World:
        return self

    def now(self) -> datetime:
        return self.time

    async def patch(self, obj: Unstructured, patch: dict[str, Any]) -> None:
        self.patches.append(patch)
        self.obj = Unstructured({**obj, "metadata": {**obj["metadata"], **patch["metadata"]}})

    async def send(self) -> None:
        if self.broken:
            raise OSError("no route")
        self.heard += 1

    async def tell(self, what: Any, **options: Any) -> bool:
        return await tell(cast("Context", self), self.obj, NAME, what, self.send, **options)


def stored(uid: str = "u", **annotations: str) -> World:
    metadata = {"name": "a", "namespace": "n", "uid": uid, "annotations": annotations}
    return World(Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))


@given(JSON, JSON)
async def test_a_state_is_told_once_and_another_one_again(one: Any, other: Any) -> None:
    world = stored()
    assert await world.tell(one)
    assert not await world.tell(one)
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert await world.tell(other) is not same
    assert world.heard == (1 if same else 2)


async def test_the_order_of_a_map_is_no_difference() -> None:
    world = stored()
    await world.tell({"a": 1, "b": 2})
    assert not await world.tell({"b": 2, "a": 1})


async def test_only_a_hash_is_kept_and_no_other_annotation_is_touched() -> None:
    world = stored(mine="x")
    await world.tell({"password": "hunter2"})
    [patch] = world.patches
    assert list(patch["metadata"]["annotations"]) == [NAME]
    assert "hunter2" not in json.dumps(patch)


async def test_nothing_is_kept_when_telling_fails() -> None:
    world = stored()
    world.broken = True
    with pytest.raises(OSError, match="no route"):
        await world.tell("x")
    assert world.patches == []
    world.broken = False
    assert await world.tell("x")


@pytest.mark.parametrize("again", [60.0, timedelta(minutes=1)])
async def test_it_is_told_again_after_its_time_and_when_a_clock_went_back(again: Any) -> None:
    world = stored()
    await world.tell("x", again_after=again)
    world.time += timedelta(seconds=59)
    assert not await world.tell("x", again_after=again)
    world.time += timedelta(seconds=1)
    assert await world.tell("x", again_after=again)
    world.time -= timedelta(hours=1)
    assert await world.tell("x", again_after=again), "an age below nothing says nothing"
    assert not await world.tell("x")


async def test_the_copy_of_anothers_annotation_counts_for_nothing() -> None:
    world = stored()
    await world.tell("x")
    annotation = world.obj["metadata"]["annotations"][NAME]
    assert await stored("another", **{NAME: annotation}).tell("x")
    assert not await stored("u", **{NAME: annotation}).tell("x")


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"hash":1}', '{"hash":"a","time":"2026-01-01T00:00:00"}'])
async def test_what_cannot_be_relied_on_is_told_anew(text: str) -> None:
    assert await stored(**{NAME: text}).tell("x")


async def test_what_cannot_be_kept_or_compared_is_refused_before_anything_is_sent() -> None:
    unsaved = stored("")
    with pytest.raises(UsageError, match="n/a is not stored yet"):
        await unsaved.tell("x")
    world = stored()
    with pytest.raises(UsageError, match="no JSON form"):
        await world.tell({"a": object()})
    with pytest.raises(UsageError, match="again_after"):
        await world.tell("x", again_after=float("nan"))
    assert (unsaved.heard, world.heard) == (0, 0)
