"""Edits: what people try in the spec of an object, and take back; it has to be as it was then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kopylite.errors import ApiError, Conflict
from kopylite.objects import Kind, Unstructured, kind_of
from kopylite.sweep.others import Others
from kopylite.sweep.plans import KEEPERS, LEFT_OVER, Spot
from kopylite.sweep.scene import Scene
from kopylite.sweep.specs import ALLOWED, contents_of, varied
from kopylite.sweep.states import Objects, is_controlled, objects_of
from kopylite.sweep.trace import OPERATOR, SCENARIO
from kopylite.sweep.world import SweepWorld

# So often a write is tried that conflicts with those of the operator.
TRIES = 10


class Edits:
    """One change of a spec, in one run.

    Attributes:
        unfit: what the changed spec has led to, while it was there.
        remade: what the operator made for it: as it was, and as it was when it had been made anew.
    """

    def __init__(self, world: SweepWorld, others: Others) -> None:
        self.world = world
        self.unfit: list[str] = []
        self.remade: tuple[Objects, Objects] = {}, {}
        self._others = others

    async def begin(self, scene: Scene, spots: Sequence[Spot]) -> bool:
        """Look at the object that is to be changed. Whether it is there, and would change."""
        self._scene = scene
        self._spots = spots
        storage, _, name = spots[0].path.partition(" ")
        plural, _, group = storage.partition(".")
        resource = next((r for r in self.world.server.world.registry if (r.plural, r.group) == (plural, group)), None)
        if resource is None:
            return False
        kind = Kind(resource.api_version, resource.kind, resource.plural, resource.namespaced)
        namespace, _, name = name.rpartition("/")
        found = await scene.client.live.find(kind, name, namespace=namespace)
        if found is None or found.metadata.get("deletionTimestamp"):
            return False
        self._old = found
        self._new = varied(found, [(spot.pointer, spot.value) for spot in spots])
        return self._new != found

    async def play(self, restart: Callable[[], Awaitable[None]]) -> bool:
        """Change it, let the cluster rest, restart the operator, and change it back. Whether that could be done.

        Args:
            restart: starts the operator anew, and awaits that it rests.
        """
        restless = self._scene.restless
        known = len(restless)
        if await self._write(self._new):
            rested = await self._scene.rest()
            trouble = restless[known:]
            if not trouble:
                await restart()
                await self._remake()
            # Where the schema only has nothing against a value, the operator may have.
            elif not rested or all(spot.how == ALLOWED for spot in self._spots):
                self.unfit.append(f"leaves the cluster without rest: {trouble[0]}")
            del restless[known:]
        return await self._write(self._old)

    async def _remake(self) -> None:
        """Delete what the operator made and owns while it is down: from the changed spec alone it makes the same."""
        before = self._state()
        self.world.stop_operator()
        gone = {key for key in self._children(before) if await self._others.delete_child(key)}
        self.world.start_operator()
        if await self._scene.rest() and gone:
            after = self._state()
            both = sorted(gone & after.keys())
            self.remade = {key: before[key] for key in both}, {key: after[key] for key in both}

    def _state(self) -> Objects:
        return objects_of(self.world.server.world.store, self._scene.since)

    def _children(self, state: Objects) -> list[str]:
        """Of the kinds that it owns; without what holds data, is done once, or was changed by people, too."""
        kinds = self.world.owned() - LEFT_OVER - KEEPERS
        made = {entry.key: entry.actor for entry in self.world.trace.changes() if entry.change == "ADDED"}
        theirs = {entry.key for entry in self.world.trace.changes() if entry.actor == SCENARIO}
        return [
            key
            for key, obj in state.items()
            if obj.get("kind") in kinds and is_controlled(obj) and made.get(key) == OPERATOR and key not in theirs
        ]

    async def _write(self, wanted: Mapping[str, Any]) -> bool:
        """Write all that people decide about. Whether the server took it."""
        kind = kind_of(self._old)
        for _ in range(TRIES):
            now = await self._scene.client.live.find(kind, self._old.name, namespace=self._old.namespace)
            if now is None:
                return False
            ours = {name: value for name, value in now.items() if name not in contents_of(now)}
            try:
                with suppress(Conflict):
                    await self._scene.client.update(Unstructured({**ours, **contents_of(wanted)}))
                    return True
            except ApiError as error:
                self.world.note("fault", "fault", f"the server refuses the change: {error}")
                if error.code >= 500:  # not that, but a webhook of the App that cannot take it
                    self.unfit.append(f"is answered: {error}")
                return False
        return False
