"""Findings: problems in the user's terms, with the line, the trace and a test that shows them again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopylite.sweep.oracles import Defect, Yardstick
from kopylite.sweep.plans import FaultPlan, Spot
from kopylite.sweep.runs import SweepRun
from kopylite.sweep.specs import REFUSED, field_name
from kopylite.sweep.states import encoded
from kopylite.sweep.trace import OPERATOR, SCENARIO, TraceEntry, kinds_in

# Of the trace, as many lines as a person reads.
SHOWN = 40


@dataclass(slots=True)
class SweepFinding:
    """What a sweep has found.

    Attributes:
        sentence: the fault and what it leads to.
        object: "Kind namespace/name".
        field: the path in it; "" for the whole object.
        plan: the faults; `FaultPlan.of_wire` reads it.
        trace: what happened, from the beginning of the step to the end of the fault's.
        line: of the reconcile, where the fault fell: "FILE:LINE: text"; "" if it fell at none.
        replay: a Python test that shows it again.
        others: how many more plans end alike.
    """

    sentence: str
    object: str
    field: str
    plan: dict[str, Any]
    trace: list[str]
    line: str
    replay: str
    others: int = 0

    def to_wire(self) -> dict[str, Any]:
        names = ("sentence", "object", "field", "plan", "trace", "line", "replay")
        return {name: getattr(self, name) for name in names}


def finding_of(run: SweepRun, problem: Defect, reference: Yardstick, replay: str) -> SweepFinding:
    """A problem of a run, told."""
    return SweepFinding(
        sentence=f"{cause_of(run, problem, reference)} {problem.text}",
        object=problem.object,
        field=problem.field,
        plan=run.plan.to_wire(),
        trace=_shown(run, problem),
        line=line_of(run, problem),
        replay=replay,
    )


def line_of(run: SweepRun, problem: Defect) -> str:
    """Where in the user's code the fault fell, or what was wrong was written."""
    entry = run.cut_at
    if problem.oracle == "idle" or entry is None:
        entry = _writer_of(run, problem) or entry
    if entry is None or not entry.frames:
        return ""
    frame = entry.frames[0]
    return f"{frame.file}:{frame.line}: {frame.text}" if frame.text else f"{frame.file}:{frame.line}"


def _writer_of(run: SweepRun, problem: Defect) -> TraceEntry | None:
    """The last write of the operator to the object of a problem, else its last one at all."""
    name = problem.object.rpartition(" ")[2]
    writes = [entry for entry in run.trace.writes() if entry.frames]
    if " deleted" in problem.text:  # not the line that made it anew
        writes = [entry for entry in writes if entry.point is not None and entry.point.verb == "delete"] or writes
    to_it = [entry for entry in writes if entry.point is not None and entry.point.name == name]
    changed = [entry for entry in to_it if entry.changed]
    found = changed or to_it or writes
    return found[-1] if found else None


def cause_of(run: SweepRun, problem: Defect, reference: Yardstick) -> str:
    """What went wrong first, as the subject of a sentence."""
    kinds = kinds_in([*reference.run.trace.entries, *run.trace.entries])
    spots = run.struck or run.plan.spots
    causes = [_cause(spot, run, reference, kinds) for spot in spots if spot.fault != "specs"]
    if edits := [spot for spot in spots if spot.fault == "specs"]:
        causes.append(_edited(edits, run, problem, edits[0].object(kinds)))
    return " and then ".join(dict.fromkeys(causes)) or "the operator, without any fault,"


_CAUSES = {
    ("crash", ""): "a crash after {did}{before}",
    ("response", ""): "the lost answer after {did}",
    ("effect", ""): "a crash after {called} was called and before anything was written about it",
    ("rerun", "run"): "a run with nothing to do",
    ("rerun", "start"): "a start with nothing to do",
    ("missed", "down"): "a change that happened while the operator was down ({step})",
    ("missed", "together"): "two changes of which the operator saw only the last state ({step}, and the next one)",
    ("recreate", "down"): "an object that was deleted and created anew while the operator was down",
    ("recreate", "before"): "an object that was deleted and created anew just before {did}",
    ("recreate", "after"): "an object that was deleted and created anew just after {did}",
    ("writer", "note"): "another writer just before {did}",
    ("writer", "list"): "another writer who adds to the same list just before {did}",
    ("writer", "finalizer"): "a finalizer of somebody else ({step})",
    ("stale", "restart"): "a crash after {did} and a cache that does not show it at the restart",
    ("stale", "late"): "a cache that does not show that {did}",
    ("stale", "behind"): "a restart with a cache that shows what is reconciled as before a change ({step})",
    ("meanwhile", ""): "the next step in the middle of a reconcile, just before {did},",
    ("leader", ""): "another instance that takes over, and does not know that soon {did},",
    ("children", ""): "somebody who deletes what the operator owns ({path})",
    ("outage", "all"): "a server that refuses everything for a while ({step})",
    ("outage", "reads"): "a server that refuses all reads of a reconcile for a while ({step})",
    ("watch", "twice"): "a watch that brings each event twice",
    ("refused", ""): "the answer {number} before {did}",
    ("watch", "cut"): "a watch that is cut ({step})",
    ("watch", "compacted"): "a watch that is cut and whose history is gone ({step})",
}


