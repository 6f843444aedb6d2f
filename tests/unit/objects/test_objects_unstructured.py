from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kopylite.objects import OwnerReference, Unstructured
from kopylite.objects.reading import bytes_of, read_from
from kopylite.objects.unstructured import misfit, unreadable


def test_reading_a_shortcut_of_an_empty_object_adds_nothing() -> None:
    obj = Unstructured()
    values = (obj.api_version, obj.kind, obj.name, obj.namespace, obj.uid, obj.resource_version)
    assert values == ("",) * 6
    assert (obj.metadata, obj.labels, obj.annotations, obj.spec, obj.status) == ({}, {}, {}, {}, {})
    assert (obj.owner_references, obj.finalizers, obj.generation, obj.deletion_timestamp) == ([], [], 0, None)
    assert obj == {}


def test_nulls_count_as_absent() -> None:
    obj = Unstructured(metadata={"labels": None, "finalizers": None, "ownerReferences": None, "name": None}, spec=None)
    assert (obj.labels, obj.finalizers, obj.owner_references, obj.name, obj.spec) == ({}, [], [], "", {})
    assert Unstructured(metadata=None).name == ""


def test_the_shortcuts_read_the_wire_form() -> None:
    obj = Unstructured(
        apiVersion="v1",
        kind="ConfigMap",
        metadata={
            "name": "a",
            "namespace": "b",
            "uid": "u",
            "resourceVersion": "5",
            "generation": 3,
            "labels": {"x": "y"},
            "annotations": {"p": "q"},
            "finalizers": ["f"],
            "deletionTimestamp": "2026-01-31T12:00:00Z",
        },
        status={"ready": True},
    )
    assert (obj.api_version, obj.kind, obj.namespace, obj.name) == ("v1", "ConfigMap", "b", "a")
    assert (obj.uid, obj.resource_version, obj.generation) == ("u", "5", 3)
    assert (obj.labels, obj.annotations, obj.finalizers) == ({"x": "y"}, {"p": "q"}, ["f"])
    assert obj.deletion_timestamp == "2026-01-31T12:00:00Z"
    assert obj.status == {"ready": True}


def test_present_parts_are_the_objects_own() -> None:
    obj = Unstructured(metadata={"labels": {}}, spec={})
    obj.labels["a"] = "b"
    obj.spec["replicas"] = 1
    assert obj == {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}}


def test_one_broken_owner_reference_hides_no_other() -> None:
    good = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    obj = Unstructured(metadata={"ownerReferences": ["nonsense", {"uid": 7}, None, good]})
    assert obj.owner_references == [OwnerReference("v1", "Pod", "p", "u", controller=True)]


class Widget(Unstructured):
    """A class of the user's own."""


@pytest.mark.parametrize("cls", [Unstructured, Widget])
@pytest.mark.parametrize(
    "twin_of",
    [
        lambda obj: obj.copy(),
        copy.copy,
        copy.deepcopy,
        lambda obj: pickle.loads(pickle.dumps(obj)),
        lambda obj: obj | {},
        lambda obj: {} | obj,
    ],
    ids=["copy()", "copy.copy", "deepcopy", "pickle", "|", "reversed |"],
)
def test_copies_keep_the_class_and_what_was_read(cls: type[Unstructured], twin_of: Callable[[Any], Any]) -> None:
    obj = cls(metadata={"name": "a"})
    read_from(obj, b"{}")
    twin = twin_of(obj)
    assert type(twin) is cls
    assert twin == obj
    assert twin is not obj
    assert bytes_of(twin) == b"{}"
    twin["kind"] = "Widget"
    assert "kind" not in obj


def test_a_union_has_what_the_right_side_says() -> None:
    obj = Widget(metadata={"name": "a"}, spec=1)
    assert obj | {"spec": 2} == {"metadata": {"name": "a"}, "spec": 2}
    assert {"spec": 2, "kind": "x"} | obj == {"metadata": {"name": "a"}, "spec": 1, "kind": "x"}
    assert obj["spec"] == 1
    with pytest.raises(TypeError):
        obj | [("spec", 2)]  # type: ignore[operator]


def test_a_deep_copy_shares_nothing() -> None:
    obj = Unstructured(metadata={"name": "a"})
    twin = copy.deepcopy(obj)
    twin.metadata["name"] = "b"
    assert (obj.name, twin.name) == ("a", "b")


@pytest.mark.parametrize("other", [3, [("a", 1)]])
def test_a_union_is_one_of_maps(other: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        other | Unstructured()
    with pytest.raises(TypeError, match="unsupported operand"):
        Unstructured() | other


@pytest.mark.parametrize("part", ["namespace", "name", "uid", "resourceVersion"])
def test_what_is_no_text_in_the_place_of_one_is_taken_out_of_the_object_of_an_error(part: str) -> None:
    document = {"apiVersion": 1, "kind": [], "metadata": {"name": "n", "namespace": "ns", part: 5}}
    error = misfit(document, "odd", "Thing")
    assert error.object is not None
    assert (error.object.api_version, error.object.kind, error.object.metadata.get(part)) == ("", "", None)
    assert document["metadata"] == {"name": "n", "namespace": "ns", part: 5}


def test_an_error_has_the_object_if_at_least_its_name_could_be_read() -> None:
    named = unreadable(b'{"metadata":{"name":"n"},"spec":[]}', RecursionError(), "Thing")
    assert named.object is not None
    assert named.object.name == "n"
    assert unreadable(b"{", ValueError(), "Thing").object is None
    assert unreadable(b'{"metadata":{}}', ValueError(), "Thing").object is None


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"deletionTimestamp": "2026-01-31T12:00:00Z", "finalizers": ["a/b", 5]}, "held by a/b, 5"),
        ({"deletionTimestamp": "2026-01-31T12:00:00Z"}, ""),
        ({"deletionTimestamp": "2026-01-31T12:00:00Z", "finalizers": "a/b"}, ""),
        ({"finalizers": ["a/b"]}, ""),
    ],
)
def test_an_error_tells_what_holds_an_object_that_is_being_deleted(metadata: dict[str, Any], told: str) -> None:
    error = misfit({"kind": "Thing", "metadata": {"name": "n", **metadata}}, "odd", "Thing")
    end = f" (it is being deleted, and {told})" if told else ""
    assert str(error).endswith(f"Thing n does not fit its model: odd{end}")
