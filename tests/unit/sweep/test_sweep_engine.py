"""Sweeps of small operators: each is some forks of this process, with few faults."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from kopylite import App, Context, Request, Unstructured
from kopylite.errors import UsageError
from kopylite.sweep import FaultPlan, Scenario, Step, assert_idempotent, sweep
from kopylite.sweep.plans import Spot
from kopylite.testing import VirtualClock
from tests.unit.sweep import operators
from tests.unit.sweep.operators import CRD, a_thing

SCENARIO = Scenario((Step("apply", a_thing(size=1)),), (CRD,))
CHANGED = Scenario((Step("apply", a_thing(size=1)), Step("patch", a_thing(), {"spec": {"size": 2}})), (CRD,))


@pytest.fixture(scope="module", autouse=True)
def own_clock() -> None:
    """Forks patch the clocks of themselves, never those of this process."""
    assert VirtualClock().monotonic() == 0.0


async def test_a_crash_between_two_writes_is_found_and_told_with_its_line() -> None:
    report = await sweep(operators.bug, SCENARIO, faults="crash", jobs=1)
    [finding] = report.findings
    assert finding.sentence == (
        "a crash after the ConfigMap default/a was created and before the Secret default/a was created "
        "leaves no Secret default/a"
    )
    assert (finding.object, finding.field) == ("Secret default/a", "")
    assert 'await ctx.client.create(child(thing, "ConfigMap"), owner=thing)' in finding.line
    assert "tests/unit/sweep/operators.py:" in finding.line
    assert any("the operator crashes" in line for line in finding.trace)
    assert report.plans == 2
    again = await sweep(operators.bug, SCENARIO, plans=[FaultPlan.of_wire(finding.plan)], jobs=1)
    assert [each.sentence for each in again.findings] == [finding.sentence]
    assert "from tests.unit.sweep.operators import bug" in finding.replay
    compile(finding.replay, "replay", "exec")


async def test_the_twin_that_is_right_passes() -> None:
    report = await sweep(operators.twin, CHANGED, faults="rerun,meanwhile,recreate,stale,leader,children,outage,pairs")
    assert not report.findings, report
    assert report.plans == report.planned > 15


@pytest.mark.parametrize(
    ("app", "faults", "sentence"),
    [
        (
            operators.hasty,
            "meanwhile",
            'the next step in the middle of a reconcile, just before .* at "1" instead of "2"',
        ),
        (operators.renamed, "leader", r"another instance that takes over, and does not know .* leaves 2 ConfigMaps"),
        (operators.hasty, "children", r"somebody who deletes what the operator owns \(ConfigMap default/a\) leaves"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
async def test_each_fault_finds_what_no_other_one_does(app: App, faults: str, sentence: str) -> None:
    report = await sweep(app, CHANGED, faults=faults, jobs=1)
    assert report.findings
    assert re.search(sentence, report.findings[0].sentence), report


async def test_who_tries_again_rarely_has_time_after_an_outage() -> None:
    report = await sweep(operators.patient, CHANGED, faults="outage")
    assert not report.findings, report
    assert report.plans


async def test_a_write_that_arrives_when_its_owner_has_gone_is_no_fault_of_the_operators() -> None:
    scenario = Scenario((Step("apply", a_thing(size=1)), Step("delete", a_thing())), (CRD,))
    report = await sweep(operators.farewell, scenario, faults="leader")
    assert not report.findings, report
    assert report.plans


async def test_of_two_faults_the_one_that_is_enough_is_told() -> None:
    known = await sweep(operators.bug, SCENARIO, faults="crash", jobs=1)
    [crash] = FaultPlan.of_wire(known.findings[0].plan).spots
    both = FaultPlan((Spot("watch", "cut", step=0, number=1), crash))
    report = await sweep(operators.bug, SCENARIO, plans=[both], jobs=1)
    assert [finding.plan for finding in report.findings] == [known.findings[0].plan]


async def test_an_operator_that_never_rests_is_found_without_a_fault() -> None:
    report = await sweep(operators.restless, SCENARIO, jobs=1)
    [finding] = report.findings
    assert "never comes to rest: the operator writes status.runs of Thing default/a" in finding.sentence
    assert report.plans == 0


async def test_an_operator_that_does_nothing_is_told_so() -> None:
    report = await sweep(operators.idle, SCENARIO, jobs=1)
    [finding] = report.findings
    assert "does nothing at all" in finding.sentence


async def test_a_call_that_leaves_the_cluster_twice_is_counted_unless_it_has_a_key() -> None:
    report = await sweep(operators.mails, SCENARIO, faults="effect", jobs=1)
    [finding] = report.findings
    assert "send_mail" in finding.sentence
    assert "twice instead of once" in finding.sentence
    report = await sweep(operators.mails_with_key, SCENARIO, faults="effect", jobs=1)
    assert not report.findings, report


async def test_a_scenario_that_the_server_refuses_is_told_as_such() -> None:
    scenario = Scenario((Step("delete", {**a_thing(), "kind": "Nothing"}),), (CRD,))
    report = await sweep(operators.twin, scenario, jobs=1)
    assert "cannot be tried, since step 1 (delete Nothing default/a)" in report.findings[0].sentence


async def test_idempotence_names_the_field_that_flaps() -> None:
    await assert_idempotent(operators.twin, SCENARIO, runs=3)
    with pytest.raises(AssertionError, match=r"writes status\.runs of Thing default/a"):
        await assert_idempotent(operators.restless, SCENARIO)


async def test_an_app_that_no_module_has_is_refused_and_its_maker_is_not() -> None:
    with pytest.raises(UsageError, match="no module has the App 'nobody'"):
        await sweep(App("nobody"), SCENARIO)


async def test_a_file_is_a_scenario(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.yaml: No such file"):
        await sweep(operators.twin, tmp_path / "no.yaml")
    with pytest.raises(UsageError, match="there is no fault 'crashes'"):
        await sweep(operators.twin, SCENARIO, faults="crashes")


async def test_an_object_that_people_hold_by_a_finalizer_is_not_made_anew() -> None:
    held = a_thing(size=1)
    held["metadata"]["finalizers"] = ["people.example.com/hold"]
    report = await sweep(operators.twin, Scenario((Step("apply", held),), (CRD,)), faults="recreate", jobs=1)
    assert report.planned == 0
    assert not report.findings, report


def raising() -> App:
    app = App("raising")

    @app.reconciler(operators.ConfigMap)
    async def reconcile(ctx: Context, request: Request) -> None:
        if request.name == "a":
            raise RuntimeError("broken")

    return app


def stamp(ctx: Context, secret: Unstructured) -> None:
    secret["metadata"]["annotations"] = {"run": ctx.reconcile_id}


def deleting() -> App:
    """Takes an object that is gone for one to make."""
    app = App("deleting")

    @app.reconciler(operators.ConfigMap)
    async def reconcile(ctx: Context, request: Request) -> None:
        found = await ctx.client.find(operators.ConfigMap, request)
        if found is not None and request.name == "a":
            await ctx.client.delete(found)
        elif found is None:
            await ctx.client.create_or_update(operators.Secret, request, partial(stamp, ctx))

    return app


async def test_idempotence_of_an_operator_that_fails_or_deletes_what_it_is_given() -> None:
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    with pytest.raises(AssertionError, match="keys fail again and again: reconcile failed: RuntimeError: broken"):
        await assert_idempotent(raising, [given])
    with pytest.raises(
        AssertionError, match=r"a run with nothing to do writes metadata\.annotations\.run of the Secret"
    ):
        await assert_idempotent(deleting, [given])
    for objects, problem in (([{"kind": "ConfigMap"}], r"objects\[0\]\.apply"), ([1], r"objects\[0\]: an object")):
        with pytest.raises(UsageError, match=problem):
            await assert_idempotent(deleting, objects)  # type: ignore[arg-type]
