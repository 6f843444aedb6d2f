from __future__ import annotations

import copy

from kopylite.objects import OwnerReference, Unstructured


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


def test_copies_keep_the_type() -> None:
    obj = Unstructured(metadata={"name": "a"})
    twin = copy.deepcopy(obj)
    twin.metadata["name"] = "b"
    assert isinstance(twin, Unstructured)
    assert (obj.name, twin.name) == ("a", "b")
