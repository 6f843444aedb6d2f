from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.errors import UsageError
from kopylite.sweep.plans import (
    ALIKE,
    FAULTS,
    MOST_FRESH,
    MOST_REFUSED,
    MOST_SPECS,
    FaultGround,
    FaultPlan,
    Spot,
    fewest,
    parse_faults,
    plans_of,
)
from kopylite.sweep.specs import ALLOWED, REFUSED, Variation
from kopylite.sweep.trace import CodeLine, Point, TraceEntry


def a_write(verb: str, name: str, *, line: int = 1, step: int = 0, status: int = 200) -> TraceEntry:
    point = Point(verb, "configmaps", "", name)
    frames = (CodeLine("operator.py", line, "reconcile"),)
    return TraceEntry("write", "operator", 0.0, step, str(point), point, status, frames, changed=True)


points = st.builds(Point, st.text(), st.text(), st.text(), st.text(), st.integers(1))
spots = st.builds(
    Spot, st.sampled_from(list(FAULTS)), st.text(), st.none() | points, st.integers(0), st.integers(0), st.text(),
    st.text(), st.sampled_from(["", "2", '{"a": []}']),
)  # fmt: skip


@given(st.builds(FaultPlan, st.lists(spots).map(tuple), st.integers(0)))
def test_a_plan_is_the_same_after_it_was_written_and_read(plan: FaultPlan) -> None:
    assert FaultPlan.of_wire(json.loads(json.dumps(plan.to_wire()))) == plan


@pytest.mark.parametrize("wire", [
    None, 5, {}, {"faults": 1}, {"faults": [{"what": 1}]}, {"faults": [5]},
    {"faults": [{"fault": "specs", "pointer": "/spec/a", "value": "{"}]},
    {"faults": [{"fault": "specs", "pointer": "/spec/a", "value": "[" * 100_000}]},
    {"faults": [{"fault": "specs", "pointer": "/spec/a", "value": 5}]},
])  # fmt: skip
def test_what_is_no_plan_is_refused(wire: object) -> None:
    with pytest.raises(UsageError, match="this is no"):
        FaultPlan.of_wire(wire)


def test_faults_come_in_the_order_of_their_yield() -> None:
    assert parse_faults("watch, crash,rerun") == ("rerun", "crash", "watch")
    for wrong in ("", "crash,crashes"):
        with pytest.raises(UsageError, match="there are rerun, crash"):
            parse_faults(wrong)


def test_each_write_is_a_place_and_what_one_line_writes_alike_is_tried_some_times() -> None:
    writes = [a_write("create", f"default/{number}") for number in range(10)]
    writes += [a_write("update", "default/a", line=2), a_write("create", "default/b", line=3, status=409)]
    plans = [*plans_of(FaultGround(writes, 1), ["crash"], seed=7)]
    assert len(plans) == ALIKE + 1
    assert {plan.seed for plan in plans} == {7}
    assert plans[-1].spots[0].point == writes[10].point


def test_every_fault_has_plans_where_it_has_places() -> None:
    writes = [a_write("create", "default/a"), a_write("update", "default/a", step=1)]
    places: dict[str, Any] = {
        "deletes": frozenset({2}),
        "followed": frozenset({0, 1}),
        "effects": 1,
        "lists": [(writes[1], "/data/a")],
        "events": [2, 1, 0],
        "reads": frozenset({0}),
        "children": [(0, "configmaps default/a")],
        "specs": [(0, "things.example.com default/a", [Variation(ALLOWED, "/spec/size", "2")])],
    }
    ground = FaultGround(writes, 3, **places)
    for fault in FAULTS:
        plans = [*plans_of(ground, [fault], 0)]
        assert plans, fault
        assert len(set(plans)) == len(plans)
        assert all(str(plan).startswith(fault) or len(plan.spots) == 2 for plan in plans)
    assert not [*plans_of(FaultGround((), 0), ["crash", "effect", "missed", "watch"], 0)]


