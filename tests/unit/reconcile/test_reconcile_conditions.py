from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kopylite.objects import Condition
from kopylite.reconcile import find_condition, is_condition_true, remove_condition, set_condition

NOW = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def test_a_new_condition_goes_to_the_end_with_the_time_cut_to_the_second() -> None:
    conditions = [Condition(type="Ready", status="True", last_transition_time=NOW)]
    assert set_condition(conditions, Condition(type="Stalled", status="False"), now=NOW)
    assert [c.type for c in conditions] == ["Ready", "Stalled"]
    assert conditions[1].last_transition_time == NOW.replace(microsecond=0)


def test_the_transition_time_moves_only_with_the_status() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, Condition(type="Ready", status="False", reason="Starting"), now=NOW)
    assert set_condition(conditions, Condition(type="Ready", status="False", reason="Waiting"), now=LATER)
    assert conditions[0].last_transition_time == NOW.replace(microsecond=0)
    assert conditions[0].reason == "Waiting"
    assert set_condition(conditions, Condition(type="Ready", status="True", reason="Up"), now=LATER)
    assert conditions[0].last_transition_time == LATER.replace(microsecond=0)


def test_saying_the_same_again_changes_nothing_and_a_new_generation_does() -> None:
    conditions: list[Condition] = []
    ready = Condition(type="Ready", status="True", observed_generation=1)
    set_condition(conditions, ready, now=NOW)
    before = list(conditions)
    assert not set_condition(conditions, ready, now=LATER)
    assert conditions == before
    assert set_condition(conditions, ready.model_copy(update={"observed_generation": 2}), now=LATER)
    assert conditions[0].last_transition_time == NOW.replace(microsecond=0)


def test_a_transition_time_that_the_caller_knows_is_used() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, Condition(type="Ready", status="True", last_transition_time=LATER), now=NOW)
    assert conditions[0].last_transition_time == LATER


def test_conditions_are_found_and_removed_by_type() -> None:
    conditions = [Condition(type="Ready", status="Unknown"), Condition(type="Synced", status="True")]
    assert is_condition_true(conditions, "Synced")
    assert not is_condition_true(conditions, "Ready")
    assert not is_condition_true(conditions, "Absent")
    assert find_condition(conditions, "Ready") is conditions[0]
    assert remove_condition(conditions, "Ready")
    assert not remove_condition(conditions, "Ready")
    assert [c.type for c in conditions] == ["Synced"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["True", "False", "Unknown"])), max_size=20))
def test_types_stay_unique_and_keep_their_order(script: list[tuple[str, str]]) -> None:
    conditions: list[Condition] = []
    for minute, (type_, status) in enumerate(script):
        set_condition(conditions, Condition(type=type_, status=status), now=NOW + timedelta(minutes=minute))
    assert [c.type for c in conditions] == list(dict.fromkeys(type_ for type_, _ in script))
    assert {c.type: c.status for c in conditions} == dict(script)
