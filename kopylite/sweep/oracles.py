"""Oracles: what is wrong with a run, next to those without faults."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kopylite.redaction import redact
from kopylite.sweep.plans import GENERATIONS, KEEPERS, LEFT_OVER
from kopylite.sweep.runs import SweepRun
from kopylite.sweep.specs import field_name
from kopylite.sweep.states import (
    MadeUp,
    Masks,
    Objects,
    at_path,
    bare,
    differences,
    encoded,
    general,
    kept_fields,
    made_up_keys,
    made_up_names,
    plural,
    without_made_up,
)
from kopylite.sweep.trace import OPERATOR, SIMULATOR, kinds_in

# Longer than events are late, and than what waits for a watch to come back.
SHORTEST_WINDOW = 45.0
# Faults with which generations are counted otherwise, or are not all seen.
OTHER_GENERATIONS = frozenset({"recreate", "writer", "missed", "meanwhile", "specs"})

Ledger = Counter[tuple[str, str]]
"""How often the operator created or deleted what: by "ADDED" or "DELETED" and an object's key."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that is wrong.

    Attributes:
        oracle: "end", "rest", "state", "ledger", "effect", "lost", "idle", "hang", "spec", "anew".
        text: what the fault leaves or does, to follow "a crash after ... ".
        object: "Kind namespace/name"; "" for none.
        field: its path; "" for the whole object.
        step: of the scenario.
    """

    oracle: str
    text: str
    object: str = ""
    field: str = ""
    step: int = 0

    @property
    def signature(self) -> tuple[str, str, str]:
        """Problems of one are alike."""
        return self.oracle, self.object, self.field


@dataclass(slots=True)
class Yardstick:
    """What is expected of each run, and what varies without any fault.

    Attributes:
        states: at each rest.
        varying: paths by step and key that are not compared; "" for whether it is there at all.
        ledger: the most that was created and deleted.
        effects: the most calls that left the cluster.
        window: virtual seconds without a write after which a cluster counts as at rest.
        run: the first of the runs.
        simulated: workloads were played; where there are none, nobody has to be there to play them.
        names: that the operator makes up.
        generations: paths by step and key that hold a generation: an object made anew begins to count anew.
        loose: paths of maps whose keys are made up; how many there are is compared.
        numbered: keys of objects that are named after a generation, by step, with "#" for numbers.
    """

    states: list[Objects]
    varying: dict[tuple[int, str], set[str]]
    ledger: Ledger
    effects: Counter[tuple[str, str]]
    window: float
    run: SweepRun
    simulated: bool = True
    names: frozenset[MadeUp] = frozenset()
    generations: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    loose: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    numbered: dict[int, set[str]] = field(default_factory=dict)


def learn(runs: Sequence[SweepRun], counted_otherwise: SweepRun | None = None) -> Yardstick:
    """What runs without faults have in common.

    Args:
        runs: with other seeds: other uids, times, versions.
        counted_otherwise: one more, with GENERATIONS.
    """
    first = runs[0]
    keys = [[key for state in run.states for key in state or ()] for run in runs]
    names = made_up_names(keys)
    for run in runs:
        run.states = [without_made_up(state, names) if state is not None else None for state in run.states]
    states = [state or {} for state in first.states]
    varying: dict[tuple[int, str], set[str]] = {}
    loose: dict[tuple[int, str], set[str]] = {}
    for other in runs[1:]:
        for step, state in enumerate(states):
            theirs = (other.states[step] if step < len(other.states) else None) or {}
            for key in {*state, *theirs}:
                if key not in state or key not in theirs:
                    varying.setdefault((step, key), set()).add("")
                else:
                    paths = {path for path, _, _ in differences(state[key], theirs[key])}
                    varying.setdefault((step, key), set()).update(paths)
                    loose.setdefault((step, key), set()).update(made_up_keys(state[key], theirs[key]))
    ledger, effects = ledger_of(first, names), effects_of(first)
    for other in runs[1:]:
        ledger |= ledger_of(other, names)
        effects |= effects_of(other)
    simulated = any(entry.actor == SIMULATOR for run in runs for entry in run.trace.changes())
    gap = max(run.gap for run in runs)
    window = max(SHORTEST_WINDOW, 2 * gap + 30.0)
    yardstick = Yardstick(states, varying, ledger, effects, window, first, simulated, names, loose=loose)
    if counted_otherwise is not None:
        _learn_generations(yardstick, counted_otherwise)
    return yardstick


def _learn_generations(yardstick: Yardstick, run: SweepRun) -> None:
    """Which fields and names follow the generation of an object, and which are made from it."""
    for step, state in enumerate(yardstick.states):
        theirs = without_made_up((run.states[step] if step < len(run.states) else None) or {}, yardstick.names)
        yardstick.numbered[step] = {numberless(key) for key in state.keys() - theirs.keys()} & {
            numberless(key) for key in theirs.keys() - state.keys()
        }
        for key in state.keys() & theirs.keys():
            for path, before, after in differences(state[key], theirs[key]):
                kept = yardstick.generations if _is_generation(before, after) else yardstick.varying
                kept.setdefault((step, key), set()).add(path)


def numberless(key: str) -> str:
    """A key with "#" for its numbers."""
    return re.sub(r"\d+", "#", key)


def _is_generation(before: Any, after: Any) -> bool:
    """Whether a value was moved by as much as the generations were."""
    try:
        return int(after) - int(before) == GENERATIONS.number
    except (TypeError, ValueError):
        return False


def ledger_of(run: SweepRun, names: Collection[MadeUp] = ()) -> Ledger:
    """What the operator created and deleted in a run."""
    masks, ledger = Masks(), Ledger()
    for entry in run.trace.changes():
        storage = entry.key.partition(" ")[0]
        if entry.after is not None:
            masks.learn(storage, entry.after)
            if entry.actor == OPERATOR and entry.change in ("ADDED", "DELETED"):
                ledger[entry.change, general(masks.key(storage, entry.after["metadata"]), names)] += 1
    return ledger


def effects_of(run: SweepRun) -> Counter[tuple[str, str]]:
    """How often a call was made; those with one key are one."""
    masks, counted, keys = Masks(), Counter[tuple[str, str]](), set[tuple[str, str]]()
    for entry in run.trace.entries:
        if entry.after is not None:
            masks.learn(entry.key.partition(" ")[0], entry.after)
        if entry.effect is None:
            continue
        name, arguments, key = entry.effect
        if key and (name, key) in keys:
            continue
        keys.add((name, key))
        counted[name, masks.text(arguments, known_names=False)] += 1
    return counted


def judge(run: SweepRun, reference: Yardstick) -> Defect | None:
    """The worst that is wrong with a run; None: nothing is."""
    return next(iter(_problems(run, reference)), None)


def _problems(run: SweepRun, reference: Yardstick) -> Iterable[Defect]:
    faults = {spot.fault for spot in run.struck}
    if run.died:
        yield Defect("hang", f"makes the run hang: {run.died}")
        return
    if run.ends and not reference.run.ends:
        yield Defect("end", f"ends the operator: {run.ends[0]}")
    for text in run.unfit:
        fields = ", ".join(field_name(spot.pointer) for spot in run.struck)
        yield Defect("spec", text, run.struck[0].object(kinds_in(run.trace.entries)), fields, run.struck[0].step)
    if not run.restless or run.states:
        yield from _states(run, reference)
    for why in run.restless:
        yield Defect("rest", f"leaves the cluster without rest: {why}")
    # A step may be about what the operator makes: nobody makes it who is down. The fault may not have struck by then.
    if run.failed and not run.recreated and "missed" not in {spot.fault for spot in run.plan.spots}:
        yield Defect("rest", f"makes the scenario fail: {run.failed}")
    if not faults & {"recreate", "missed", "children", "specs"}:
        # Kinds whose watches lag behind each other show states that never were: what is made then may have to go again.
        if not faults & {"watch", "stale"}:
            yield from _ledger(run, reference)
        yield from _effects(run, reference)
    if any(spot.how == "behind" for spot in run.struck):
        yield from _data_lost(run, reference)
    for lost in dict.fromkeys(run.lost):
        yield Defect("lost", f"loses {lost}", object=lost.rpartition(" on ")[2].rpartition(" in ")[2])
    yield from _idle(run)
    yield from _remade(run, reference)


def _states(run: SweepRun, reference: Yardstick) -> Iterable[Defect]:
    dealt: set[tuple[str, str, str]] = set()
    for step, state in enumerate(run.states):
        expected = step
        if run.recreated and step >= run.recreated[0]:
            # What was deleted is there again: as before its deletion.
            if step > run.recreated[0] or step == 0:
                return
            expected = step - 1
        if state is None or expected >= len(reference.states):
            continue
        state = without_made_up(state, reference.names)
        anew = any(spot.fault in OTHER_GENERATIONS for spot in run.struck)
        if any(spot.fault == "specs" for spot in run.struck):
            wanted = reference.states[expected]
            state = {key: obj for key, obj in state.items() if key in wanted or obj.get("kind") not in LEFT_OVER}
        found = list(_compare(state, reference.states[expected], reference, expected, anew=anew, dealt=dealt))
        if found:
            yield from found
            return


def _compare(
    state: Objects, wanted: Objects, reference: Yardstick, step: int, *, anew: bool, dealt: set[tuple[str, str, str]]
) -> Iterable[Defect]:
    numbered = reference.numbered.get(step, set()) if anew else set()

    def is_compared(key: str) -> bool:
        return "" not in reference.varying.get((step, key), ()) and numberless(key) not in numbered

    missing = [key for key in wanted if key not in state and is_compared(key)]
    extra = [key for key in state if key not in wanted and is_compared(key)]
    # What people and the operator have to do with comes before what the cluster makes of it.
    for key in sorted(extra, key=_rank):
        kind, storage = state[key].get("kind", "object"), key.partition(" ")[0]
        count, normal = _count(state, storage), _count(wanted, storage)
        shown = f"{kind} {_name(key)}"
        text = f"leaves the {shown}, which should not be there"
        if normal and count > normal:
            text = f"leaves {count} {plural(kind)} instead of {normal}: {shown} should not be there"
        yield Defect("state", text, shown, "", step)
    for key in sorted(missing, key=_rank):
        shown = f"{wanted[key].get('kind', 'object')} {_name(key)}"
        yield Defect("state", f"leaves no {shown}", shown, "", step)
    found = [*_fields(state, wanted, reference, step, anew=anew)]
    for defect, group, pair in found:
        place = (defect.object, defect.field, repr(pair))
        if _is_dealt_otherwise(found, group):
            dealt.add(place)
        elif place not in dealt:  # who had the other value may be gone since
            yield defect


Differing = tuple[Defect, tuple[str, str], tuple[Any, Any]]


def _is_dealt_otherwise(found: Sequence[Differing], group: tuple[str, str]) -> bool:
    """Whether fields hold the values of each other: who asks first gets the first port."""
    pairs = [pair for _, other, pair in found if other == group]
    left, right = (sorted(map(repr, side)) for side in zip(*pairs, strict=True))
    return len(pairs) > 1 and left == right and len({*left}) > 1


def _fields(state: Objects, wanted: Objects, reference: Yardstick, step: int, *, anew: bool) -> Iterator[Differing]:
    """The fields that differ, each with what it may have in common with others, and both its values."""
    numbered = reference.numbered.get(step, set()) if anew else set()
    for key in sorted((key for key in wanted if key in state and numberless(key) not in numbered), key=_rank):
        kind = wanted[key].get("kind", "object")
        shown = f"{kind} {_name(key)}"
        loose = reference.loose.get((step, key), set())
        # An object that is made anew, or that others write to, counts its generations otherwise.
        counts = reference.generations.get((step, key), set()) if anew else set()
        varying = reference.varying.get((step, key), set()) | loose | counts
        for path, theirs, right in differences(state[key], wanted[key]):
            # Of a condition, and known to be one: a real server gives nobody the chance to learn that.
            if anew and path.endswith("].observedGeneration"):
                continue
            if path not in varying and not any(path.startswith((f"{each}.", f"{each}[")) for each in varying if each):
                values = f"{encoded(theirs, path, kind)} instead of {encoded(right, path, kind)}"
                defect = Defect("state", f"leaves {path} of the {shown} at {values}", shown, path, step)
                yield defect, (kind, _place_of(path)), (theirs, right)
        for path in sorted(loose):
            count, normal = len(at_path(state[key], path)), len(at_path(wanted[key], path))
            if count != normal:
                text = f"leaves {count} entries in {path} of the {shown} instead of {normal}"
                yield Defect("state", text, shown, path, step), (key, path), (count, normal)


def _place_of(path: str) -> str:
    """Where values that are dealt out lie: in the entries of one map of data, or in one field of many objects."""
    return "data" if path.startswith("data.") else path


def _remade(run: SweepRun, reference: Yardstick) -> Iterable[Defect]:
    """What was changed to another spec keeps nothing of the old one that is not in what is made anew."""
    before, after = run.remade
    step = run.struck[0].step if after else 0
    kept = {key: kept_fields(reference.states[step].get(key), before[key], after[key]) for key in after}
    for defect, _, _ in _fields(before, after, reference, step, anew=True):
        if any(defect.object.endswith(f" {_name(key)}") and defect.field in paths for key, paths in kept.items()):
            yield replace(defect, oracle="anew", text=f"{defect.text}, as one has it that is made anew")


def _ledger(run: SweepRun, reference: Yardstick) -> Iterable[Defect]:
    for (change, key), count in ledger_of(run, reference.names).items():
        most = reference.ledger[change, key]
        if count > most and not _varies(reference, key):
            verb = "created" if change == "ADDED" else "deleted"
            shown = f"{_kind_of(run, key)} {_name(key)}"
            yield Defect("ledger", f"has the {shown} {verb} {times(count)} instead of {times(most)}", shown)


def _data_lost(run: SweepRun, reference: Yardstick) -> Iterable[Defect]:
    """What holds data, and is to stay, is not deleted for what a cache that is behind shows, even if it comes anew."""
    struck = next((index for index, entry in enumerate(run.trace.entries) if entry.kind == "fault"), 0)
    for entry in run.trace.entries[struck:]:
        kind = (entry.after or {}).get("kind")
        if entry.actor != OPERATOR or entry.change != "DELETED" or kind not in KEEPERS:
            continue
        if entry.step < len(reference.states) and entry.key in reference.states[entry.step]:
            shown = f"{kind} {_name(entry.key)}"
            yield Defect("ledger", f"has the {shown} deleted, with what it holds", shown, "", entry.step)


def _varies(reference: Yardstick, key: str) -> bool:
    return any(key == k.partition(" #")[0] and "" in paths for (_, k), paths in reference.varying.items())


def _effects(run: SweepRun, reference: Yardstick) -> Iterable[Defect]:
    between = any(spot.fault == "meanwhile" for spot in run.struck)  # a state met only then may ask for its own
    for (name, arguments), count in effects_of(run).items():
        most = reference.effects[name, arguments]
        if count > most and (most or not between):
            called = f"{name}({redact(arguments)})"
            yield Defect("effect", f"has {called} called {times(count)} instead of {times(most)}", name)


def _idle(run: SweepRun) -> Iterable[Defect]:
    for entry in run.idle_writes:
        if entry.kind == "write" and entry.point is not None:
            kinds = kinds_in(run.trace.entries)
            shown = f"{kinds.get(entry.point.resource, entry.point.resource)} {entry.point.name}"
            yield Defect("idle", f"sends a write of the {shown} that changes nothing", shown, "", entry.step)
            continue
        before, after = bare(entry.before), bare(entry.after)
        found = differences(before, after) if entry.change == "MODIFIED" else []
        path = found[0][0] if found else ""
        kind = (entry.after or {}).get("kind", "object")
        shown = f"{kind} {_name(entry.key)}"
        what = {"ADDED": f"creates the {shown}", "DELETED": f"deletes the {shown}"}.get(
            entry.change, f"writes {path or 'nothing new'} of the {shown}"
        )
        values = f" ({encoded(found[0][1], path, kind)} to {encoded(found[0][2], path, kind)})" if found else ""
        yield Defect("idle", f"{what}{values}", shown, path, entry.step)


def _rank(key: str) -> tuple[int, str]:
    storage = key.partition(" ")[0]
    return (1 if storage in ("pods", "replicasets.apps") else 0, key)


def _count(state: Objects, storage: str) -> int:
    return sum(key.partition(" ")[0] == storage for key in state)


def _name(key: str) -> str:
    return key.partition(" ")[2]


def _kind_of(run: SweepRun, key: str) -> str:
    storage = key.partition(" ")[0]
    return kinds_in(run.trace.entries).get(storage, storage)


def times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
