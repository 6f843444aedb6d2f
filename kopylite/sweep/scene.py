"""Scene: where a scenario plays: what people may do, and how the cluster comes to rest after it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio

from kopylite.client import Client
from kopylite.errors import Conflict, KopyliteError, NotFound
from kopylite.objects import Kind, ObjectKey, Unstructured
from kopylite.sweep.scenario import Scenario, Step
from kopylite.sweep.states import Objects, bare, differences, encoded, objects_of
from kopylite.sweep.trace import OPERATOR, SCENARIO, TraceEntry
from kopylite.sweep.world import SweepWorld

Ref = tuple[str, str, str, str]
# Between two looks at the cluster, in virtual seconds.
LOOK_SECONDS = 1.0
# More than this between two rests is a loop.
MOST_ENTRIES = 1500
MOST_RUNS = 5000


class StepFailed(KopyliteError):
    """The server refused what a step asked for."""


class Director:
    """What a plan does beside the scenario: nothing. See `injection`."""

    async def before_step(self, scene: Scene) -> None: ...
    async def after_writes(self, scene: Scene) -> bool:
        """Returns whether the cluster shall come to rest now; False: the next step follows at once."""
        return True

    async def after_quiet(self, scene: Scene) -> None: ...
    def has_done(self, step: int) -> bool:
        """Whether a step came early."""
        return False


class Scene:
    """What a scenario sees of the world.

        async def scenario(scene):
            await scene.apply({"apiVersion": "example.com/v1", "kind": "Thing", ...})
            await scene.quiet()

    Attributes:
        client: of the people, with every right.
        states: what the cluster held at each rest; None where it did not rest.
        restless: why it did not come to rest.
        manifests: what people want of each object now.
        deleted: what they wanted of those that they deleted in this step.
        since: the version of what was there before the scenario.
        steps: of the scenario; none, if it is a function.
    """

    def __init__(self, world: SweepWorld, director: Director, window: float, longest: float, since: int) -> None:
        self.world = world
        self.client: Client = world.client()
        self.states: list[Objects | None] = []
        self.restless: list[str] = []
        self.manifests: dict[Ref, dict[str, Any]] = {}
        self.gaps: list[float] = []
        self._director = director
        self._window = window
        self._longest = longest
        self.since = since
        self.steps: Sequence[Step] = ()
        self.deleted: dict[Ref, dict[str, Any]] = {}
        self._scope = anyio.CancelScope()

    async def play(self, scenario: Scenario) -> None:
        """All of it. Raises StepFailed."""
        self.steps = scenario.steps
        with self._scope:
            await self._play(scenario)

    def end(self) -> None:
        """Play no more of the scenario."""
        self._scope.cancel()

    async def _play(self, scenario: Scenario) -> None:
        await self._director.before_step(self)
        if scenario.play is not None:
            await scenario.play(self)
            if self.world.last_write > self._rested_at or not self.states:
                await self.quiet()
            return
        for number, step in enumerate(scenario.steps):
            if not self._director.has_done(number):
                await self.do(step)
            await self.quiet()

    _rested_at = -1.0

    async def do(self, step: Step) -> None:
        """One step, without the rest after it. Raises StepFailed."""
        self.world.note("step", SCENARIO, str(step))
        try:
            if step.action == "apply":
                await self.apply(step.obj)
            elif step.action == "patch":
                await self.patch(step.obj, step.patch)
            else:
                await self.delete(step.obj)
        except KopyliteError as error:
            raise StepFailed(f"step {self.world.step + 1} ({step}): {error}") from error

    async def apply(self, obj: Mapping[str, Any]) -> None:
        """Create an object, or make it so; other fields stay."""
        wanted = copy.deepcopy(dict(obj))
        self.manifests[ref_of(obj)] = wanted
        await self.client.apply(Unstructured(copy.deepcopy(wanted)), force=True)

    async def patch(self, obj: Mapping[str, Any], patch: Mapping[str, Any]) -> None:
        """Send a merge patch for the object that `obj` names."""
        kind, key = named(obj)
        await self.client.patch(kind, key.name, dict(patch), namespace=key.namespace, type="merge")
        if ref_of(obj) in self.manifests:
            _merge(self.manifests[ref_of(obj)], patch)

    async def delete(self, obj: Mapping[str, Any]) -> None:
        """Ask for the deletion of the object that `obj` names."""
        kind, key = named(obj)
        if (manifest := self.manifests.pop(ref_of(obj), None)) is not None:
            self.deleted[ref_of(obj)] = manifest
        await self.client.delete(kind, key.name, namespace=key.namespace)

    async def recreate(self, manifest: Mapping[str, Any]) -> None:
        """Delete an object and create it anew under its name, as soon as it is gone; limited to a minute."""
        kind, key = named(manifest)
        old = await self.client.live.find(kind, key.name, namespace=key.namespace)
        if old is not None:
            with suppress(NotFound, Conflict):  # somebody was faster
                await self.client.delete(kind, key.name, namespace=key.namespace, uid=old.uid)
        for _ in range(600):
            now = await self.client.live.find(kind, key.name, namespace=key.namespace)
            if now is None:
                self.world.note("fault", "fault", f"{kind.kind} {key} is created anew, with another uid")
                await self.client.create(Unstructured(copy.deepcopy(dict(manifest))))
                return
            if old is not None and now.uid != old.uid:
                return
            await self.world.clock.sleep(0.1)

    async def quiet(self) -> None:
        """Wait until the cluster rests: nothing was written for long, and no reconcile has anything to do.

        In virtual time. What it holds then is compared with the run without faults.
        """
        if await self._director.after_writes(self):
            rested = await self.rest()
            self.states.append(objects_of(self.world.server.world.store, self.since) if rested else None)
            await self._director.after_quiet(self)
        else:
            self.states.append(None)
        self.world.step += 1
        self.deleted.clear()
        await self._director.before_step(self)

    async def rest(self, window: float | None = None) -> bool:
        """Whether the cluster came to rest, which is awaited for the longest time that is allowed."""
        world, began = self.world, self.world.clock.monotonic()
        window = self._window if window is None else window
        entries, runs = len(world.trace.entries), world.runs
        while world.clock.monotonic() - began < self._longest:
            await world.clock.sleep(LOOK_SECONDS)
            if len(world.trace.entries) - entries > MOST_ENTRIES or world.runs - runs > MOST_RUNS:
                break
            life, since = world.incarnation, max(world.last_write, began)
            if life is not None and life.synced and not life.busy() and world.clock.monotonic() - since >= window:
                self._rested_at = world.clock.monotonic()
                if (failing := life.failing()) and (why := world.last_error(after=since)):
                    self.restless.append(f"{failing} keys fail again and again: {why}")
                return True
        self.restless.append(_why_restless(world))
        return False


def _why_restless(world: SweepWorld) -> str:
    """What went on until the end."""
    life = world.incarnation
    if life is None or not life.synced:
        waiting = life.manager.waiting() if life is not None and life.manager is not None else world.ends[-1:]
        return f"the operator does not come up: {'; '.join(waiting) or 'nobody knows why'}"
    changes = [entry for entry in world.trace.changes() if entry.time > world.now - 600]
    if not changes:
        return "a reconcile never ends" if life.busy() else "its reconciles run again and again, and write nothing"
    last = next((entry for entry in reversed(changes) if entry.actor == OPERATOR), changes[-1])
    return f"the {last.actor} {flapping(last)} again and again"


def flapping(change: TraceEntry) -> str:
    """What a change did, for people: "writes status.count of Thing default/a (1 to 2)"."""
    kind, name = (change.after or {}).get("kind", "object"), change.key.partition(" ")[2]
    if change.change != "MODIFIED":
        return f"{'creates' if change.change == 'ADDED' else 'deletes'} {kind} {name}"
    found = differences(bare(change.before), bare(change.after))
    if not found:
        return f"writes {kind} {name}"
    path, before, after = found[0]
    return f"writes {path} of {kind} {name} ({encoded(before, path, kind)} to {encoded(after, path, kind)})"


def ref_of(obj: Mapping[str, Any]) -> Ref:
    metadata = obj["metadata"]
    return obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"]


def named(obj: Mapping[str, Any]) -> tuple[Kind, ObjectKey]:
    metadata = obj["metadata"]
    return Kind(obj["apiVersion"], obj["kind"]), ObjectKey(metadata.get("namespace", ""), metadata["name"])


def _merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
