"""Injection: carries out the faults of a plan on a world, while the scenario plays."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kopylite.apiserver.request.request import HttpRequest, Response, parse_target
from kopylite.apiserver.world import Disconnect
from kopylite.devcluster.faults import refusal
from kopylite.errors import ApiError, KopyliteError
from kopylite.objects import Kind, Unstructured, key_of, kind_of
from kopylite.reconcile import Request
from kopylite.reconcile.context import RUNNING
from kopylite.reconcile.effects import EffectCall
from kopylite.sweep.guests import has_guest, with_guest, without_guest
from kopylite.sweep.plans import FaultPlan, Spot
from kopylite.sweep.scene import Director, Scene, named
from kopylite.sweep.states import DATA_KEY, HOLD, NOTE, is_controlled, objects_of
from kopylite.sweep.trace import OPERATOR, Point, TraceEntry
from kopylite.sweep.world import SweepWorld

# How long events are late, in virtual seconds: longer than a client waits for its own write.
LATE_SECONDS = 20.0


class Injection(Director):
    """One plan at work.

    Attributes:
        struck: the faults that have happened.
        cut_at: the write, with the user's lines, at which the last one did.
        phase: what the operator writes now counts as this: "" or "rerun".
        lost: what other writers left and is gone.
        recreated: steps in which an object was created anew after its deletion: nothing is compared from there.
    """

    def __init__(self, world: SweepWorld, plan: FaultPlan) -> None:
        self.world = world
        self.plan = plan
        self.struck: list[Spot] = []
        self.cut_at: TraceEntry | None = None
        self.phase_writes: list[TraceEntry] = []
        self.lost: list[str] = []
        self.recreated: list[int] = []
        self._notes: list[tuple[Kind, Any, str, str]] = []
        self._guests: list[tuple[Unstructured, str]] = []
        self._holds: list[tuple[Kind, Any, str]] = []
        self._effects = 0
        self._late_until = 0.0
        world.at_write = self._at_write
        world.after_write = self._after_write
        world.on_effect = self._on_effect
        world.server.world.hooks.watch.append(self._on_event)
        self.events: dict[int, int] = {}

    def _spots(self, fault: str, *hows: str) -> list[Spot]:
        return [s for s in self.plan.spots if s.fault == fault and (not hows or s.how in hows) and s not in self.struck]

    def _strike(self, spot: Spot, entry: TraceEntry | None = None, text: str = "") -> None:
        self.struck.append(spot)
        self.cut_at = entry or self.cut_at
        self.world.note("fault", "fault", text or str(spot))

    # At the operator's writes

    async def _at_write(self, point: Point, entry: TraceEntry, request: HttpRequest) -> Response | None:
        """Before a write has happened; a Response refuses it."""
        for spot in self._at(point):
            if spot.fault == "recreate" and spot.how == "before":
                self._strike(spot, entry)
                await self._recreate_all()
            elif spot.fault == "writer" and spot.how == "note":
                self._strike(spot, entry)
                await self._leave_note(request)
            elif spot.fault == "writer" and spot.how == "list":
                self._strike(spot, entry, f"somebody else adds to {spot.path}")
                await self._add_guest(request, spot.path)
            elif spot.fault == "refused":
                self._strike(spot, entry, f"the write is refused with {spot.number}")
                return refusal(spot.number, 1 if spot.number == 429 else None)
            elif spot.fault == "stale" and spot.how == "restart":

                def only(request: HttpRequest) -> bool:
                    return RUNNING.get() is None

                self.world.faults.serve_stale(LATE_SECONDS, agent=self.world.agent, only=only)
        return None

    async def _after_write(self, point: Point, entry: TraceEntry, response: Response) -> None:
        """It has happened, and the operator does not know. May raise Disconnect."""
        for spot in self._at(point):
            if response.status >= 300:
                continue
            if spot.fault == "crash":
                self.struck.append(spot)
                self._crash(entry)
            elif spot.fault == "response":
                self._strike(spot, entry, "the answer is lost")
                raise Disconnect
            elif spot.fault == "recreate" and spot.how == "after":
                self._strike(spot, entry)
                await self._recreate_all()
            elif spot.fault == "stale" and spot.how == "restart":
                self.struck.append(spot)
                self._crash(entry)
            elif spot.fault == "stale":
                self._strike(spot, entry, f"events come {LATE_SECONDS:.0f} s late from here on")
                self._late_until = self.world.clock.monotonic() + LATE_SECONDS

    def _at(self, point: Point) -> list[Spot]:
        return [spot for spot in self.plan.spots if spot.point == point and spot not in self.struck]

    def _crash(self, entry: TraceEntry | None) -> None:
        self.cut_at = entry or self.cut_at
        self.world.crash("the operator crashes")

    async def _recreate_all(self) -> None:
        """What people made, deleted and made anew; in a step that deletes it, made anew as soon as it is gone."""
        scene, primary = self.scene, self.world.primary()
        if scene.deleted:
            self.recreated.append(self.world.step)
        for manifest in list((scene.deleted or scene.manifests).values()):
            kind, key = named(manifest)
            if (kind.api_version, kind.kind) not in primary:
                continue
            stored = await scene.client.live.find(kind, key.name, namespace=key.namespace)
            if stored is not None and stored.metadata.get("finalizers") and self.world.tasks is not None:
                # It goes when the operator lets it go, which waits for the answer to this very write.
                self.world.tasks.start_soon(scene.recreate, dict(manifest))
                await self.world.clock.sleep(0.05)
            else:
                await scene.recreate(manifest)

    async def _stored(self, request: HttpRequest) -> Unstructured | None:
        """The object that is about to be written."""
        target = parse_target(request)
        resource = self.world.server.world.registry.find(target.group, target.version, target.resource)
        if resource is None:
            return None
        kind = Kind(resource.api_version, resource.kind, resource.plural, resource.namespaced)
        return await self.scene.client.live.find(kind, target.name, namespace=target.namespace)

    async def _add_guest(self, request: HttpRequest, path: str) -> None:
        """Another writer adds an element to a list in the object that is about to be written."""
        stored = await self._stored(request)
        changed = with_guest(stored, path) if stored is not None else None
        if stored is None or changed is None:
            return
        with suppress(ApiError):
            await self.scene.client.update(Unstructured(changed))
            self._guests.append((stored, path))

    async def _see_guests_off(self) -> None:
        """What another writer added has to be there as long as the object is; then it takes it away."""
        for stored, path in self._guests:
            kind = kind_of(stored)
            now = await self.scene.client.live.find(kind, stored.name, namespace=stored.namespace)
            if now is None or now.uid != stored.uid:
                continue
            if not has_guest(now, path):
                field = path[1:].replace("/", ".")
                self.lost.append(f"what somebody else added to {field} of {kind.kind} {key_of(stored)}")
            await self.scene.client.update(Unstructured(without_guest(now, path)))
        if self._guests:
            self._guests.clear()
            await self._rest_again()

    async def _leave_note(self, request: HttpRequest) -> None:
        """Another writer changes something else in the object that is about to be written."""
        stored, target = await self._stored(request), parse_target(request)
        if stored is None:
            return
        kind = kind_of(stored)
        controlled = is_controlled(stored)
        patch: dict[str, Any] = {"metadata": {"annotations": {NOTE: "somebody's"}}}
        # One key can be all that the operator knows of; with more, it is one of several writers.
        if kind.kind in ("ConfigMap", "Secret") and not controlled and len(stored.get("data") or {}) > 1:
            patch["data"] = {DATA_KEY: "bm90ZQ=="}
        await self.scene.client.patch(kind, target.name, patch, type="merge", namespace=target.namespace)
        if not controlled:
            self._notes.append((kind, target, stored.uid, "data" if "data" in patch else ""))

    # At effects

    def _on_effect(self, entry: TraceEntry, call: EffectCall) -> bool:
        """Whether the operator crashes after this call."""
        self._effects += 1
        for spot in self._spots("effect"):
            if spot.number == self._effects:
                self.struck.append(spot)
                self.cut_at = entry
                return True
        return False

    # At events

    async def _on_event(self, call: Any, event: bytes) -> bytes | None:
        if not call.request.agent.startswith(self.world.agent):
            return event
        step = self.world.step
        self.events[step] = number = self.events.get(step, 0) + 1
        for spot in self._spots("watch"):
            if (spot.step, spot.number) == (step, number):
                self._strike(spot, text=f"the watch of {call.resource.plural} is cut")
                if spot.how == "compacted":
                    self.world.faults.compact()
                return None
        if (left := self._late_until - self.world.clock.monotonic()) > 0:
            await self.world.clock.sleep(left)
        return event

    # Between steps

    scene: Scene

    async def before_step(self, scene: Scene) -> None:
        self.scene = scene
        step = self.world.step
        if any(spot.step == step and spot.how in ("down", "together") for spot in self._spots("missed")):
            self.world.note("fault", "fault", "the operator is down")
            self.world.stop_operator()
        for spot in self._spots("writer", "finalizer"):
            if spot.step == step:
                self._strike(spot, text="somebody holds the objects by a finalizer")
                await self._hold()

    async def after_writes(self, scene: Scene) -> bool:
        step = self.world.step
        for spot in self._spots("missed"):
            if spot.how == "together" and spot.step == step:
                return False
            if spot.step + (spot.how == "together") == step:
                self._strike(spot, text="the operator comes up")
                self.world.start_operator()
        return True

    async def after_quiet(self, scene: Scene) -> None:
        step = self.world.step
        await self._check_notes()
        await self._see_guests_off()
        if self._holds:
            await self._let_go()
        for spot in self._spots("recreate", "down"):
            if spot.step == step:
                self.world.stop_operator()
                self._strike(spot, text="the operator is down, and objects are deleted and created anew")
                await self._recreate_all()
                self.world.start_operator()
                await self._rest_again()
        for spot in self.plan.spots:
            if spot.fault == "rerun":
                if spot not in self.struck:
                    self.struck.append(spot)
                for _ in range(spot.number or 1):
                    await self._rerun(spot)

    async def _rest_again(self) -> None:
        """The state after it counts as the state of the step."""
        rested = await self.scene.rest()
        self.scene.states[-1] = objects_of(self.world.server.world.store, self.scene.since) if rested else None

    async def _rerun(self, spot: Spot) -> None:
        """All keys once more, or the operator once more: it must write nothing."""
        before = len(self.world.trace.entries)
        if spot.how == "start":
            self.world.note("fault", "fault", "the operator starts anew, with nothing to do")
            self.world.stop_operator()
            self.world.start_operator()
        elif (life := self.world.incarnation) is not None and life.manager is not None:
            self.world.note("fault", "fault", "all keys run again, with nothing to do")
            for controller in life.manager.controllers:
                for request in self._keys(controller):
                    controller.enqueue(request, "the sweep")
        await self.scene.rest(window=10.0)
        later = self.world.trace.entries[before:]
        self.phase_writes += [e for e in later if e.kind == "change" and e.actor == OPERATOR]
        if spot.how == "run":  # after a start, an apply is sent once, since nobody remembers what was applied
            self.phase_writes += [e for e in later if e.kind == "write" and not e.changed and e.status < 300]

    def _keys(self, controller: Any) -> list[Request]:
        kind = kind_of(controller.spec.kind)
        resource = self.world.resource_of(kind.api_version, kind.kind)
        if resource is None:
            return []
        records = self.world.server.world.store.collection(resource.storage).records.values()
        return [Request(record.namespace, record.name) for record in records]

    async def _hold(self) -> None:
        for manifest in list(self.scene.manifests.values()):
            kind, key = named(manifest)
            try:
                stored = await self.scene.client.live.get(kind, key.name, namespace=key.namespace)
                finalizers = [*stored.metadata.get("finalizers", []), HOLD]
                patch = {"metadata": {"finalizers": finalizers, "resourceVersion": stored.resource_version}}
                await self.scene.client.patch(kind, key.name, patch, namespace=key.namespace, type="merge")
            except ApiError:
                continue
            self._holds.append((kind, key, stored.uid))

    async def _let_go(self) -> None:
        """Take the finalizers of somebody else away; they have to be there still, where the object is deleted."""
        for kind, key, uid in self._holds:
            stored = await self.scene.client.live.find(kind, key.name, namespace=key.namespace)
            if stored is None or stored.uid != uid or HOLD not in stored.metadata.get("finalizers", []):
                self.lost.append(f"the finalizer of somebody else on {kind.kind} {key}")
                continue
            finalizers = [each for each in stored.metadata["finalizers"] if each != HOLD]
            patch = {"metadata": {"finalizers": finalizers, "resourceVersion": stored.resource_version}}
            await self.scene.client.patch(kind, key.name, patch, namespace=key.namespace, type="merge")
        self._holds.clear()
        await self._rest_again()

    async def _check_notes(self) -> None:
        """What somebody else wrote has to be there as long as the object is."""
        for kind, target, uid, data in self._notes:
            try:
                stored = await self.scene.client.live.find(kind, target.name, namespace=target.namespace)
            except KopyliteError:
                continue
            if stored is None or stored.uid != uid:
                continue
            if NOTE not in (stored.metadata.get("annotations") or {}):
                self.lost.append(f"the annotation of somebody else on {kind.kind} {target.name}")
            elif data and DATA_KEY not in (stored.get("data") or {}):
                self.lost.append(f"the data of somebody else in {kind.kind} {target.name}")
        self._notes.clear()
