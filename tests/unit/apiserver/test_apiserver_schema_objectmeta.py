"""Metadata as the server decodes it. The texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.objectmeta import MetadataError, coerce_embedded, decode_metadata, embedded_errors

EMBEDDED = SchemaNode({"properties": {"e": {"x-kubernetes-embedded-resource": True}}})


def test_unknown_fields_and_nulls_are_dropped() -> None:
    metadata: dict[str, Any] = {
        "name": "a", "foo": 1, "labels": None, "ownerReferences": [{"uid": "1", "x": 1, "controller": True}],
    }  # fmt: skip
    assert decode_metadata(metadata) == ["metadata.foo", "metadata.ownerReferences[0].x"]
    assert metadata == {"name": "a", "ownerReferences": [{"uid": "1", "controller": True}]}


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        (
            {"labels": []},
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        ({"name": 1}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        ({"generation": "x"}, "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"),
        (
            {"finalizers": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
        ),
        ([], "json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
        (
            {"creationTimestamp": "x"},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
    ],
)
def test_a_wrong_type_is_told_as_by_gos_decoder(metadata: Any, text: str) -> None:
    with pytest.raises(MetadataError) as caught:
        decode_metadata(metadata)
    assert str(caught.value) == text


def test_metadata_of_embedded_resources_is_pruned() -> None:
    obj = {"e": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "bar": 1}, "free": 1}}
    assert coerce_embedded(obj, EMBEDDED) == ["e.metadata.bar"]
    assert obj["e"]["metadata"] == {"name": "a"}


def test_a_wrong_type_in_an_embedded_resource_names_the_field() -> None:
    with pytest.raises(MetadataError, match=r"^e\.apiVersion: Invalid value: 1: must be a string$"):
        coerce_embedded({"e": {"apiVersion": 1}}, EMBEDDED)
    with pytest.raises(MetadataError, match=r'^e\.metadata: Invalid value: \{"name":1\}: json: cannot'):
        coerce_embedded({"e": {"metadata": {"name": 1}}}, EMBEDDED)


def test_embedded_resources_need_a_type() -> None:
    assert [str(e) for e in embedded_errors({"e": {}}, EMBEDDED)] == [
        "e.apiVersion: Required value",
        "e.kind: Required value",
    ]
    assert embedded_errors({"e": {"apiVersion": "v1", "kind": "A"}}, EMBEDDED) == []


def test_embedded_names_and_labels_are_checked() -> None:
    obj = {"e": {"apiVersion": "a/b/c", "kind": "_", "metadata": {"name": "a/", "labels": {"a b": "c d"}}}}
    assert [error.field for error in embedded_errors(obj, EMBEDDED)] == [
        "e.apiVersion", "e.kind", "e.metadata.name", "e.metadata.labels", "e.metadata.labels",
    ]  # fmt: skip
