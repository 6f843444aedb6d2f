"""Edits carried over, and JSON patches: by properties, with another implementation of JSON patch as the judge."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopylite.webhooks.edits import at_path, carried, patch_of, same

NAMES = st.sampled_from(["a", "b", "c/d", "e~f", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.just(1.0), st.sampled_from(["x", "y"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def applied(document: Any, steps: list[dict[str, Any]]) -> Any:
    document = copy.deepcopy(document)
    for step in steps:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        target = document
        for name in way:
            target = target[int(name)] if isinstance(target, list) else target[name]
        if isinstance(target, list):
            if step["op"] == "add":
                target.insert(len(target) if last == "-" else int(last), step["value"])
            elif step["op"] == "remove":
                del target[int(last)]
            else:
                target[int(last)] = step["value"]
        elif step["op"] == "remove":
            del target[last]
        else:
            assert step["op"] == "add" or last in target
            target[last] = step["value"]
    return document


@given(OBJECTS, OBJECTS)
def test_a_patch_turns_one_object_into_the_other(before: Any, after: Any) -> None:
    kept = copy.deepcopy((before, after))
    assert same(applied(before, patch_of(before, after)), after)
    assert same([before, after], list(kept))


@given(OBJECTS)
def test_the_same_gives_no_patch(value: Any) -> None:
    assert patch_of(value, copy.deepcopy(value)) == []


@given(OBJECTS, OBJECTS)
def test_what_hides_nothing_is_carried_over_whole(before: Any, after: Any) -> None:
    assert same(carried(before, before, after), after)


def hidden(value: Any) -> Any:
    """What a class shows that knows no "b"."""
    if isinstance(value, dict):
        return {name: hidden(part) for name, part in value.items() if name != "b"}
    return [hidden(part) for part in value] if isinstance(value, list) else value


@given(OBJECTS)
def test_what_a_class_hides_stays_when_nothing_is_changed(came: Any) -> None:
    assert same(carried(came, hidden(came), hidden(came)), came)


@given(OBJECTS, VALUES)
def test_what_a_class_hides_stays_beside_a_change(came: Any, value: Any) -> None:
    after = {**hidden(came), "new": value}
    assert same(carried(came, hidden(came), after), {**came, "new": value})


def test_elements_keep_what_the_class_hides_wherever_they_go() -> None:
    came = [{"name": "a", "b": 1}, {"name": "c", "b": 2}, {"name": "d", "b": 3}]
    shown = hidden(came)
    assert carried(came, shown, [shown[0], shown[2]]) == [came[0], came[2]]
    assert carried(came, shown, [{"name": "new"}, *shown]) == [{"name": "new"}, *came]
    assert carried(came, shown, [shown[2], shown[0], shown[1]]) == [came[2], came[0], came[1]]
    changed = [shown[0], {**shown[1], "x": 1}, shown[2]]
    assert carried(came, shown, changed) == [came[0], {**came[1], "x": 1}, came[2]]


def test_a_default_of_the_class_is_written_only_when_it_was_changed() -> None:
    assert carried({"a": 1}, {"a": 1, "size": 3}, {"a": 2, "size": 3}) == {"a": 2}
    assert carried({"a": 1}, {"a": 1, "size": 3}, {"a": 1, "size": 4}) == {"a": 1, "size": 4}


def test_paths() -> None:
    obj = {"spec": {"ports": [{"port": 1}, {"port": 2}]}}
    assert at_path(obj, "spec.ports[1].port") == 2
    assert at_path(obj, "spec.ports[2].port") is None
    assert at_path(obj, "spec.ports.port") is None
    assert at_path(obj, "nope.at.all") is None
