"""Second writers, on a world of a sweep without an operator."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.objects import Kind, Unstructured
from kopylite.sweep.others import Others
from kopylite.sweep.scene import Director, Scene
from kopylite.sweep.source import source_of
from kopylite.sweep.trace import OPERATOR
from kopylite.sweep.world import SweepWorld
from kopylite.testing import VirtualClock
from tests.unit.sweep import operators

ConfigMap = Kind("v1", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"


def a_map(name: str, **metadata: Any) -> Unstructured:
    shared = {"name": name, "namespace": "default", **metadata}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": shared, "data": {"a": "1", "b": "2"}})


def test_others_leave_data_where_they_may_and_see_what_is_lost() -> None:
    clock = VirtualClock()

    async def main() -> None:
        world = SweepWorld(ObjectStore(clock=clock), clock, source_of(operators.twin), simulate=False)
        async with world.lived():
            others = Others(world)
            others.scene = Scene(world, Director(), 45.0, 60.0, 0)
            people, operator = others.scene.client, world.client(OPERATOR)
            await people.create(a_map("shared"))
            await operator.create(a_map("own"))
            for name in ("shared", "own"):
                await others.leave_note(HttpRequest.of("PUT", f"{PATH}/{name}", headers={}, body=b""))
            shared = await people.live.get(ConfigMap, "shared", namespace="default")
            own = await people.live.get(ConfigMap, "own", namespace="default")
            assert sorted(shared["data"].values()) == ["1", "1", "2"]  # what is theirs reads as what is there
            assert own["data"] == {"a": "1", "b": "2"}
            shared["data"] = {"a": "1", "b": "2"}
            await operator.update(shared)
            await others.check_notes()
            assert others.lost == ["the data of somebody else in ConfigMap shared"]

            await people.create(a_map("held", finalizers=["people.example.com/hold"]))
            assert not await others.delete_child("configmaps default/held")
            assert not await others.delete_child("configmaps default/nobody")
            assert await others.delete_child("configmaps default/own")
            assert await people.live.find(ConfigMap, "own", namespace="default") is None

    clock.run(main)
