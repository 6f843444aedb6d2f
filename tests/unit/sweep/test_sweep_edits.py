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
    found = {finding.field: finding.sentence for finding in report.findings}
    assert found.pop("spec.size").startswith(
        "a change of spec.size to 0 in the Plot default/a (after apply Plot default/a), which its schema allows, "
        "leaves the cluster without rest: 1 keys fail again and again: reconcile failed: ZeroDivisionError"
    )
    assert found.pop("metadata.annotations.run").startswith(
        "a start with nothing to do after a change of spec.size to 9 in the Plot default/a (after apply Plot "
        "default/a) writes metadata.annotations.run of the Secret default/a"
    )
    assert found.pop("") == (
        'a change of spec.mode to "wet" in the Plot default/a (after apply Plot default/a), and back, '
        "leaves 2 ConfigMaps instead of 1: ConfigMap default/a-wet should not be there"
    )
    assert found.pop("data.alone") == (
        "a change of spec.size to 2 in the Plot default/a (after apply Plot default/a) leaves data.alone of the "
        'ConfigMap default/a-dry at "yes" instead of null, as one has it that is made anew'
    )
    assert not found
    assert report.plans == report.planned


async def test_what_is_undone_or_refused_is_no_finding_and_of_many_fields_those_that_matter_are_told() -> None:
    both = a_change("allowed", "/spec/size", "9"), a_change("allowed", "/spec/mode", '"wet"')
    many = (*both, a_change("allowed", "/metadata/labels", '{"a": "b"}'))
    alone = (
        a_change("allowed", "/spec/zone", '"b"'),  # a rule refuses it
        a_change("refused", "/spec/size", "-1"),
        a_change("allowed", "/spec/nothing/here", "1"),
    )
    plans = [*(FaultPlan((spot,)) for spot in alone), FaultPlan(many)]
    report = await sweep(operators.flooded, SCENARIO, plans=plans, jobs=1)
    [finding] = report.findings
    assert (report.plans, report.unconfirmed) == (4, 0)
    assert FaultPlan.of_wire(finding.plan).spots == both
    assert 'a change of spec.size to 9 and spec.mode to "wet" in the Plot default/a' in finding.sentence
    assert finding.field == "spec.size, spec.mode"
