"""Injection: carries out the faults of a plan on a world, while the scenario plays."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kopylite.apiserver.request.request import HttpRequest, Response, parse_target
from kopylite.apiserver.world import Disconnect
from kopylite.devcluster.faults import Past, refusal
from kopylite.objects import kind_of
from kopylite.reconcile import Request
from kopylite.reconcile.context import RUNNING
from kopylite.reconcile.effects import EffectCall
from kopylite.sweep.edits import Edits
from kopylite.sweep.others import Others
from kopylite.sweep.plans import FaultPlan, Spot
from kopylite.sweep.scene import Director, Scene, StepFailed, named
from kopylite.sweep.states import objects_of
from kopylite.sweep.trace import OPERATOR, Point, TraceEntry
from kopylite.sweep.world import ACTOR, SweepWorld

# How long events are late, in virtual seconds: longer than a client waits for its own write.
LATE_SECONDS = 20.0
# Longer than a client tries a request again.
OUTAGE_SECONDS = 30.0


class Injection(Director):
    """One plan at work.

    Attributes:
        struck: the faults that have happened.
        cut_at: the write, with the user's lines, at which the last one did.
        phase: what the operator writes now counts as this: "" or "rerun".
        others: who else writes.
        edits: who tries other specs.
        recreated: steps in which an object was created anew after its deletion: nothing is compared from there.
    """

    def __init__(self, world: SweepWorld, plan: FaultPlan) -> None:
        self.world = world
        self.plan = plan
        self.struck: list[Spot] = []
        self.cut_at: TraceEntry | None = None
        self.phase_writes: list[TraceEntry] = []
        self.others = Others(world)
        self.edits = Edits(world, self.others)
        self._early = -1
        self._before: Past | None = None
        self.recreated: list[int] = []
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
                await self.others.leave_note(request)
            elif spot.fault == "writer" and spot.how == "list":
                self._strike(spot, entry, f"somebody else adds to {spot.path}")
                await self.others.add_guest(request, spot.path)
            elif spot.fault == "refused":
                self._strike(spot, entry, f"the write is refused with {spot.number}")
                return refusal(spot.number, 1 if spot.number == 429 else None)
            elif spot.fault == "meanwhile":
                if await self._come_early(spot.step + 1):
                    self._strike(spot, entry)
            elif spot.fault == "leader":
                self._strike(spot, entry, "another instance takes over while this write is on its way")
                assert self.world.tasks is not None
                self.world.tasks.start_soon(self._arrive, request, point)
                self.world.crash("the old instance is cut off")
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

    async def _come_early(self, step: int) -> bool:
        """Do what the next step does. Whether that could be done."""
        with suppress(StepFailed):
            await self.scene.do(self.scene.steps[step])
            self._early = step
            return True
        return False

    async def _arrive(self, request: HttpRequest, point: Point) -> None:
        """A write arrives late, when another instance has done everything; nobody waits for the answer."""
        await self.world.clock.sleep(LATE_SECONDS)
        entry = self.world.note("write", OPERATOR, f"{point} arrives", point=point)
        token = ACTOR.set(OPERATOR)
        try:
            entry.status = (await self.world.server.core.handle(request)).status
        finally:
            ACTOR.reset(token)

    def _at(self, point: Point) -> list[Spot]:
        return [s for s in self.plan.spots if s.point is not None and s.point.fits(point) and s not in self.struck]

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
        for spot in self._spots("watch", "twice"):
            self._strike(spot, text="from here on each event comes twice")
            self.world.faults.repeat_events(times=None, agent=self.world.agent)
        for spot in self._spots("watch", "cut", "compacted"):
            if (spot.step, spot.number) == (step, number):
                self._strike(spot, text=f"the watch of {call.resource.plural} is cut")
                if spot.how == "compacted":
                    self.world.faults.compact()
                return None
        if (left := self._late_until - self.world.clock.monotonic()) > 0:
            await self.world.clock.sleep(left)
        return event

    # Between steps

    def has_done(self, step: int) -> bool:
        return step == self._early

    scene: Scene

    async def before_step(self, scene: Scene) -> None:
        self.scene = self.others.scene = scene
        step = self.world.step
        if any(spot.step == step for spot in self._spots("stale", "behind")):
            self._before = self.world.faults.past()
        for spot in self._spots("outage"):
            if spot.step == step:
                self._strike(spot, text=f"for {OUTAGE_SECONDS:.0f} s {spot.how} of the operator's requests are refused")
                self._begin_outage(spot.how)
        if any(spot.step == step and spot.how in ("down", "together") for spot in self._spots("missed")):
            self.world.note("fault", "fault", "the operator is down")
            self.world.stop_operator()
        for spot in self._spots("writer", "finalizer"):
            if spot.step == step:
                self._strike(spot, text="somebody holds the objects by a finalizer")
                await self.others.hold()

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
        await self.others.check_notes()
        if await self.others.see_guests_off():
            await self._rest_again()
        if await self.others.let_go():
            await self._rest_again()
        if self._early == step + 1:  # what is there now is of the next step
            self.scene.states[-1] = None
        await self._after_rest(step)
        for spot in self.plan.spots:
            if spot.fault == "rerun":
                if spot not in self.struck:
                    self.struck.append(spot)
                for _ in range(spot.number or 1):
                    await self._rerun(spot)

    async def _after_rest(self, step: int) -> None:
        """The faults that come when the cluster is at rest."""
        for spot in self._spots("children"):
            if spot.step == step and await self.others.delete_child(spot.path):
                self._strike(spot, text=f"somebody deletes {spot.path}")
                await self._rest_again()
        for spot in self._spots("stale", "behind"):
            if spot.step == step:
                self._strike(spot, text="the operator starts anew, and sees what it reconciles as before this step")
                self._serve_before()
                self.world.stop_operator()
                self.world.start_operator()
                await self._rest_again()
        for spot in self._spots("recreate", "down"):
            if spot.step == step:
                self.world.stop_operator()
                self._strike(spot, text="the operator is down, and objects are deleted and created anew")
                await self._recreate_all()
                self.world.start_operator()
                await self._rest_again()
        if specs := [spot for spot in self._spots("specs") if spot.step == step]:
            await self._try_specs(specs)

    async def _try_specs(self, spots: list[Spot]) -> None:
        """What people try in a spec, and take back; nothing that comes later is compared."""

        async def restart() -> None:
            await self._rerun(Spot("rerun", "start"))

        if not await self.edits.begin(self.scene, spots):
            return
        for spot in spots:
            self._strike(spot)
        if await self.edits.play(restart):
            await self._rest_again()
        else:
            self.scene.states[-1] = None
        self.scene.end()

    def _serve_before(self) -> None:
        """The caches of what the operator reconciles begin with what there was before the step; the others do not."""
        found = [self.world.resource_of(*kind) for kind in self.world.primary()]
        names = {(each.group, each.plural) for each in found if each is not None}

        def only(request: HttpRequest) -> bool:
            target = parse_target(request)
            return RUNNING.get() is None and (target.group, target.resource) in names

        self.world.faults.serve_stale(LATE_SECONDS, past=self._before, agent=self.world.agent, only=only)

    def _begin_outage(self, how: str) -> None:
        def only(request: HttpRequest) -> bool:
            reads = how == "all" or (RUNNING.get() is not None and request.method == "GET")
            return reads and request.agent.startswith(self.world.agent)

        fault = self.world.faults.answer(503, times=None, only=only)

        async def end() -> None:
            await self.world.clock.sleep(OUTAGE_SECONDS)
            fault.remove()
            # Nothing was at rest meanwhile; what was not reached is tried again within half a minute.
            self.world.last_write = self.world.clock.monotonic()

        assert self.world.tasks is not None
        self.world.tasks.start_soon(end)

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
        # What people made may be gone since: the operator deletes it, say.
        made = [manifest["metadata"] for (_, name, _, _), manifest in self.scene.manifests.items() if name == kind.kind]
        keys = [Request(record.namespace, record.name) for record in records]
        return list(dict.fromkeys([*keys, *(Request(each.get("namespace", ""), each["name"]) for each in made)]))
