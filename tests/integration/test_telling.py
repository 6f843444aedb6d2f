"""What was told to the outside is told again when it has changed, and not otherwise, over crashes and restarts."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kopylite import Context, Kind, Unstructured, tell
from kopylite.client import Client
from kopylite.errors import UsageError
from kopylite.reconcile import Environment, Request
from kopylite.testing import VirtualClock

CONFIG_MAP, NAME = Kind("v1", "ConfigMap"), "example.com/dns"


class Outside:
    def __init__(self) -> None:
        self.heard = 0
        self.broken = False

    async def send(self) -> None:
        if self.broken:
            raise OSError("no route")
        self.heard += 1


def context(client: Client, clock: VirtualClock) -> Context:
    return Context(Environment("test", client, clock=clock), Request("", "a"))


async def made(client: Client, namespace: str) -> Unstructured:
    metadata = {"name": "a", "namespace": namespace, "annotations": {"other.example.com/x": "theirs"}}
    return await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))


async def test_only_a_change_is_told_and_others_annotations_stay(client: Client, namespace: str) -> None:
    outside, ctx = Outside(), context(client, VirtualClock())
    obj = await made(client, namespace)
    assert await tell(ctx, obj, NAME, {"a": 1, "b": [2]}, outside.send)
    stored = await client.get(CONFIG_MAP, obj)
    assert stored.annotations["other.example.com/x"] == "theirs"
    assert not await tell(ctx, stored, NAME, {"b": [2], "a": 1}, outside.send)
    assert await tell(ctx, stored, NAME, {"a": 2, "b": [2]}, outside.send)
    assert outside.heard == 2


async def test_what_failed_is_told_again_and_a_crash_before_the_note_repeats_it(client: Client, namespace: str) -> None:
    outside, ctx = Outside(), context(client, VirtualClock())
    obj = await made(client, namespace)
    outside.broken = True
    with pytest.raises(OSError, match="no route"):
        await tell(ctx, obj, NAME, "x", outside.send)
    outside.broken = False
    assert await tell(ctx, await client.get(CONFIG_MAP, obj), NAME, "x", outside.send)
    # A process that ended between the two reads the object as it was before.
    assert await tell(ctx, obj, NAME, "x", outside.send)
    assert outside.heard == 2


async def test_an_object_made_anew_or_with_a_copied_or_broken_note_is_told(client: Client, namespace: str) -> None:
    outside, ctx = Outside(), context(client, VirtualClock())
    obj = await made(client, namespace)
    await tell(ctx, obj, NAME, "x", outside.send)
    note = (await client.get(CONFIG_MAP, obj)).annotations[NAME]
    await client.delete(CONFIG_MAP, obj)
    anew = await made(client, namespace)
    for text in (note, "no json", '{"hash": 5}', '{"hash": "a", "time": "2026-01-01T00:00:00"}', ""):
        anew = await client.patch(anew, {"metadata": {"annotations": {NAME: text}}})
        assert await tell(ctx, anew, NAME, "x", outside.send)
        anew = await client.get(CONFIG_MAP, anew)
    assert not await tell(ctx, anew, NAME, "x", outside.send)


async def test_it_may_be_told_again_after_a_time(client: Client, namespace: str) -> None:
    outside, clock = Outside(), VirtualClock()
    obj = await made(client, namespace)
    moments = [0.0, 30.0, 61.0]
    base = clock.now()
    told = []
    for moment in moments:
        ctx = context(client, cast("VirtualClock", Moved(base, moment)))
        told.append(await tell(ctx, obj, NAME, "x", outside.send, again_after=60))
        obj = await client.get(CONFIG_MAP, obj)
    assert told == [True, False, True]


class Moved:
    def __init__(self, base: Any, seconds: float) -> None:
        from datetime import timedelta

        self._now = base + timedelta(seconds=seconds)

    def now(self) -> Any:
        return self._now


async def test_what_cannot_be_kept_is_refused_before_anything_is_sent(client: Client, namespace: str) -> None:
    outside, ctx = Outside(), context(client, VirtualClock())
    with pytest.raises(UsageError, match="not stored yet"):
        await tell(
            ctx, Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "a"}), NAME, "x", outside.send
        )
    with pytest.raises(UsageError, match="no JSON form"):
        await tell(ctx, await made(client, namespace), NAME, object(), outside.send)
    assert outside.heard == 0
