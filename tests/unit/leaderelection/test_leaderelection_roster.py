"""What a replica decides of what it has seen; that no key is in the hands of two is played in tests/properties."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.leaderelection import Lease, LeaseSettings, Roster, fair_part, shard_labels
from kopylite.leaderelection.lease import absent
from kopylite.leaderelection.roster import ACTIVE, COUNT, LITTER, REPLICA, SHARDS_OF, WAITING
from tests.sizes import examples

TIMES = LeaseSettings(name="a", namespace="b", lease_duration=15, renew_deadline=10, retry_period=2)


def presence(identity: str, state: str = ACTIVE, shards: int = 4, renewed: str = "x") -> Lease:
    """The Lease that says that a replica is there."""
    lease = absent(f"app-replica-{identity}", "b").labelled({SHARDS_OF: "app", COUNT: str(shards), REPLICA: state})
    return lease.written(holder=identity, duration=15, acquired="x", renewed=renewed, transitions=0)


def shard(index: int, holder: str, shards: int = 4) -> Lease:
    lease = absent(f"app-shard-{index}", "b").labelled(shard_labels("app", index, shards))
    return lease.written(holder=holder, duration=15, acquired="x", renewed="x", transitions=0)


def looked(identity: str, seen: Sequence[Lease], shards: int = 4, now: float = 0.0) -> Roster:
    """One that has said that it is there, and has looked since."""
    roster = Roster(identity, "app", shards, TIMES)
    roster.wrote(roster.state, now, now, anew=True)
    roster.saw(seen, now, now)
    return roster


def test_nothing_is_taken_before_one_has_said_that_one_is_there_and_looked_after_that() -> None:
    roster = Roster("b", "app", 4, TIMES)
    roster.saw([], 0.0, 0.0)
    assert (roster.state, roster.may_claim(0.0)) == (ACTIVE, False)
    assert roster.plan([], 0.0).wanted == frozenset()
    assert roster.plan([], 0.0).blocked == ""
    roster.wrote(ACTIVE, 1.0, 1.5, anew=True)
    roster.saw([], 1.4, 2.0)  # that was asked before the write was answered
    assert not roster.may_claim(2.0)
    roster.saw([], 1.5, 2.0)
    assert roster.may_claim(2.0)
    plan = roster.plan([], 2.0)
    assert (plan.wanted, plan.replicas, plan.blocked) == (frozenset(range(4)), 1, "")


def test_who_has_waited_says_first_that_it_waits_no_more_and_looks_after_that() -> None:
    roster = looked("a", [shard(0, "b", 8)])
    assert roster.state == WAITING
    roster.saw([], 1.0, 1.0)
    assert roster.state == ACTIVE
    roster.wrote(WAITING, 0.5, 1.5, anew=False)  # as it was sent before
    roster.saw([], 2.0, 2.0)
    assert not roster.may_claim(2.0)
    roster.wrote(ACTIVE, 2.0, 2.5, anew=False)
    roster.wrote(ACTIVE, 3.0, 3.5, anew=False)
    roster.saw([], 3.0, 4.0)
    assert roster.may_claim(4.0), "the first one says it already"


def test_who_has_not_written_for_so_long_that_others_may_take_it_for_dead_takes_nothing() -> None:
    assert looked("a", []).may_claim(9.9)
    assert not looked("a", []).may_claim(10.0)


@pytest.mark.parametrize(("identity", "wanted"), [("a", {0, 1}), ("b", {2, 3})])
def test_those_who_begin_together_do_not_try_for_the_same_shards(identity: str, wanted: set[int]) -> None:
    plan = looked(identity, [presence("a"), presence("b")]).plan([], 0.0)
    assert plan.wanted == wanted
    assert plan.replicas == 2


def test_who_has_more_than_its_part_gives_the_surplus_back_and_who_has_less_tries_for_what_is_free() -> None:
    seen = [presence("a"), presence("b"), *(shard(index, "a") for index in (0, 1, 3)), shard(2, "")]
    assert looked("a", seen).plan([0, 1, 3], 0.0).wanted == {0, 1}
    b = looked("b", seen)
    assert b.plan([], 0.0).wanted == {2}, "no more than what nobody holds"
    assert b.plan([2], 0.0).wanted == {2}
    assert [b.is_free(index, 0.0) for index in range(4)] == [False, False, True, False]
    assert b.is_free(0, 15.0), "its holder has not renewed it"
    alone = looked("c", [shard(0, "c"), shard(1, "c")])
    assert alone.plan([0, 1], 0.0).wanted == {0, 1, 2, 3}
    assert alone.is_free(0, 0.0), "it is its own"


def test_one_shard_more_is_for_who_has_more_already() -> None:
    seen = [presence("a", shards=3), presence("b", shards=3)]
    seen += [shard(0, "b", 3), shard(1, "b", 3), shard(2, "a", 3)]
    assert looked("b", seen, shards=3).plan([0, 1], 0.0).wanted == {0, 1}
    assert looked("a", seen, shards=3).plan([2], 0.0).wanted == {2}


def test_who_waits_is_dead_or_has_another_number_of_shards_has_no_part() -> None:
    seen = [presence("b", WAITING), presence("c"), presence("d", WAITING, shards=8)]
    roster = looked("a", seen)
    assert roster.plan([], 0.0).replicas == 2
    roster.wrote(ACTIVE, 8.0, 8.0, anew=False)
    roster.saw([presence("b", renewed="y"), presence("c")], 8.0, 8.0)
    assert roster.plan([], 14.9).replicas == 3
    roster.wrote(ACTIVE, 15.0, 15.0, anew=False)
    assert roster.plan([], 15.0).replicas == 2, "c was last seen to renew its Lease at 0"


def test_a_shard_of_another_number_that_somebody_holds_blocks_and_one_of_nobody_does_not() -> None:
    assert looked("a", [shard(0, "", 8), presence("b", WAITING, 8)]).plan([], 0.0).blocked == ""
    assert looked("a", [shard(0, "a", 8), presence("a", ACTIVE, 8)]).may_claim(0.0), "its own of before"
    blocked = looked("a", [shard(0, "b", 8), presence("c", ACTIVE, 2)])
    plan = blocked.plan([3], 0.0)
    assert blocked.state == WAITING
    assert plan.wanted == {3}, "what it has, it keeps"
    assert "b (8 shards), c (2 shards)" in plan.blocked


def test_who_leaves_keeps_what_it_has_for_its_electors_and_takes_nothing() -> None:
    roster = looked("a", [])
    roster.leave()
    plan = roster.plan([1], 0.0)
    assert (roster.state, roster.may_claim(0.0), plan.blocked) == (WAITING, False, "")
    assert plan.wanted == {1}
    roster.saw([], 1.0, 1.0)
    roster.wrote(roster.state, 1.0, 1.0, anew=False)
    roster.saw([shard(0, "b", 8)], 2.0, 2.0)
    assert (roster.state, roster.plan([1], 2.0).blocked) == (WAITING, "")


def test_leases_of_replicas_that_are_dead_for_long_are_litter_and_nothing_else_is() -> None:
    roster = looked("a", [presence("a"), presence("b"), shard(0, "b"), presence("c")])
    assert roster.litter(15.0 * LITTER - 0.1) == []
    roster.saw([presence("a"), presence("b"), shard(0, "b"), presence("c", renewed="y")], 1.0, 1.0)
    assert [lease.holder for lease in roster.litter(15.0 * LITTER)] == ["b"]
    stamped = presence("d").written(holder="d", duration=0, acquired="x", renewed="x", transitions=0)
    roster.saw([stamped], 2.0, 2.0)
    assert roster.litter(2.0) == []


@pytest.mark.parametrize("labels", [None, [], "x", {REPLICA: 1, COUNT: 4}, {"kopylite.dev/shard": "first", COUNT: "4"}])
def test_labels_that_somebody_has_broken_make_nobody_a_member_or_holder(labels: object) -> None:
    wire = {"metadata": {"name": "a", "labels": labels}}
    roster = looked("a", [Lease("b", 15, "x", "x", 0, wire)])
    assert roster.plan([], 0.0).wanted == frozenset(range(4))


@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 64))
def test_fair_parts_are_all_and_differ_by_one_at_most(counts: dict[str, int], shards: int) -> None:
    parts = [fair_part(each, counts, shards) for each in counts]
    assert sum(parts) == shards
    assert max(parts) - min(parts) <= 1
    by_need = [fair_part(each, counts, shards) for each in sorted(counts, key=lambda each: (-counts[each], each))]
    assert by_need == sorted(parts, reverse=True), "the bigger ones are for who has most already"


def test_a_replica_with_another_number_of_shards_says_for_whom_it_waits() -> None:
    roster = Roster("new", "app", 8, TIMES)
    old = absent("app-replica-old", "b").labelled({SHARDS_OF: "app", COUNT: "4", REPLICA: ACTIVE})
    stored = old.written(holder="old", duration=15, acquired="x", renewed="x", transitions=0)
    roster.wrote(roster.state, 0.0, 0.0, anew=True)
    roster.saw([stored], 0.0, 0.0)
    plan = roster.plan([], 0.0)
    assert not plan.wanted
    assert not roster.may_claim(0.0)
    assert "old (4 shards)" in plan.blocked
    assert "8 shards" in plan.blocked
    roster.wrote(roster.state, 15.0, 15.0, anew=False)
    roster.saw([stored], 15.0, 15.0)  # it has not renewed its Lease for so long
    roster.wrote(roster.state, 16.0, 16.0, anew=False)
    roster.saw([stored], 16.0, 16.0)
    assert roster.plan([], 16.0).wanted == frozenset(range(8))


@pytest.mark.parametrize(
    ("began", "ended", "lapses"),
    [(9.0, 9.1, False), (9.0, 10.0, True), (12.0, 12.1, True), (400.0, 400.1, True)],
)
def test_who_was_away_looks_again_before_it_takes_a_shard(began: float, ended: float, lapses: bool) -> None:
    """Of another number of shards, others may be at work by now: what was written since says nothing of before."""
    roster = Roster("new", "app", 8, TIMES)
    roster.wrote(roster.state, 0.0, 0.0, anew=True)
    roster.saw([], 0.0, 0.0)
    assert roster.may_claim(0.1)
    roster.wrote(roster.state, began, ended, anew=False)
    assert roster.may_claim(ended) is not lapses
    other = absent("app-replica-old", "b").labelled({SHARDS_OF: "app", COUNT: "4", REPLICA: ACTIVE})
    roster.saw([other.written(holder="old", duration=15, acquired="x", renewed="x", transitions=0)], ended, ended)
    assert roster.may_claim(ended) is not lapses
    assert (roster.state == ACTIVE) is not lapses
