from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache import Record
from kopylite.diagnostics.hotloop import CHANGES, QUIET_SECONDS, SAMPLES, WINDOW_SECONDS, HotLoops, differences
from kopylite.objects import Kind

SHOP = Kind("example.com/v1", "Shop")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def record(version: int, body: dict[str, Any], name: str = "a") -> Record:
    body = body | {"metadata": {"name": name, "resourceVersion": str(version)}}
    return Record("default", name, f"uid-{name}", str(version), 0, None, (), (), None, json.dumps(body).encode())


def play(
    bodies: list[dict[str, Any]], *, every: float, start: float = 1000.0, loops: HotLoops | None = None
) -> list[str]:
    """The reports about an object that takes these bodies, one after the other."""
    loops = loops or HotLoops(SHOP)
    records = [record(version, body) for version, body in enumerate(bodies, start=1)]
    changes = enumerate(pairwise(records))
    reports = [loops.changed(old, new, start + i * every) for i, (old, new) in changes]
    return [report for report in reports if report is not None]


def test_a_time_stamp_in_the_status_is_named() -> None:
    bodies = [{"status": {"checked": f"12:00:{i}", "ready": True}} for i in range(CHANGES + 50)]
    [report] = play(bodies, every=0.01)
    assert report.startswith(f"hot loop: Shop default/a changed {CHANGES + SAMPLES} times in 1.1 s.")
    assert "status.checked is new each time (12:00:101 → 12:00:102 → 12:00:103)" in report
    assert "status.ready" not in report
    assert "resourceVersion" not in report


def test_two_writers_that_disagree_are_told_apart_from_one_that_counts() -> None:
    bodies = [{"spec": {"replicas": 2 + 5 * (i % 2)}} for i in range(CHANGES + 50)]
    [report] = play(bodies, every=0.01)
    assert "spec.replicas goes back and forth (7 → 2 → 7 → 2): two writers disagree" in report


def test_a_change_every_half_second_is_no_loop() -> None:
    assert play([{"spec": {"n": i}} for i in range(1000)], every=0.5) == []


def test_one_object_is_reported_once_in_five_minutes() -> None:
    bodies = [{"spec": {"n": i}} for i in range(int(QUIET_SECONDS / 0.02) + 2000)]
    assert len(play(bodies, every=0.02)) == 2


def test_many_objects_that_change_once_are_no_loop() -> None:
    loops = HotLoops(SHOP)
    for i in range(10 * CHANGES):
        old, new = record(1, {"n": 1}, f"obj-{i}"), record(2, {"n": 2}, f"obj-{i}")
        assert loops.changed(old, new, 1000.0 + i * 0.001) is None


def test_what_changed_long_ago_is_not_remembered() -> None:
    loops = HotLoops(SHOP)
    half = [{"n": i} for i in range(CHANGES - 10)]
    assert play(half, every=0.01, loops=loops) == []
    assert play(half, every=0.01, start=1000.0 + 2 * WINDOW_SECONDS, loops=loops) == []


def test_the_values_of_a_secret_are_not_shown() -> None:
    bodies = [{"data": {"password": f"hunter{i}"}} for i in range(CHANGES + 50)]
    [report] = play(bodies, every=0.01, loops=HotLoops(Kind("v1", "Secret")))
    assert "data.password" in report
    assert "hunter" not in report


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
