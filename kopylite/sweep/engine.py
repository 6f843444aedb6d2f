"""Engine: the reference runs, the plans, their verdicts."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from kopylite.clock import SYSTEM_CLOCK
from kopylite.objects import kind_of
from kopylite.sweep.findings import SweepFinding, finding_of, replay_of
from kopylite.sweep.guests import FINALIZERS, grown_lists
from kopylite.sweep.oracles import Defect, Yardstick, judge, learn
from kopylite.sweep.plans import FAULTS, GENERATIONS, FaultGround, FaultPlan, Spot, fewest, plans_of
from kopylite.sweep.pool import Died, Pool
from kopylite.sweep.report import Report
from kopylite.sweep.runs import FIRST_WINDOW, Prepared, SweepRun, prepare, run_plan
from kopylite.sweep.scenario import Scenario
from kopylite.sweep.scene import ref_of
from kopylite.sweep.source import AppSource
from kopylite.sweep.specs import CrdSchemas, schemas_of, varied_objects
from kopylite.sweep.states import general, is_controlled
from kopylite.sweep.trace import OPERATOR, TraceEntry

REFERENCES = 3
# Kinds of what is done once.
ONCE = frozenset({"Job", "Pod"})
CRD_STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to sweep.

    Attributes:
        faults: names of FAULTS.
        budget: seconds of the wall clock for the plans; the reference runs come on top.
        seed: of random numbers, latencies and uuids.
        jobs: processes at the same time.
        plans: only these; empty: all that the faults give.
        progress: told how many plans have run, of how many, and how many findings there are.
        verdict: told of each plan that has run, and what is wrong with it.
    """

    faults: Sequence[str] = tuple(FAULTS)
    budget: float = 60.0
    seed: int = 0
    jobs: int = os.cpu_count() or 1
    plans: Sequence[FaultPlan] = ()
    progress: Callable[[int, int, int], None] = lambda done, total, found: None
    verdict: Callable[[FaultPlan, Defect | None], None] = lambda plan, problem: None


def sweep_source(source: AppSource, scenario: Scenario, settings: Settings) -> Report:
    """Run an operator through a scenario, without faults and with each of them, and say what is wrong.

    Blocks; forks processes.

    Raises:
        UsageError: the scenario's CRDs are refused.
        Exception: what the operator's modules raise when they are imported.
    """
    prepared = prepare(source, scenario)
    gc.collect()
    gc.freeze()
    try:
        return _Sweep(prepared, settings).run()
    finally:
        gc.unfreeze()


class _Sweep:
    def __init__(self, prepared: Prepared, settings: Settings) -> None:
        self._prepared = prepared
        self._settings = settings
        self._simulate = True
        self._report = Report(source=prepared.source.name, scenario=prepared.scenario.name)

    def run(self) -> Report:
        began = SYSTEM_CLOCK.monotonic()
        plans = [FaultPlan((), self._settings.seed + number) for number in range(REFERENCES)]
        plans.append(FaultPlan((GENERATIONS,), self._settings.seed))
        runs: list[SweepRun] = []
        for some in (plans[:1], plans[1:]):  # where the first one fails, the others need not be run
            runs += [self._run(pair) for pair in self._each(some, FIRST_WINDOW)]
            runs.sort(key=lambda run: plans.index(run.plan))
            if problem := no_yardstick(runs):
                self._report.findings.append(self._unfaulted(runs[0], problem))
                return self._ended(began)
        reference = learn(runs[:REFERENCES], runs[REFERENCES])
        self._simulate = reference.simulated
        owns = [each for spec in self._prepared.source.app.controllers for each in spec.owns]
        owned = {kind_of(each.kind).kind for each in owns}
        records = self._prepared.store.collection(CRD_STORAGE).records.values()
        ground = ground_of(reference, self._prepared.scenario, owned, schemas_of(r.decode() for r in records))
        chosen = [*self._settings.plans] or [*plans_of(ground, self._settings.faults, self._settings.seed)]
        self._report.planned = len(chosen)
        self._play(chosen, reference)
        return self._ended(began)

    def _ended(self, began: float) -> Report:
        self._report.seconds = SYSTEM_CLOCK.monotonic() - began
        return self._report

    def _each(
        self, plans: Iterable[FaultPlan], window: float, tick: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[FaultPlan, SweepRun | Died]]:
        pool: Pool[FaultPlan, SweepRun] = Pool(
            partial(_in_fork, self._prepared, window, self._simulate), self._settings.jobs
        )
        return pool.run(plans, tick)

    def _run(self, pair: tuple[FaultPlan, SweepRun | Died]) -> SweepRun:
        plan, result = pair
        return SweepRun(plan, died=result.why) if isinstance(result, Died) else result

    def _play(self, plans: Sequence[FaultPlan], reference: Yardstick) -> None:
        """Run plans until the budget is spent; what one finds is confirmed, and told once."""
        until = SYSTEM_CLOCK.monotonic() + self._settings.budget
        known: dict[tuple[str, str, str], SweepFinding] = {}
        for pair in self._each(plans, reference.window, lambda: SYSTEM_CLOCK.monotonic() < until):
            run = self._run(pair)
            self._report.plans += 1
            problem = judge(run, reference)
            self._settings.verdict(run.plan, problem)
            if problem is not None and problem.signature in known:
                known[problem.signature].others += 1
            elif problem is not None and (confirmed := self._confirmed(run, problem, reference)):
                if confirmed[1].signature in known:  # a part of it, that was enough, has been told
                    known[confirmed[1].signature].others += 1
                else:
                    known[confirmed[1].signature] = finding = self._told(*confirmed, reference)
                    self._report.findings.append(finding)
            self._settings.progress(self._report.plans, len(plans), len(self._report.findings))

    def _confirmed(self, run: SweepRun, problem: Defect, reference: Yardstick) -> tuple[SweepRun, Defect] | None:
        """The same plan once more, or the part of it that is enough; None: the plan alone does not lead to it."""
        if len(run.plan.spots) > 1:
            parts = [FaultPlan((spot,), run.plan.seed) for spot in run.plan.spots]
            for part, result in self._each(parts, reference.window):
                alone = self._run((part, result))
                if (found := judge(alone, reference)) is not None:
                    return alone, found
        enough: dict[tuple[Spot, ...], tuple[SweepRun, Defect]] = {}

        def is_enough(spots: Sequence[Spot]) -> bool:
            [pair] = self._each([replace(run.plan, spots=tuple(spots))], reference.window)
            again = self._run(pair)
            if (other := judge(again, reference)) is None or other.oracle != problem.oracle:
                return False
            enough[tuple(spots)] = again, other
            return True

        if not is_enough(run.plan.spots):
            self._report.unconfirmed += 1
            return None
        return enough[fewest(run.plan.spots, is_enough)]

    def _told(self, run: SweepRun, problem: Defect, reference: Yardstick) -> SweepFinding:
        finding = finding_of(run, problem, reference, "")
        replay = replay_of(run.plan, self._prepared.source.name, self._prepared.scenario.name, finding.sentence)
        return replace(finding, replay=replay)

    def _unfaulted(self, run: SweepRun, problem: Defect) -> SweepFinding:
        reference = Yardstick([], {}, learn([run]).ledger, learn([run]).effects, 0.0, run)
        return self._told(run, problem, reference)


