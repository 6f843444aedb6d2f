from __future__ import annotations

from typing import Any

from kopylite.sweep.findings import finding_of, line_of, ordinal, replay_of
from kopylite.sweep.oracles import Defect, judge, learn
from kopylite.sweep.plans import GENERATIONS, FaultPlan, Spot
from kopylite.sweep.report import Report
from kopylite.sweep.runs import SweepRun
from kopylite.sweep.states import plural
from kopylite.sweep.trace import OPERATOR, CodeLine, Point, Trace, TraceEntry

KEY = "configmaps default/a"


def a_change(change: str = "ADDED", step: int = 0, **data: Any) -> TraceEntry:
    after = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", "uid": "u"}, "data": data}
    return TraceEntry("change", OPERATOR, 1.0, step, f"{change} {KEY}", key=KEY, change=change, after=after)


def a_run(*entries: TraceEntry, size: str = "1", spots: tuple[Spot, ...] = (), **parts: Any) -> SweepRun:
    state = {KEY: {"kind": "ConfigMap", "data": {"size": size}}}
    run = SweepRun(FaultPlan(spots), states=[state], trace=Trace([*entries]), struck=[*spots])
    for name, value in parts.items():
        setattr(run, name, value)
    return run


CRASH = Spot("crash", point=Point("create", "configmaps", "", "default/a"))
REFERENCE = learn([a_run(a_change()), a_run(a_change()), a_run(a_change())])


def test_a_run_like_those_without_faults_has_no_problem() -> None:
    assert judge(a_run(a_change(), spots=(CRASH,)), REFERENCE) is None


def test_a_field_that_differs_is_named() -> None:
    problem = judge(a_run(a_change(), size="2"), REFERENCE)
    assert problem is not None
    assert problem.text == 'leaves data.size of the ConfigMap default/a at "2" instead of "1"'
    assert problem.signature == ("state", "ConfigMap default/a", "data.size")


def test_a_field_that_varies_without_faults_is_not() -> None:
    varying = learn([a_run(a_change()), a_run(a_change(), size="7"), a_run(a_change())])
    assert judge(a_run(a_change(), size="2"), varying) is None


def test_what_follows_a_generation_or_has_made_up_keys_is_compared_as_such() -> None:
    def run(generation: Any, key: str, plan: FaultPlan | None = None, **more: str) -> SweepRun:
        state = {KEY: {"kind": "ConfigMap", "data": {"of": generation}, "status": {"owners": {key: "1", **more}}}}
        struck = [*plan.spots] if plan else []
        return SweepRun(plan or FaultPlan(), states=[state], trace=Trace([a_change()]), struck=struck)

    known = learn([run("2", "x1"), run("2", "y2"), run("2", "z3")], run(str(2 + GENERATIONS.number), "x1"))
    anew = FaultPlan((Spot("recreate", "down"),))
    assert judge(run("1", "u4", anew), known) is None
    problem = judge(run("1", "u4"), known)
    assert problem is not None  # nothing was made anew: it follows an older generation
    assert problem.field == "data.of"
    problem = judge(run("2", "u4", more="1"), known)
    assert problem is not None
    assert problem.text == "leaves 2 entries in status.owners of the ConfigMap default/a instead of 1"


def test_data_that_is_deleted_for_a_cache_that_is_behind_is_lost_though_it_comes_anew() -> None:
    def run(*entries: TraceEntry) -> SweepRun:
        return SweepRun(
            FaultPlan((behind,)), states=[{KEY: {"kind": "Secret"}}], trace=Trace([*entries]), struck=[behind]
        )

    behind = Spot("stale", "behind")
    made, gone, fault = a_change(), a_change("DELETED"), TraceEntry("fault", "fault", 1.0, 0, "behind")
    for entry in (made, gone):
        entry.after = {**(entry.after or {}), "kind": "Secret"}
    known = learn([run(made)])
    problem = judge(run(made, fault, gone, made), known)
    assert problem is not None
    assert problem.text == "has the Secret default/a deleted, with what it holds"
    assert judge(run(made, fault), known) is None


def test_an_object_too_many_or_too_few_is_counted() -> None:
    more = a_run(a_change())
    assert more.states[0] is not None
    more.states[0]["configmaps default/b"] = {"kind": "ConfigMap"}
    problem = judge(more, REFERENCE)
    assert problem is not None
    assert problem.text == "leaves 2 ConfigMaps instead of 1: ConfigMap default/b should not be there"
    problem = judge(a_run(a_change(), states=[{}]), REFERENCE)
    assert problem is not None
    assert problem.text == "leaves no ConfigMap default/a"


def test_what_is_created_more_often_is_told_though_the_end_is_the_same() -> None:
    problem = judge(a_run(a_change(), a_change("DELETED"), a_change()), REFERENCE)
    assert problem is not None
    assert problem.text == "has the ConfigMap default/a created twice instead of once"
    assert judge(a_run(a_change(), a_change(), spots=(Spot("recreate", "down"),)), REFERENCE) is None