def _cause(spot: Spot, run: SweepRun, reference: Yardstick, kinds: Mapping[str, str]) -> str:
    return _CAUSES.get((spot.fault, spot.how), str(spot)).format(
        did=_did(spot, kinds),
        before=_before(spot, reference, kinds),
        called=run.cut_at.key if run.cut_at is not None else "a call",
        step=_step_text(run, spot.step),
        number=spot.number,
        path=spot.object(kinds),
    )


def _edited(spots: Sequence[Spot], run: SweepRun, problem: Defect, shown: str) -> str:
    """Another spec, and what of it: it was there, the operator started with it, or it is gone again."""
    kind = shown.partition(" ")[0]
    changes = " and ".join(
        f"{field_name(spot.pointer)} to {encoded(json.loads(spot.value), kind=kind) if spot.value else 'nothing'}"
        for spot in spots
    )
    change = f"a change of {changes} in the {shown} (after {_step_text(run, spots[0].step)})"
    if any(spot.how == REFUSED for spot in spots):
        return f"{change}, which its schema refuses,"
    match problem.oracle:
        case "spec":
            return f"{change}, which its schema allows,"
        case "idle":
            return f"a start with nothing to do after {change}"
        case "anew":
            return change
    return f"{change}, and back,"


def _did(spot: Spot, kinds: Mapping[str, str]) -> str:
    """A write as something that has happened."""
    point = spot.point
    if point is None:
        return "a write"
    kind = kinds.get(point.resource, point.resource)
    again = f" for the {ordinal(point.nth)} time" if point.nth > 1 else ""
    match point.verb:
        case "create" if not point.subresource:
            return f"the {kind} {point.name} was created{again}"
        case "delete" | "deletecollection":
            return f"the {kind} {point.name} was deleted{again}"
    if point.subresource:
        return f"the {point.subresource} of the {kind} {point.name} was written{again}"
    return f"the {kind} {point.name} was changed{again}"


def _before(spot: Spot, reference: Yardstick, kinds: Mapping[str, str]) -> str:
    """What would have come next."""
    writes = reference.run.trace.writes()
    places = [index for index, write in enumerate(writes) if write.point == spot.point]
    for write in writes[places[0] + 1 :] if places else ():
        if write.step == spot.step and write.changed:
            return f" and before {_did(Spot('', point=write.point), kinds)}"
    return ""


def _step_text(run: SweepRun, step: int) -> str:
    found = [e.text for e in run.trace.entries if e.kind == "step" and e.step == step]
    return found[0] if found else f"step {step + 1}"


def ordinal(number: int) -> str:
    suffix = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _shown(run: SweepRun, problem: Defect) -> list[str]:
    """The steps, and from the step of the fault on what operator and fault did."""
    struck = [spot.step for spot in run.struck]
    first = min([*struck, problem.step], default=0)
    last = max([*struck, problem.step], default=first)
    lines = []
    for entry in run.trace.entries:
        told = entry.kind != "change" or entry.actor not in (OPERATOR,)
        theirs = entry.kind == "change" and entry.actor not in (OPERATOR, SCENARIO)
        if entry.kind == "step" or (first <= entry.step <= last and told and not theirs):
            lines.append(str(entry) + (f"  [{entry.frames[0].file}:{entry.frames[0].line}]" if entry.frames else ""))
    if len(lines) > SHOWN:
        lines = [*lines[: SHOWN // 2], f"... {len(lines) - SHOWN} more ...", *lines[-SHOWN // 2 :]]
    return lines


def replay_of(plan: FaultPlan, target: str, scenario: str, sentence: str) -> str:
    """A Python test that plays a plan again.

    Args:
        target: "module:attribute", or "file.py:attribute".
    """
    words = "".join(c if c.isalnum() and c.isascii() else "_" for c in " ".join(sentence.lower().split()[:9]))
    place, _, attribute = target.partition(":")
    attribute = attribute or "app"
    imported = f"from {place} import {attribute}"
    if place.endswith(".py"):
        imported = f"from kopylite.cli.target import load_app\n\n{attribute} = load_app({target!r})"
    spots = ",\n        ".join(repr(spot.to_wire()) for spot in plan.spots)
    return f"""\
from kopylite.sweep import FaultPlan, sweep
{imported}


async def test_{"_".join(filter(None, words.split("_")))}():
    plan = {{"seed": {plan.seed}, "faults": [
        {spots}
    ]}}
    report = await sweep({attribute}, {scenario!r}, plans=[FaultPlan.of_wire(plan)])
    assert not report.findings, report
"""
