"""Specs that people try and take back, with an operator that did not think of them and one that did."""

from __future__ import annotations

from kopylite.sweep import FaultPlan, Scenario, Step, sweep
from kopylite.sweep.plans import Spot
from tests.unit.sweep import operators
from tests.unit.sweep.operators import PLOTS, a_plot

SCENARIO = Scenario((Step("apply", a_plot(size=1, mode="dry", zone="a")),), (PLOTS,))
KEY = "plots.sweep.example.com default/a"


def a_change(how: str, pointer: str, value: str) -> Spot:
    return Spot("specs", how, None, 0, 0, KEY, pointer, value)


async def test_a_value_that_the_schema_allows_and_one_that_is_not_undone_are_found() -> None:
    report = await sweep(operators.unforeseen, SCENARIO, faults="specs", jobs=1)
    rest, left = sorted((finding.sentence for finding in report.findings), key=lambda text: "and back" in text)
    assert rest == (
        "a change of spec.size to 0 in the Plot default/a (after apply Plot default/a), which its schema allows, leaves the "
        "cluster without rest: 1 keys fail again and again: reconcile failed: ZeroDivisionError: integer division or modulo "
        "by zero"
    )
    assert left == (
        'a change of spec.mode to "wet" in the Plot default/a (after apply Plot default/a), and back, '
        "leaves 2 ConfigMaps instead of 1: ConfigMap default/a-wet should not be there"
    )
    assert {finding.field for finding in report.findings} == {"spec.size", ""}
    assert report.plans == report.planned
    plans = [FaultPlan.of_wire(finding.plan) for finding in report.findings]
    again = await sweep(operators.unforeseen, SCENARIO, plans=plans, jobs=1)
    assert [finding.sentence for finding in again.findings] == [finding.sentence for finding in report.findings]


async def test_an_operator_that_thought_of_them_passes() -> None:
    report = await sweep(operators.foreseen, SCENARIO, faults="specs", jobs=1)
    assert not report.findings, report
    assert report.plans >= 8


async def test_of_many_fields_that_are_changed_at_once_those_that_matter_are_told() -> None:
    many = FaultPlan(
        (
            a_change("allowed", "/spec/size", "9"),
            a_change("allowed", "/spec/mode", '"wet"'),
            a_change("open", "/metadata/annotations", '{"a": "b"}'),
        )
    )
    report = await sweep(operators.unforeseen, SCENARIO, plans=[many], jobs=1)
    [finding] = report.findings
    assert [spot["pointer"] for spot in finding.plan["faults"]] == ["/spec/mode"]