def test_a_step_that_needs_what_the_operator_makes_is_no_problem_while_it_is_down() -> None:
    assert judge(a_run(a_change(), failed="404", spots=(Spot("missed", "together"),)), REFERENCE) is None
    assert judge(a_run(a_change(), failed="404", spots=(CRASH,)), REFERENCE) is not None


def test_every_other_problem_has_its_words() -> None:
    for parts, text in (
        ({"died": "too slow"}, "makes the run hang: too slow"),
        ({"ends": ["ValueError"]}, "ends the operator: ValueError"),
        ({"restless": ["it never rests"]}, "leaves the cluster without rest: it never rests"),
        ({"lost": ["the annotation of somebody else on Thing a"]}, "loses the annotation of somebody else on Thing a"),
        ({"idle_writes": [a_change("DELETED")]}, "deletes the ConfigMap default/a"),
    ):
        problem = judge(a_run(a_change(), **parts), REFERENCE)
        assert problem is not None
        assert problem.text == text


def test_a_finding_has_a_sentence_a_line_and_a_test() -> None:
    frame = CodeLine("operator.py", 12, "reconcile", "await ctx.client.create(child)")
    write = TraceEntry("write", OPERATOR, 1.0, 0, "create", CRASH.point, 201, (frame,), changed=True)
    run = a_run(write, a_change(), spots=(CRASH,), cut_at=write)
    problem = Defect("state", "leaves no Secret default/a", "Secret default/a")
    finding = finding_of(run, problem, REFERENCE, replay_of(run.plan, "shop.operator:app", "shop.yaml", "A b, c!"))
    assert finding.sentence == "a crash after the ConfigMap default/a was created leaves no Secret default/a"
    assert finding.line == line_of(run, problem) == "operator.py:12: await ctx.client.create(child)"
    assert set(finding.to_wire()) == {"sentence", "object", "field", "plan", "trace", "line", "replay"}
    assert "async def test_a_b_c():" in finding.replay
    assert "from shop.operator import app" in finding.replay
    compile(finding.replay, "replay", "exec")
    compile(replay_of(run.plan, "x/shop.py", "shop.yaml", "a"), "replay", "exec")
    report = Report("shop.operator:app", "shop.yaml", plans=3, planned=5, findings=[finding], seconds=60.0)
    assert report.to_wire() == {"plans": 3, "findings": [finding.to_wire()]}
    told = str(report)
    assert "3 of 5 plans in 60.0 s, 3 a minute: 1 found" in told
    assert "the budget was spent: 2 plans were not run" in told
    assert "object: Secret default/a" in told


def test_words() -> None:
    assert [plural(kind) for kind in ("Pod", "Ingress", "NetworkPolicy", "Gateway")] == [
        "Pods", "Ingresses", "NetworkPolicies", "Gateways"]  # fmt: skip
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113)] == ["1st", "2nd", "3rd", "4th", "11th", "22nd", "113th"]


def test_an_object_that_is_named_after_a_generation_is_not_missed_when_that_was_never_seen() -> None:
    def run(*generations: int, plan: FaultPlan | None = None) -> SweepRun:
        state = {f"jobs.batch default/a-{generation}": {"kind": "Job"} for generation in generations}
        return SweepRun(plan or FaultPlan(), states=[state], trace=Trace([]), struck=[*plan.spots] if plan else [])

    known = learn([run(1, 2)], run(101, 102))
    assert judge(run(2, plan=FaultPlan((Spot("missed", "together"),))), known) is None
    assert judge(run(2, plan=FaultPlan((CRASH,))), known) is not None


def test_values_that_are_dealt_out_in_another_order_are_no_problem_and_one_that_is_dealt_twice_is() -> None:
    def run(**data: str) -> SweepRun:
        return SweepRun(FaultPlan(), states=[{KEY: {"kind": "ConfigMap", "data": data}}], trace=Trace([a_change()]))

    known = learn([run(a="30000", b="30001")])
    assert judge(run(a="30001", b="30000"), known) is None
    known.states.append({KEY: {"kind": "ConfigMap", "data": {"b": "30001"}}})
    later = run(a="30001", b="30000")
    later.states.append({KEY: {"kind": "ConfigMap", "data": {"b": "30000"}}})
    assert judge(later, known) is None  # who had the other one is gone
    problem = judge(run(a="30001", b="30001"), known)
    assert problem is not None
    assert problem.field == "data.a"


def test_the_generation_of_a_condition_is_not_compared_where_generations_are_counted_otherwise() -> None:
    def run(generation: int, *spots: Spot) -> SweepRun:
        state = {
            KEY: {"kind": "Thing", "status": {"conditions": [{"type": "Ready", "observedGeneration": generation}]}}
        }
        return SweepRun(FaultPlan(spots), states=[state], trace=Trace([a_change()]), struck=[*spots])

    known = learn([run(1), run(1)])
    assert judge(run(3, Spot("specs", "allowed", pointer="/spec/size", value="2")), known) is None
    assert judge(run(3, CRASH), known) is not None
