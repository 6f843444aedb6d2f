from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.errors import UsageError
from kopylite.manager import Options
from kopylite.manager.scope import LONGEST_PAUSE, PARALLEL, STEADY_SECONDS, NamespaceRule, ScopeState, names_of

NAMES = [f"team-{number}" for number in range(PARALLEL + 4)]
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["seen", "gone", "settled"]), st.sampled_from([*NAMES, "other", "shop"])),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.1, 1.0, 7.0, 100.0])),
        st.tuples(st.just("next"), st.just(0.0)),
    ),
    max_size=120,
)


def rule(*namespaces: str, labelled: Any = "") -> NamespaceRule:
    return NamespaceRule.of(namespaces, labelled)


class Cluster:
    """Plays a history, and checks what may never be after each step."""

    def __init__(self, *namespaces: str) -> None:
        self.state = ScopeState(rule(*namespaces))
        self.now = 0.0
        self.there: set[str] = set()
        self.working: set[str] = set(self.state.begun)
        self.starting: set[str] = set()
        self.begins: list[str] = []

    def play(self, what: str, subject: Any) -> None:
        if what == "wait":
            self.now += subject
        elif what == "next":
            self.next()
        else:
            getattr(self.state, what)(subject)
            if what == "seen":
                self.there.add(subject)
            elif what == "gone":
                self.there.discard(subject)
            else:
                self.starting.discard(subject)

    def next(self) -> float | None:
        steps = self.state.next(self.now)
        assert set(steps.end) <= self.working
        self.working -= set(steps.end)
        self.starting -= set(steps.end)
        assert not set(steps.begin) & self.working
        self.working |= set(steps.begin)
        self.starting |= set(steps.begin)
        self.begins += steps.begin
        assert self.working == set(self.state.begun)
        assert self.working <= self.wanted, "it works nowhere that is not in scope"
        assert self.working >= set(self.state.rule.names)
        assert len(self.starting) <= PARALLEL
        return steps.after

    @property
    def wanted(self) -> set[str]:
        return {*self.state.rule.names, *filter(self.state.rule.fits, self.there)}

    def settle(self) -> None:
        """All that begins comes in sync, and time passes as far as it is asked for."""
        for _ in range(100):
            after = self.next()
            if self.starting:
                for name in [*self.starting]:
                    self.play("settled", name)
            elif after is None:
                return
            else:
                assert 0 < after <= LONGEST_PAUSE
                self.now += after
        raise AssertionError("it never came to rest")


@given(EVENTS)
def test_whatever_happens_it_works_in_scope_only_and_in_all_of_it_in_the_end(history: list[tuple[str, Any]]) -> None:
    cluster = Cluster("team-*", "shop")
    for what, subject in history:
        cluster.play(what, subject)
    cluster.settle()
    assert cluster.working == cluster.wanted


def test_two_hundred_at_once_begin_a_few_at_a_time() -> None:
    cluster = Cluster("n*")
    for number in range(200):
        cluster.play("seen", f"n{number}")
    cluster.next()
    assert len(cluster.working) == PARALLEL
    cluster.play("settled", cluster.begins[0])
    cluster.next()
    assert len(cluster.working) == PARALLEL + 1
    cluster.settle()
    assert len(cluster.working) == 200


def test_a_namespace_that_flaps_begins_a_few_times_and_keeps_no_other_waiting() -> None:
    cluster = Cluster("*")
    cluster.play("seen", "calm")
    for _ in range(100):
        for what in ("seen", "gone"):
            cluster.play(what, "flap")
            cluster.next()
            cluster.now += 0.2
    assert cluster.begins.count("flap") <= 8
    assert cluster.begins.count("calm") == 1
    cluster.play("seen", "flap")
    cluster.settle()
    assert "flap" in cluster.working


def test_each_flap_of_a_namespace_is_waited_for_longer_up_to_half_a_minute_and_a_steady_time_ends_that() -> None:
    cluster = Cluster("*")

    def begin() -> float:
        """After which pause it begins."""
        cluster.play("seen", "flap")
        if pause := cluster.next() or 0.0:
            cluster.now += pause
            cluster.next()
        assert "flap" in cluster.working
        return pause

    pauses: list[float] = []
    for _ in range(10):
        pauses.append(begin())
        cluster.play("gone", "flap")
        cluster.next()
    assert pauses == [0, 0, 1, 2, 4, 8, 16, 30, 30, 30]
    begin()
    cluster.now += STEADY_SECONDS
    cluster.play("gone", "flap")
    cluster.next()
    assert begin() == 0


def test_namespaces_that_end_while_they_start_make_room() -> None:
    cluster = Cluster("*")
    for number in range(PARALLEL):
        cluster.play("seen", f"a{number}")
    cluster.next()
    for number in range(PARALLEL):
        cluster.play("gone", f"a{number}")
        cluster.play("seen", f"b{number}")
    cluster.next()
    assert cluster.working == {f"b{number}" for number in range(PARALLEL)}


def test_a_namespace_that_is_made_anew_once_begins_at_once_and_nothing_is_kept_of_one_that_is_gone() -> None:
    cluster = Cluster("*")
    for what in ("seen", "gone", "seen"):
        cluster.play(what, "a")
        cluster.next()
    assert cluster.begins == ["a", "a"]
    cluster.play("gone", "a")
    cluster.next()
    cluster.now += STEADY_SECONDS + 1
    cluster.next()
    assert not cluster.state._lives


def test_a_rule_says_who_is_in_scope() -> None:
    assert str(rule()) == "all namespaces"
    assert not rule().limited
    fixed = rule("a", "b", "a")
    assert (fixed.names, fixed.live, fixed.limited, str(fixed)) == (("a", "b"), False, True, "namespaces a, b")
    mixed = rule("shop", "team-?", "[xy]-*")
    assert (mixed.live, mixed.names) == (True, ("shop",))
    assert [n for n in ("team-a", "team-ab", "x-1", "z-1", "shop", "team-") if mixed.fits(n)] == [
        "team-a", "x-1", "shop",
    ]  # fmt: skip
    labelled = rule(labelled={"tier": "prod"})
    assert labelled.live
    assert labelled.fits("whatever")
    assert str(labelled) == "the namespaces labelled tier=prod"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"namespaces": "shop"}, "a tuple of names or globs, not 'shop'"),
        ({"namespaces": ("Shop",)}, "'Shop' names no namespaces"),
        ({"namespaces": ("team-{a,b}",)}, "a glob of them with"),
        ({"namespaces": ("",)}, "names no namespaces"),
        ({"namespaces": ("a" * 64,)}, "names no namespaces"),
        ({"namespaces": (7,)}, "a tuple of names"),
        ({"namespaces_labelled": "tier in prod"}, "namespaces_labelled: "),
        ({"namespaces_labelled": 7}, "namespaces_labelled"),
        ({"namespaces": ("a",), "namespaces_labelled": "tier=prod"}, "do not go together"),
    ],
)
def test_what_is_no_scope_is_refused_with_the_way_out(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match="amespaces") as caught:
        Options(**options)
    assert words in str(caught.value)


def test_many_names_are_a_short_line() -> None:
    assert names_of(["b", "a"]) == "a, b"
    assert names_of(f"n{number}" for number in range(5)) == "n0, n1, n2, n3, n4"
    assert names_of(f"n{number}" for number in range(6)) == "n0, n1, n2, n3, n4 and 1 more"
    assert names_of(f"n{number}" for number in range(9)) == "n0, n1, n2, n3, n4 and 4 more"
