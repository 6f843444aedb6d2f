from __future__ import annotations

from typing import Any

import pytest

from kopylite.sweep.guests import FINALIZERS, grown_lists, has_guest, with_guest, without_guest


def obj(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **parts}


@pytest.mark.parametrize(
    ("before", "after", "pointers"),
    [
        (obj(data={"m": "a"}), obj(data={"m": "a,b"}), ["/data/m"]),
        (obj(data={"m": "a"}), obj(data={"m": "b"}), []),
        (obj(data={"m": ""}), obj(data={"m": "a"}), []),
        (obj(subjects=[{"name": "a"}]), obj(subjects=[{"name": "a"}, {"name": "b"}]), ["/subjects"]),
        (obj(subjects=[{"x": 1}]), obj(subjects=[{"x": 1}, {"x": 2}]), []),  # nobody knows what a guest looks like
        (obj(status={"l": ["a"]}), obj(status={"l": ["a", "b"]}), []),
        (obj(), {**obj(), "metadata": {"name": "a", "finalizers": ["x/y"]}}, [FINALIZERS]),
    ],
)
def test_lists_that_grow_have_room_for_others(before: Any, after: Any, pointers: list[str]) -> None:
    assert [*grown_lists(before, after)] == pointers


@pytest.mark.parametrize(
    ("there", "pointer"),
    [
        (obj(data={"a/b": "x,y"}), "/data/a~1b"),
        (obj(subjects=[{"name": "a", "kind": "User"}]), "/subjects"),
        (obj(), FINALIZERS),
        (obj(spec={"list": ["a"]}), "/spec/list"),
    ],
)
def test_a_guest_is_seen_and_leaves_no_trace(there: Any, pointer: str) -> None:
    changed = with_guest(there, pointer)
    assert changed is not None
    assert has_guest(changed, pointer)
    assert not has_guest(there, pointer)
    left = without_guest(changed, pointer)
    left["metadata"] = {k: v for k, v in left["metadata"].items() if v}
    assert left == there


def test_where_there_is_no_list_there_is_no_guest() -> None:
    assert with_guest(obj(), "/data/m") is None
    assert not has_guest(obj(data="x"), "/data/m/n")
    assert without_guest(obj(), "/data/m") == obj()
