from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache import Record
from kopylite.diagnostics.hotloop import (
    DEPTH,
    OVER_SECONDS,
    PATIENCE,
    SAMPLES,
    SUSPECTS,
    WINDOW,
    HotLoops,
    differences,
)
from kopylite.objects import Kind
from kopylite.reconcile import chains as chains_module
from kopylite.reconcile.chains import ChainLink, Chains, Version
from kopylite.reconcile.request import Request

SHOP = Kind("example.com/v1", "Shop")
KEY = Request("default", "a")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def record(version: int, body: bytes, name: str) -> Record:
    return Record("default", name, f"uid-{name}", str(version), 0, None, (), (), None, body)


class World:
    """Objects, and the runs of controllers that are caused by what is written to them."""

    def __init__(self, kind: Kind = SHOP) -> None:
        self.kind, self.chains, self.loops = kind, Chains(), HotLoops()
        self.stored: dict[str, Record] = {}
        self.version = 0
        self.told: list[str] = []
        self.now = 1000.0

    def write(self, name: str, body: object, step: ChainLink | None = None) -> Version:
        """Somebody writes an object; `step`: it is this run."""
        self.version += 1
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        old, new = self.stored.get(name), record(self.version, raw, name)
        self.stored[name] = new
        if step is not None:
            self.chains.wrote(step, Version(new.uid, new.resource_version))
        if old is not None:
            self.loops.changed(self.kind, old, new)
        return Version(new.uid, new.resource_version)

    def run(self, causes: Iterable[Version], writes: dict[str, object], controller: str = "shop") -> list[Version]:
        """A run that was caused by these changes (none: by something else) and writes these objects."""
        step = self.chains.step(controller, KEY, 0, tuple(causes)) if writes else None
        versions = [self.write(name, body, step) for name, body in writes.items()]
        told = self.loops.controller(controller).ran(step, self.now)
        if told is not None:
            self.told.append(told)
        return versions


@pytest.mark.parametrize(
    ("objects", "seconds"), [*itertools.product([1, 2, 50], [0.001, 1.0, 100.0]), (2 * WINDOW, 1.0)]
)
def test_a_status_loop_is_told_once_however_many_objects_and_however_slow(objects: int, seconds: float) -> None:
    world = World()
    names = [f"a{number}" for number in range(objects)]
    causes = {name: [world.write(name, {"status": {"n": 0, "ready": True}})] for name in names}
    for turn in range(1, 60):
        for name in names:
            world.now += seconds
            assert not [*world.loops.over(world.now)]
            causes[name] = world.run(causes[name], {name: {"status": {"checked": f"12:00:{turn}", "ready": True}}})
        if objects == 1 and turn == DEPTH:
            assert not world.told, "no hasty word"
    [told] = world.told
    assert "runs of controller shop were caused by nothing but its own writes, and wrote again" in told
    assert "for example Shop default/a" in told
    assert "status.checked is new each time (12:00:" in told
    assert "ready" not in told


def test_two_controllers_that_disagree_are_both_named() -> None:
    world = World()
    causes = [world.write("a", {"spec": {"replicas": 1}})]
    for turn in range(60):
        causes = world.run(causes, {"a": {"spec": {"replicas": 2 + 5 * (turn % 2)}}}, ("scaler", "shop")[turn % 2])
    [told] = world.told
    assert "of controller shop" in told
    assert "those of controller scaler" in told
    assert "spec.replicas goes back and forth (" in told
    assert "two writers disagree" in told


def test_a_loop_through_an_object_that_is_owned_is_one() -> None:
    world = World()
    causes = [world.write("child", {"n": 0})]
    for turn in range(60):
        causes = world.run(causes, {"child": {"n": turn}, "parent": {"status": {"n": turn}}})
    assert len(world.told) == 1


def test_a_loop_of_one_object_is_found_beside_many_runs_that_write_nothing() -> None:
    world = World()
    causes = [world.write("a", {"n": 0})]
    for turn in range(200):
        causes = world.run(causes, {"a": {"n": turn}})
        for _ in range(50):
            world.run([], {})
    assert len(world.told) == 1


@pytest.mark.parametrize("objects", [1, 50])
@pytest.mark.parametrize("runs", [1, 2, 5, DEPTH])
def test_a_status_that_converges_is_no_loop(objects: int, runs: int) -> None:
    world = World()
    for spec in range(30):  # edits of the user
        causes = {f"a{n}": [world.write(f"a{n}", {"spec": spec})] for n in range(objects)}
        for run in range(runs):
            causes = {name: world.run(cause, {name: {"spec": spec, "phase": run}}) for name, cause in causes.items()}
        for cause in causes.values():
            world.run(cause, {})
    assert not world.told


@pytest.mark.parametrize("children", [20, 300])
def test_making_children_one_after_the_other_is_no_loop(children: int) -> None:
    world = World()
    causes = {f"a{n}": [world.write(f"a{n}", {})] for n in range(20)}
    for child in range(children):
        causes = {
            name: world.run(cause, {f"{name}-{child}": {}, name: {"status": {"children": child}}})
            for name, cause in causes.items()
        }
    for cause in causes.values():
        world.run(cause, {})
    assert not world.told


