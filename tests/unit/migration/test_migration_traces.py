from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopylite.client.patches import merge_apply
from kopylite.migration.traces import (
    FINALIZER,
    LAST_HANDLED,
    PREFIX,
    Marks,
    essence_of,
    last_handled,
    object_patch,
    status_patch,
    traces_of,
)

NAMES = st.sampled_from([FINALIZER, "KopfFinalizerMarker", "other.example.com/f", f"{PREFIX}/{LAST_HANDLED}",
                         f"{PREFIX}/create_fn", f"{PREFIX}x/no", "kopf", "a"])  # fmt: skip
VALUES = st.none() | st.integers() | st.text(max_size=3) | st.lists(NAMES, max_size=3)
MAPS = st.dictionaries(NAMES, VALUES, max_size=4)
KOPFS = st.dictionaries(st.sampled_from(["progress", "dummy", LAST_HANDLED, "mine"]), VALUES, max_size=3)


@given(
    st.lists(NAMES, max_size=4), MAPS, st.dictionaries(st.sampled_from(["kopf", "phase"]), KOPFS | VALUES, max_size=2),
    st.booleans(),
)  # fmt: skip
def test_what_is_taken_off_is_kopfs_and_everything_else_stays(
    finalizers: list[str], annotations: dict[str, Any], status: dict[str, Any], release: bool
) -> None:
    obj = {"metadata": {"name": "a", "resourceVersion": "7", "uid": "u", "finalizers": finalizers,
                        "annotations": annotations}, "spec": {"a": 1}, "status": status}  # fmt: skip
    before, traces = copy.deepcopy(obj), traces_of(obj, Marks())
    after = merge_apply(merge_apply(obj, object_patch(traces, release=release)), status_patch(traces))
    assert obj == before
    wanted = copy.deepcopy(obj)
    metadata: Any = wanted["metadata"]
    kept = {FINALIZER, "KopfFinalizerMarker"} if release else set()
    metadata["finalizers"] = [each for each in finalizers if each not in kept]
    metadata["annotations"] = {k: v for k, v in annotations.items() if not k.startswith(f"{PREFIX}/")}
    own = status.get("kopf")
    if isinstance(own, dict) and set(own) <= {"progress", "dummy", LAST_HANDLED}:
        wanted["status"] = {k: v for k, v in status.items() if k != "kopf"}
    assert after == wanted
    left = traces_of(after, Marks())
    assert not left.annotations
    assert not left.status
    assert not (release and left.finalizers)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "finalizers", "status"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["metadata", "status", "spec"]), JSON))
def test_an_odd_object_is_looked_at_all_the_same(obj: dict[str, Any]) -> None:
    traces_of(obj, Marks())
    last_handled(obj, PREFIX)
    essence_of(obj)


def test_a_patch_names_the_version_that_was_looked_at() -> None:
    obj = {"metadata": {"resourceVersion": "7", "uid": "u", "annotations": {f"{PREFIX}/x": "1"}}}
    assert object_patch(traces_of(obj, Marks()), release=True)["metadata"]["resourceVersion"] == "7"
    assert not object_patch(traces_of({"metadata": {"resourceVersion": "7"}}, Marks()), release=True)


def test_names_of_marks_can_be_others() -> None:
    marks = Marks(("a/b",), ("my.example.com",), ("mine",))
    obj = {"metadata": {"finalizers": ["a/b", FINALIZER], "annotations": {"my.example.com/x": "", f"{PREFIX}/y": ""}},
           "status": {"mine": {"progress": {}}, "kopf": {}}}  # fmt: skip
    found = traces_of(obj, marks)
    assert (found.finalizers, found.annotations, found.status) == (("a/b",), ("my.example.com/x",), ("mine",))


def test_an_object_that_is_being_deleted_is_guarded_by_kopfs_finalizer() -> None:
    metadata = {"finalizers": [FINALIZER]}
    assert not traces_of({"metadata": metadata}, Marks()).guards
    assert traces_of({"metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}}, Marks()).guards


def test_what_kopf_handled_last_is_compared_as_kopf_would() -> None:
    obj = {
        "apiVersion": "v1", "kind": "X", "spec": {"a": 1}, "status": {"b": 2},
        "metadata": {"name": "x", "labels": {"l": "1"}, "annotations": {
            f"{PREFIX}/{LAST_HANDLED}": json.dumps({"spec": {"a": 1}, "metadata": {"labels": {"l": "1"}}}) + "\n",
            "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    }  # fmt: skip
    assert last_handled(obj, PREFIX) == (True, essence_of(obj))
    assert last_handled({"status": {"kopf": {LAST_HANDLED: "{"}}}, PREFIX) == (True, None)
    assert last_handled({}, PREFIX) == (False, None)