def test_a_budget_that_ends_early_has_tried_some_of_each_fault_from_everywhere() -> None:
    writes = [a_write("create", f"default/{number}", line=number, step=number // 4) for number in range(16)]
    plans = [*plans_of(FaultGround(writes, 4, events=[1] * 4), FAULTS, 0)]
    some = plans[: len(plans) // 3]
    assert {plan.spots[0].fault for plan in some} >= {"crash", "response", "stale", "refused", "watch", "leader"}
    assert {plan.spots[0].step for plan in some if plan.spots[0].fault == "crash"} == {0, 1, 2, 3}
    assert [len(plan.spots) for plan in plans] == sorted(len(plan.spots) for plan in plans)  # pairs come last
    assert len(set(plans)) == len(plans)


def test_a_place_with_a_made_up_name_is_found_under_another_one() -> None:
    made_up = Point("create", "configmaps", "", "default/a-*")
    assert made_up.fits(Point("create", "configmaps", "", "default/a-7f3c"))
    assert made_up.fits(made_up)
    for other in (
        Point("create", "configmaps", "", "default/b-7f3c"),
        Point("create", "secrets", "", "default/a-7f3c"),
        Point("create", "configmaps", "", "default/a-7f3c", 2),
    ):
        assert not made_up.fits(other)
    assert not Point("create", "configmaps", "", "default/a").fits(Point("create", "configmaps", "", "default/ab"))


def test_who_is_down_when_finalizers_are_taken_away_by_hand_is_no_plan() -> None:
    plans = [*plans_of(FaultGround((), 3, forcing=frozenset({2})), ["missed"], 0)]
    assert [str(plan) for plan in plans] == ["missed (down) in step 2", "missed (together) in step 1"]


def test_other_specs_come_after_all_that_are_alone_one_field_at_a_time_and_then_some_at_once() -> None:
    key, fields = "things.example.com default/a", [f"/spec/f{number}" for number in range(50)]
    found = [Variation(ALLOWED, field, value) for field in fields for value in ("1", "2")]
    found += [Variation(REFUSED, field, "0") for field in fields]
    found += [Variation(ALLOWED, f"{field}new", "1", fresh=True) for field in fields]
    writes = [a_write("create", "default/a"), a_write("create", "default/b", line=2)]
    plans = [*plans_of(FaultGround(writes, 1, specs=[(0, key, found)]), ["crash", "specs", "pairs"], 0)]
    assert [plan.spots[0].fault for plan in plans[:2]] == ["crash", "crash"]
    assert [plan.spots[0].fault for plan in plans[-2:]] != ["specs", "specs"]
    specs = [plan.spots for plan in plans if plan.spots[0].fault == "specs"]
    alone = [spots[0] for spots in specs if len(spots) == 1]
    assert len(alone) == MOST_SPECS + MOST_FRESH + MOST_REFUSED
    assert [spot.how for spot in alone].count(REFUSED) == MOST_REFUSED
    assert {spot.pointer for spot in alone} & set(fields[-5:])  # from everywhere
    assert [len(spots) for spots in specs[len(alone) :]] == [50, 50]
    assert str(specs[0][0]) == "specs (allowed) in step 1: /spec/f0 to 1 in things.example.com default/a"


@given(st.lists(st.integers(0, 9), min_size=2, max_size=8, unique=True), st.sets(st.integers(0, 9), min_size=2))
def test_of_many_faults_the_fewest_that_are_enough_are_kept(numbers: list[int], needed: set[int]) -> None:
    def is_enough(spots: Sequence[Spot]) -> bool:
        return needed <= {spot.number for spot in spots}

    many = tuple(Spot("specs", number=number) for number in numbers)
    kept = {spot.number for spot in fewest(many, is_enough)}
    assert kept == (needed if needed <= set(numbers) else set(numbers))