def test_making_children_without_end_is_a_loop() -> None:
    world = World()
    causes = [world.write("a", {})]
    for child in range(1200):
        causes = world.run(causes, {f"child-{child}": {}, "a": {"status": {"children": child}}})
    assert len(world.told) == 1


def test_a_rollout_and_polling_are_no_loops() -> None:
    """Others move what is watched, or a timer runs the key: then the run is not caused by own writes alone."""
    world = World()
    for turn in range(1000):
        others = world.write("deployment", {"status": {"ready": turn}})
        own = world.run([others], {"a": {"status": {"ready": turn}}})
        world.run([*own, world.write("deployment", {"status": {"ready": turn, "seen": 1}})], {"a": {"m": turn}})
        world.run(world.run([], {"polled": {"status": {"checked": turn}}}), {})
    assert not world.told


def test_another_replica_that_writes_too_is_not_this_one() -> None:
    ours, theirs = World(), World()
    causes = [ours.write("a", {"n": 0})]
    for turn in range(500):
        seen = theirs.run(causes, {"a": {"n": turn}})
        foreign = [Version("uid-a", f"x{version.version}") for version in seen]
        causes = ours.run(foreign, {"a": {"n": -turn}})
        causes = [Version("uid-a", f"x{version.version}") for version in causes]
    assert not ours.told
    assert not theirs.told


def test_a_loop_that_ended_is_told_of_and_the_next_one_is_news() -> None:
    world = World()
    for _ in range(2):
        causes = [world.write("a", {"n": -1})]
        for turn in range(200):
            world.now += 1.0
            causes = world.run(causes, {"a": {"n": turn}})
            assert not [*world.loops.over(world.now)]
        assert [*world.loops.over(world.now + OVER_SECONDS - 1)] == []
        world.now += OVER_SECONDS
        [ended] = world.loops.over(world.now)
        assert ended.startswith("the hot loop of controller shop has ended, after ")
        assert [*world.loops.over(world.now + 1000)] == []
    assert len(world.told) == 2


def test_the_values_of_a_secret_are_not_shown() -> None:
    world = World(Kind("v1", "Secret"))
    causes = [world.write("a", {})]
    for turn in range(60):
        causes = world.run(causes, {"a": {"data": {"password": f"hunter{turn}"}}})
    [told] = world.told
    assert "data.password" in told
    assert "hunter" not in told


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"a":' * 700 + b"%d" + b"}" * 700,
        b"not json",
        b'{"\\u001b[2J":"\\u001b[31m\\ud800 %d"}',
        json.dumps({"list": list(range(20_000))}).encode(),
    ],
    ids=["too deep to decode", "deep", "no JSON", "control characters", "long"],
)
def test_an_object_that_cannot_be_compared_is_told_of_all_the_same(body: bytes) -> None:
    world = World()
    causes = [world.write("a", body)]
    for turn in range(PATIENCE + DEPTH + 5):
        causes = world.run(causes, {"a": body.replace(b"%d", b"%d" % turn)})
    [told] = world.told
    assert "Shop default/a" in told
    assert told.isprintable()
    assert len(told) < 2000


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains_module, "REMEMBERED", 500)
    world = World()
    for turn in range(3):
        for name in range(500):
            world.run([], {f"a{name}": {"n": turn}})
    assert len(world.chains) == 500
    causes = {f"b{n}": [world.write(f"b{n}", {})] for n in range(200)}
    for turn in range(DEPTH):
        causes = {name: world.run(cause, {name: {"n": turn}}) for name, cause in causes.items()}
    assert len(world.loops._suspects) <= SUSPECTS
    assert all(suspect.samples <= SAMPLES for suspect in world.loops._suspects.values())


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.booleans()), max_size=4 * WINDOW))
def test_a_chain_is_as_deep_as_the_runs_that_nothing_else_caused(turns: list[tuple[bool, str, bool]]) -> None:
    """Against a model that counts by hand."""
    world = World()
    depth, seen, causes = -1, set[str](), list[Version]()
    for foreign, name, writes in turns:
        if foreign or not causes:
            causes, depth = [world.write("other", {})], -1
        step = world.chains.step("shop", KEY, 0, tuple(causes))
        assert step.depth == depth + 1
        if not writes:
            causes = []
            continue
        depth = -1 if name not in seen else depth + 1
        seen.add(name)
        causes = [world.write(name, {}, step)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 2}, [("a", 2)]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, [("a.b", "nothing"), ("a.c", 1)]),
        ({"l": [1, 2]}, {"l": [1, 3]}, [("l[1]", 3)]),
        ({"l": [1]}, {"l": [1, 2]}, [("l", [1, 2])]),
        ({"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "2"}}, []),
    ],
)
def test_differences_are_paths_with_their_new_values(old: Any, new: Any, expected: list[tuple[str, Any]]) -> None:
    assert list(differences(old, new)) == expected


@given(JSON, JSON)
def test_there_are_differences_exactly_between_what_differs(old: Any, new: Any) -> None:
    assert list(differences(old, copy.deepcopy(old))) == []
    if list(differences(old, new)) == []:
        assert old == new
