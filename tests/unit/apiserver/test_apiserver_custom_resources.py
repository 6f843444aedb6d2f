"""The strategy of custom resources. The texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kopylite.apiserver.crd.custom_resources import CustomResourceStrategy, finalizer_warnings
from kopylite.apiserver.resources.registry import ScalePaths
from kopylite.errors import BadRequest

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string"},
        "replicas": {"type": "integer", "default": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    },
    "x-kubernetes-validations": [{"rule": "self.replicas < 5"}],
}
STATUS: dict[str, Any] = {"type": "object", "properties": {"phase": {"type": "string", "enum": ["Up", "Down"]}}}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}


def strategy(**options: Any) -> CustomResourceStrategy:
    return CustomResourceStrategy("example.com/v1", "Widget", SCHEMA, **{"has_status": True, **options})


def widget(spec: Any, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec, **members}


def texts(found: list[Any]) -> list[str]:
    return [str(error) for error in found]


def test_decoding_drops_unknown_fields_and_nulls() -> None:
    obj = widget({"image": "a", "zz": 1, "tags": None}, extra=1)
    obj["metadata"]["foo"] = 1
    assert strategy().decode(obj) == ["metadata.foo", "extra", "spec.zz"]
    assert obj == widget({"image": "a"})


def test_decoding_refuses_metadata_of_the_wrong_type() -> None:
    obj = widget({})
    obj["metadata"]["labels"] = {"a": 1}
    with pytest.raises(BadRequest) as caught:
        strategy().decode(obj)
    assert caught.value.message == (
        'Widget in version "v1" cannot be handled as a Widget: '
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )


def test_a_create_with_a_status_subresource_loses_its_status() -> None:
    obj = widget({}, status={"phase": "Up"})
    strategy(has_status=False).prepare_create(obj)
    assert obj["status"] == {"phase": "Up"}
    strategy().prepare_create(obj)
    assert "status" not in obj


def test_the_main_endpoint_keeps_the_stored_status() -> None:
    obj, old = widget({}, status={"phase": "Down"}), widget({}, status={"phase": "Up"})
    strategy().prepare_update(obj, old, "")
    assert obj["status"] == {"phase": "Up"}
    strategy().prepare_update(obj, widget({}), "")
    assert "status" not in obj


def test_the_status_endpoint_takes_status_and_managed_fields_only() -> None:
    old = widget({"image": "old"})
    old["metadata"] |= {"labels": {"a": "old"}, "managedFields": [{"manager": "old"}]}
    obj = widget({"image": "new"}, status={"phase": "Up"})
    obj["metadata"] |= {"labels": {"a": "new"}, "managedFields": [{"manager": "new"}]}
    strategy().prepare_update(obj, old, "status")
    assert obj["spec"] == {"image": "old"}
    assert obj["metadata"] == {"name": "w", "labels": {"a": "old"}, "managedFields": [{"manager": "new"}]}
    assert obj["status"] == {"phase": "Up"}
    obj["status"]["phase"] = "Down"
    assert "status" not in old


def test_rules_run_when_the_shape_is_right() -> None:
    assert texts(strategy().validate_create(widget({"image": "a", "replicas": 9}))) == [
        "spec: Invalid value: failed rule: self.replicas < 5"
    ]
    assert texts(strategy().validate_create(widget({"replicas": 9}))) == [
        "spec.image: Required value",
        (
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation"
        ),
    ]


def test_duplicates_that_are_stored_already_stop_no_update() -> None:
    old = widget({"image": "a", "replicas": 1, "tags": ["x", "x"]})
    same = widget({"image": "b", "replicas": 1, "tags": ["x", "x"]})
    assert strategy().validate_update(same, old, "") == []
    clean = widget({"image": "a", "replicas": 1, "tags": ["x"]})
    assert texts(strategy().validate_update(same, clean, "")) == ['spec.tags[1]: Duplicate value: "x"']


def test_a_status_update_validates_the_status() -> None:
    old = widget({"replicas": 1})
    assert strategy().validate_update(widget({"replicas": 1}, status={"phase": "Up"}), old, "status") == []
    found = strategy().validate_update(widget({"replicas": 1}, status={"phase": "Odd"}), old, "status")
    assert texts(found)[0] == 'status.phase: Unsupported value: "Odd": supported values: "Up", "Down"'


def test_replicas_are_small_natural_numbers() -> None:
    scaled = strategy(scale=ScalePaths(("spec", "replicas"), ("status", "count"), ("status", "selector")))

    def errors(spec: Any, status: Any) -> list[str]:
        return texts(scaled.validate_create(widget({"image": "a", **spec}, status=status)))

    assert errors({"replicas": 1}, {"count": 1, "selector": "a=b"}) == []
    assert errors({"replicas": -1}, {}) == [".spec.replicas: Invalid value: -1: should be a non-negative integer"]
    too_many = ".status.count: Invalid value: 2147483648: should be less than or equal to 2147483647"
    assert errors({"replicas": 1}, {"count": 2**31}) == [too_many]
    assert errors({"replicas": 1}, {"count": "x"}) == [
        ".status.count: Invalid value: 0: .status.count accessor error: x is of the type string, expected int64"
    ]
    assert errors({"replicas": 1}, {"selector": 5}) == [
        '.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string'
    ]


def test_a_stored_object_of_another_version_is_shown_in_this_one() -> None:
    stored = widget({"image": "a", "old": 1}) | {"apiVersion": "example.com/v1alpha1"}
    assert strategy().from_stored(stored, "example.com/v1alpha1#x") == widget({"image": "a", "replicas": 1})


def test_new_finalizers_are_warned_of_once() -> None:
    obj, old = widget({"replicas": 1}), widget({"replicas": 1})
    obj["metadata"]["finalizers"] = old["metadata"]["finalizers"] = ["short"]
    assert strategy().warnings(obj, old) == []
    assert strategy().warnings(obj, None) == [
        (
            'metadata.finalizers: "short": prefer a domain-qualified finalizer name to avoid accidental conflicts with '
            "other finalizer writers"
        )
    ]


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion", "example.com/x"])
def test_good_finalizers_need_no_warning(finalizer: str) -> None:
    assert finalizer_warnings(finalizer) == []


def test_a_dotted_finalizer_should_have_a_path() -> None:
    (text,) = finalizer_warnings("x.example.com")
    assert "prefer a domain-qualified finalizer name including a path (/)" in text


def test_an_update_tells_the_rules_that_an_unchanged_part_breaks() -> None:
    obj, old = widget({"image": "b", "replicas": 9}), widget({"image": "a", "replicas": 9})
    obj["spec"]["image"] = "a"
    obj["metadata"]["labels"] = {"x": "y"}
    assert strategy().validate_update(obj, old, "") == []
    assert strategy().warnings(obj, old) == ["spec: Invalid value: failed rule: self.replicas < 5"]


def test_names_are_dns_subdomains() -> None:
    assert strategy().name_errors("a.b-c", False) == []
    assert strategy().name_errors("a-", True) == []
    assert strategy().name_errors("A", False) != []


def test_the_topology_covers_metadata() -> None:
    schema = strategy().schema
    metadata = schema.properties["metadata"]
    assert metadata.properties["finalizers"].list_type == "set"
    assert metadata.properties["ownerReferences"].list_map_keys == ("uid",)
    assert schema.properties["spec"].properties["tags"].list_type == "set"


class TestVersions:
    """With conversion strategy None, objects of all versions pass through the schema of the storage version."""

    OLD: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"default": "x"}, "old": {"type": "string"}}}},
    }
    NEW: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {}, "new": {"default": "y"}}}},
    }

    def version(self, name: str, storage: str = "example.com/v1") -> CustomResourceStrategy:
        schemas = {"example.com/v1": self.OLD, "example.com/v2": self.NEW}
        return CustomResourceStrategy(
            name,
            "Widget",
            schemas[name],
            has_status=False,
            versions=schemas,
            storage=storage,
            stored={"example.com/v1", storage},
        )

    def test_an_object_is_read_by_the_schema_that_it_is_stored_in(self) -> None:
        stored = widget({"old": "o"})
        shown = self.version("example.com/v2").from_stored(stored, "example.com/v1#x")
        assert shown == widget({"a": "x"}) | {"apiVersion": "example.com/v2"}

    def test_a_write_in_another_version_keeps_what_the_storage_version_knows(self) -> None:
        obj = widget({"a": "1", "new": "n"}) | {"apiVersion": "example.com/v2"}
        self.version("example.com/v2").prepare_create(obj)
        assert obj["spec"] == {"a": "1"}
        obj = widget({"a": "1", "old": "n"})
        self.version("example.com/v1").prepare_create(obj)
        assert obj["spec"] == {"a": "1", "old": "n"}

    def test_an_old_object_is_shown_as_it_was_when_another_version_becomes_the_storage_version(self) -> None:
        shown = self.version("example.com/v1", "example.com/v2").from_stored(widget({"old": "o"}), "example.com/v1#x")
        assert shown == widget({"old": "o", "a": "x"})

    def test_an_object_of_a_version_that_was_never_stored_is_read_by_the_storage_version(self) -> None:
        written = widget({}) | {"apiVersion": "example.com/v2"}
        shown = self.version("example.com/v1").from_stored(written, "example.com/v2#x")
        assert shown == widget({"a": "x"})
