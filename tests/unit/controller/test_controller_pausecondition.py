"""The condition Paused in the status: what is written when, and what is left as others wrote it."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kopylite.controller.pausecondition import with_condition
from kopylite.controller.pauses import Pauses
from kopylite.objects import Kind, Unstructured
from kopylite.reconcile import Context, Request, Result

THING, KEY = Kind("example.com/v1", "Thing"), Request("ns", "a")
READY = {"type": "Ready", "status": "True"}


class World:
    """One object, whose status is written to."""

    def __init__(self, status: Any = None, *, paused: bool, gone: bool = False, generation: int | None = 7) -> None:
        metadata = {"namespace": "ns", "name": "a"} | ({"generation": generation} if generation is not None else {})
        self.obj = Unstructured(apiVersion="example.com/v1", kind="Thing", metadata=metadata)
        if status is not None:
            self.obj["status"] = status
        self.gone = gone
        self.ran = 0
        self.written: list[Any] = []
        self.paused = paused
        self.parked: list[tuple[Request, int]] = []

    async def find(self, kind: Kind, request: Request) -> Unstructured | None:
        assert (kind, request) == (THING, KEY)
        return None if self.gone else self.obj

    async def patch_status(self, obj: Unstructured, status: dict[str, Any]) -> None:
        assert obj is self.obj
        self.written.append(status)
        before = obj.get("status")
        obj["status"] = {**(before if isinstance(before, dict) else {}), **status}

    async def play(self) -> Result | None:
        world = self

        class Paused:
            def __contains__(self, request: Request) -> bool:
                return world.paused

            def park(self, request: Request, priority: int) -> None:
                world.parked.append((request, priority))

        async def reconcile(ctx: Context, request: Request) -> Result:
            world.ran += 1
            return Result(requeue_after=5)

        moment = datetime.datetime(2026, 11, 30, 17, 0, tzinfo=datetime.UTC)
        ctx = SimpleNamespace(client=self, now=lambda: moment)
        result = await with_condition(reconcile, THING, cast("Pauses", Paused()))(cast("Context", ctx), KEY)
        assert (result is not None) is (self.ran > 0), "what the reconcile says is passed on"
        return result


@pytest.mark.parametrize(
    "status",
    [None, {}, {"conditions": None}, {"conditions": []}, "odd", {"conditions": "odd"}, {"conditions": ["odd"]}],
)
async def test_a_pause_is_told_once_whatever_stands_there_and_no_run_takes_place(status: Any) -> None:
    world = World(status, paused=True)
    await world.play()
    await world.play()
    [written] = world.written
    [condition] = written["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Paused", "True", "Annotation")
    assert condition["lastTransitionTime"] == "2026-11-30T17:00:00Z"
    assert condition["observedGeneration"] == 7
    assert "annotation" in condition["message"]
    assert world.ran == 0
    assert world.parked == [(KEY, 0)] * 2


async def test_the_end_of_a_pause_is_told_once_in_its_place_among_the_conditions_of_others() -> None:
    paused = {"type": "Paused", "status": "True", "reason": "Annotation"}
    world = World({"conditions": [READY, paused, {"type": "Synced"}], "other": 1}, paused=False, generation=None)
    await world.play()
    await world.play()
    [written] = world.written
    assert set(written) == {"conditions"}
    first, condition, last = written["conditions"]
    assert (first, last) == (READY, {"type": "Synced"})
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "NotPaused", "")
    assert "observedGeneration" not in condition
    assert world.ran == 2
    assert world.parked == []


async def test_conditions_of_others_stay_when_a_pause_is_told() -> None:
    world = World({"conditions": [READY]}, paused=True)
    await world.play()
    assert [each["type"] for each in world.written[0]["conditions"]] == ["Ready", "Paused"]


async def test_an_object_that_never_was_paused_has_no_condition_and_one_that_is_gone_is_not_written_to() -> None:
    for world in (World({"conditions": [READY]}, paused=False), World(paused=True, gone=True)):
        await world.play()
        assert world.written == []
    gone = World(paused=False, gone=True)
    await gone.play()
    assert gone.ran == 1, "its reconcile cleans up"
