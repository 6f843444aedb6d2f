"""Runs: a prepared world, and what one run of a plan in a fork of it was like."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from kopylite.apiserver.storage.store import ObjectStore
from kopylite.boundary import say
from kopylite.devcluster.appcrds import crds_of_app
from kopylite.devcluster.simulator.nodes import create_nodes
from kopylite.devcluster.simulator.workloads import stamp
from kopylite.errors import KopyliteError, UsageError
from kopylite.objects import Unstructured
from kopylite.reconcile.effects import EFFECTS
from kopylite.sweep.clocks import patch_clocks
from kopylite.sweep.injection import Injection
from kopylite.sweep.plans import GENERATIONS, FaultPlan, Spot
from kopylite.sweep.scenario import Scenario
from kopylite.sweep.scene import Scene, StepFailed
from kopylite.sweep.source import AppSource
from kopylite.sweep.states import Objects
from kopylite.sweep.trace import OPERATOR, Trace, TraceEntry
from kopylite.sweep.webhooks import register_webhooks
from kopylite.sweep.world import SweepWorld
from kopylite.testing.clock import VirtualClock

# Virtual seconds without a write until a cluster counts as at rest, where nobody knows better.
FIRST_WINDOW = 900.0
LONGEST = 2 * 3600.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """What there is before the scenario begins: CRDs and nodes.

    Attributes:
        version: of the store then.
    """

    source: AppSource
    scenario: Scenario
    store: ObjectStore
    clock: VirtualClock
    version: int


@dataclass(slots=True)
class SweepRun:
    """What one run was like.

    Attributes:
        states: what there was at each rest; None: it did not rest then, by the plan or at all.
        restless: why it did not come to rest.
        failed: why the scenario could not go on; "" if it could.
        ends: why the operator ended by itself.
        lost: what others had written and is gone.
        idle_writes: what the operator wrote when there was nothing to do.
        struck: the faults that happened.
        cut_at: the operator's write, or call, at which the last one did.
        recreated: the steps in which what was deleted was made anew.
        events: how many events its watches brought, by step.
        reads: the steps in which a reconcile read from the server itself.
        unfit: what a spec that the schema allows has led to, while it was there.
        remade: what was changed for such a spec, and the same when it had been made anew.
        died: the process of the run ended, or was ended, before it was over.
    """

    plan: FaultPlan
    states: list[Objects | None] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
    restless: list[str] = field(default_factory=list)
    failed: str = ""
    ends: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    idle_writes: list[TraceEntry] = field(default_factory=list)
    struck: list[Spot] = field(default_factory=list)
    cut_at: TraceEntry | None = None
    recreated: list[int] = field(default_factory=list)
    events: dict[int, int] = field(default_factory=dict)
    reads: set[int] = field(default_factory=set)
    unfit: list[str] = field(default_factory=list)
    remade: tuple[Objects, Objects] = field(default_factory=lambda: ({}, {}))
    died: str = ""

    @property
    def gap(self) -> float:
        """The longest time between two changes of one step, in virtual seconds."""
        times: dict[int, list[float]] = {}
        for entry in self.trace.entries:
            if entry.kind in ("change", "step") or (entry.kind == "effect" and entry.changed):
                times.setdefault(entry.step, []).append(entry.time)
        return max((b - a for each in times.values() for a, b in itertools.pairwise(each)), default=0.0)


def prepare(source: AppSource, scenario: Scenario) -> Prepared:
    """Make the world that every plan begins in.

    Raises:
        UsageError: a CRD is refused.
        Exception: what the operator's modules raise.
    """
    crds = {crd["metadata"]["name"]: Unstructured(crd) for crd in crds_of_app(source.app, foreign=True)}
    crds |= {crd.name: crd for crd in map(Unstructured, _given(scenario.crds))}
    clock = VirtualClock()
    store = ObjectStore(clock=clock)

    async def main() -> None:
        world = SweepWorld(store, clock, source, simulate=False)
        async with world.lived():
            client = world.client()
            await create_nodes(client, 2, stamp(clock.now()))
            for crd in crds.values():
                try:
                    await client.create(crd)
                except KopyliteError as error:
                    raise UsageError(f"{scenario.name}: CustomResourceDefinition {crd.name}: {error}") from error
            await clock.sleep(5.0)
            await register_webhooks(source.app, client)

    clock.run(main)
    return Prepared(source, scenario, store.fork(), clock, store.version)


def _given(crds: Sequence[object]) -> list[dict[str, object]]:
    from pathlib import Path

    from kopylite.crds.crd import crd_of
    from kopylite.devcluster.cluster import crds_in

    found: list[dict[str, object]] = []
    for crd in crds:
        if isinstance(crd, (str, Path)):
            found += crds_in(Path(crd))
        else:
            found.append(crd_of(crd) if isinstance(crd, type) else dict(crd))  # type: ignore[call-overload]
    return found


def run_plan(prepared: Prepared, plan: FaultPlan, window: float, *, simulate: bool = True) -> SweepRun:
    """Play the scenario with the faults of a plan. Only in a process of its own: it changes the time, and the log."""
    gc.disable()
    clock, run = prepared.clock, SweepRun(plan)
    clock.reseed(plan.seed + 1)
    # Another seed has other times and versions, too: what is made of them differs between the runs without faults.
    clock.advance(plan.seed * 13 % 53)
    patch_clocks(clock, plan.seed)

    async def main() -> None:
        store = prepared.store.fork()
        store.version += plan.seed * 1009 % 10007
        world = SweepWorld(store, clock, prepared.source, simulate=simulate)
        if GENERATIONS in plan.spots:
            world.server.world.first_generation += GENERATIONS.number
        await play(world, prepared.scenario, run, (window, LONGEST, prepared.version))

    clock.run(main)
    return run


async def play(world: SweepWorld, scenario: Scenario, run: SweepRun, limits: tuple[float, float, int]) -> None:
    """Play a scenario with the faults of a plan in a world, and keep what it was like.

    Args:
        limits: window, longest and since of the Scene.
    """
    run.trace = world.trace
    _listen(world)

    async def live() -> None:
        async with world.lived():
            injection = Injection(world, run.plan)
            scene = Scene(world, injection, *limits)
            world.start_operator()
            try:
                await scene.play(scenario)
            except StepFailed as error:
                run.failed = str(error)
            except Exception as error:  # of a scenario that is a function
                run.failed = f"the scenario failed: {say(error)}"
            run.states, run.restless, run.ends = scene.states, scene.restless, world.ends
            run.lost, run.idle_writes, run.events = injection.others.lost, injection.phase_writes, injection.events
            run.reads, run.unfit, run.remade = world.reads, injection.edits.unfit, injection.edits.remade
            run.struck, run.cut_at, run.recreated = injection.struck, injection.cut_at, injection.recreated
            raise _Over

    try:
        await live()
    except BaseExceptionGroup as group:
        if group.subgroup(_Over) is None:
            raise
    except _Over:
        pass


class _Over(Exception):
    """The run is over: nothing that is left in it matters."""


class _Errors(logging.Handler):
    """Keeps what the operator's runs fail with."""

    def __init__(self, world: SweepWorld) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if EFFECTS.get() is None:  # somebody else's
            return
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage() if error is None else f"{record.getMessage()}: {say(error)}"
        self._world.note("error", OPERATOR, text.splitlines()[0][:300])


def _listen(world: SweepWorld) -> None:
    for name in list(logging.root.manager.loggerDict):
        logging.getLogger(name).handlers.clear()
    logging.root.handlers[:] = [_Errors(world)]
    logging.root.setLevel(logging.WARNING)


def begin_process(cpu_seconds: int) -> None:
    """Be a process that ends soon, is silent, and ends by itself if it hangs."""
    import resource

    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (it lasts as long as the process)