def ground_of(
    reference: Yardstick, scenario: Scenario, owned: Set[str] = frozenset(), schemas: CrdSchemas | None = None
) -> FaultGround:
    """What plans are made from.

    Args:
        owned: the kinds that the operator owns and watches.
        schemas: of the CRDs.
    """
    run, steps = reference.run, len(reference.states)
    entries = run.trace.entries
    lists: list[tuple[TraceEntry, str]] = []
    forcing = frozenset(
        number for number, step in enumerate(scenario.steps) if "finalizers" in (step.patch.get("metadata") or {})
    )
    applied = [step.obj if step.action == "apply" else scenario.steps[0].obj for step in scenario.steps]
    # What the operator made is its own; only in what others made it has to leave room for them.
    made = {e.key for e in run.trace.changes() if e.actor == OPERATOR and e.change == "ADDED"}
    for index, write in enumerate(entries):
        if (
            write.kind != "write"
            or not write.changed
            or write.point is None
            or write.point.verb not in ("update", "patch")
        ):
            continue
        key = f"{write.point.resource} {write.point.name}"
        change = next((e for e in entries[index:] if e.actor == OPERATOR and e.key == key and e.kind == "change"), None)
        if change is not None and change.before and change.after and not is_controlled(change.before):
            paths = grown_lists(change.before, change.after)
            lists += [(_general(write, reference), path) for path in paths if path == FINALIZERS or key not in made]
    return FaultGround(
        writes=[_general(write, reference) for write in run.trace.writes()],
        steps=steps,
        followed=frozenset(range(len(scenario.steps) - 1)) - forcing - {number - 1 for number in forcing},
        deletes=frozenset(e.step for e in entries if e.kind == "step" and e.text.startswith("delete ")),
        gone=frozenset((e.step, general(e.key, reference.names)) for e in run.trace.changes() if e.change == "DELETED"),
        forcing=forcing,
        unrepeatable=next(
            (
                number
                for number, step in enumerate(scenario.steps)
                if ref_of(step.obj) not in map(ref_of, applied[: number + 1]) or step.obj["metadata"].get("finalizers")
            ),
            steps,
        ),
        effects=sum(entry.effect is not None for entry in entries),
        lists=lists,
        events=[run.events.get(step, 0) for step in range(steps)],
        reads=frozenset(run.reads),
        children=[*_children(reference, owned)],
        specs=[*varied_objects(entries, schemas or {})],
    )


def _general(write: TraceEntry, reference: Yardstick) -> TraceEntry:
    """A write at a place that other runs have, too: what is made up in its name differs there."""
    assert write.point is not None, "every write has one"
    name = general(f"{write.point.resource} {write.point.name}", reference.names).partition(" ")[2]
    return replace(write, point=replace(write.point, name=name))


def _children(reference: Yardstick, owned: Set[str]) -> Iterator[tuple[int, str]]:
    """The objects that the operator has made, and owns, at each rest. What runs to its end is not made again."""
    made = {e.key for e in reference.run.trace.changes() if e.actor == OPERATOR and e.change == "ADDED"}
    for step, state in enumerate(reference.states):
        for key in sorted(made & state.keys()):
            if state[key].get("kind") in owned - ONCE and is_controlled(state[key]):
                yield step, key


def _in_fork(prepared: Prepared, window: float, simulate: bool, plan: FaultPlan) -> SweepRun:
    return run_plan(prepared, plan, window, simulate=simulate)


def no_yardstick(runs: Sequence[SweepRun]) -> Defect | None:
    """Why runs without faults are nothing to compare with."""
    for run in runs:
        if run.died:
            return Defect("hang", f"fails: {run.died}")
        if run.ends:
            return Defect("end", f"ends by itself: {run.ends[0]}")
        if run.restless:
            return Defect("rest", f"never comes to rest: {run.restless[0]}")
        if run.failed:
            return Defect("rest", f"cannot be tried, since {run.failed}")
    if not any(run.trace.writes() or any(e.effect for e in run.trace.entries) for run in runs):
        return Defect("idle", "does nothing at all in this scenario: there is nothing to compare with")
    return None
