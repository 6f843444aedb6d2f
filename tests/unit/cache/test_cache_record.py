"""Examples of what RecordDecoder reads; tests/properties has the general rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kopylite.cache import Record
from kopylite.cache.record import _INTERNED_VALUES, BadFrame, Bookmark, RecordDecoder
from kopylite.errors import Expired, StreamBroken
from kopylite.objects import Kind, ObjectKey, OwnerReference

POD = Kind("v1", "Pod")


def line(word: str, obj: Any, **spacing: Any) -> bytes:
    return json.dumps({"type": word, "object": obj}, **({"separators": (",", ":")} | spacing)).encode()


def pod(**metadata: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "ns"} | metadata, "spec": {}}


def decoded(obj: Any, decoder: RecordDecoder | None = None, **spacing: Any) -> Record:
    _, record = (decoder or RecordDecoder(POD)).frame(line("ADDED", obj, **spacing))
    assert isinstance(record, Record)
    return record


def test_a_bookmark_tells_its_version_and_whether_it_ends_the_initial_state() -> None:
    decoder = RecordDecoder(POD)
    plain = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    assert decoder.frame(line("BOOKMARK", plain)) == ("BOOKMARK", Bookmark("7", False))
    plain["metadata"] = {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert decoder.frame(line("BOOKMARK", plain)) == ("BOOKMARK", Bookmark("8", True))


def test_a_bookmark_of_a_built_in_kind_has_no_creation_time_and_says_so() -> None:
    # As kube-apiserver writes it up to 1.33.
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "creationTimestamp": None}}
    assert RecordDecoder(POD).frame(line("BOOKMARK", pod)) == ("BOOKMARK", Bookmark("7", False))


def test_an_error_is_the_exception_that_its_status_stands_for() -> None:
    word, error = RecordDecoder(POD).frame(line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}))
    assert word == "ERROR"
    assert isinstance(error, Expired)


def test_a_line_in_another_spelling_is_read_as_well() -> None:
    spaced = decoded(pod(managedFields=[{"manager": "m"}]), separators=(" , ", " : "))
    assert json.loads(spaced.body) == pod()
    turned = b'{"object":%b,"type":"ADDED"}' % json.dumps(pod()).encode()
    assert RecordDecoder(POD).frame(turned)[0] == "ADDED"
    more = b'{"type":"ADDED","object":%b,"more":1} ' % json.dumps(pod()).encode()
    assert RecordDecoder(POD).frame(more)[0] == "ADDED"


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"null", b'{"type":"ADDED","object":null}', b'{"type":"ADDED","object":{"metadata":{"name":""}}}',
     b'{"type":"MOVED","object":{"metadata":{"name":"a"}}}', b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}'],
)  # fmt: skip
def test_what_is_no_event_is_a_bad_frame(text: bytes) -> None:
    with pytest.raises(BadFrame, match="not a watch event"):
        RecordDecoder(POD).frame(text)


def test_a_page_with_an_item_that_is_no_object_is_refused() -> None:
    with pytest.raises(BadFrame, match=r"not a list of Pod\.v1"):
        RecordDecoder(POD).page(b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{}}]}')


@pytest.mark.parametrize("head", [b"", b'"metadata":{},', b'"metadata":{"resourceVersion":""},'])
def test_a_list_of_nobody_knows_when_is_not_taken_for_the_state(head: bytes) -> None:
    with pytest.raises(BadFrame, match="without a resourceVersion"):
        RecordDecoder(POD).page(b'{%b"items":[]}' % head)


@pytest.mark.parametrize("deep", ["", "[" * 3000 + "]" * 3000])
def test_an_object_of_another_kind_is_not_stored_as_one_of_this(deep: str) -> None:
    other = json.dumps(pod() | {"kind": "Secret"}, separators=(",", ":"))[:-1] + f',"more":{deep or 1}}}'
    with pytest.raises(BadFrame, match="an object of kind 'Secret'"):
        RecordDecoder(POD).frame(b'{"type":"ADDED","object":%b}' % other.encode())
    with pytest.raises(BadFrame, match="an object of kind 'Secret'"):
        RecordDecoder(POD).page(b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % other.encode())
    with pytest.raises(StreamBroken):
        RecordDecoder(POD).page(b"<html>")


def test_equal_labels_owners_and_namespaces_are_shared() -> None:
    decoder = RecordDecoder(POD)
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u"}
    first, second = (
        decoded(pod(name=name, labels={"app": "web"}, ownerReferences=[owner]), decoder) for name in ("one", "two")
    )
    assert first.labels == {"app": "web"}
    assert first.labels is second.labels
    assert first.owner_references is second.owner_references
    assert first.namespace is second.namespace


def test_sharing_does_not_grow_for_ever() -> None:
    decoder = RecordDecoder(POD)
    for number in range(_INTERNED_VALUES + 10):
        assert decoded(pod(labels={"pod": str(number)}), decoder).labels == {"pod": str(number)}
    assert len(decoder._labels._values) < 20


def test_one_owner_reference_of_a_wrong_shape_does_not_hide_the_others() -> None:
    good = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u", "controller": True}
    record = decoded(pod(ownerReferences=[{"name": 7}, good, "what"]))
    assert record.owner_references == (OwnerReference("v1", "Owner", "o", "u", True),)


@pytest.mark.parametrize(
    "odd", [{"labels": {"a": 1}}, {"labels": []}, {"finalizers": "f"}, {"generation": "x"}, {"ownerReferences": "o"}]
)
def test_odd_metadata_counts_as_absent_and_stops_no_other_object(odd: dict[str, Any]) -> None:
    record = decoded(pod(**odd))
    assert (record.name, record.labels, record.finalizers, record.generation) == ("p", None, (), 0)
    assert record.owner_references == ()
    page = RecordDecoder(POD).page(
        json.dumps({"metadata": {"resourceVersion": "9"}, "items": [pod(**odd), pod(name="good")]}).encode()
    )
    assert [record.name for record in page.records] == ["p", "good"]


@pytest.mark.parametrize("metadata_only", [False, True])
@pytest.mark.parametrize("kind", ["Pod", None])
def test_an_object_with_odd_metadata_is_kept_under_its_kind_as_any_other(kind: str | None, metadata_only: bool) -> None:
    """Items of a list do not name it themselves."""
    sent = {key: value for key, value in pod(labels={"a": 1}).items() if kind or key not in ("kind", "apiVersion")}
    body = json.loads(decoded(sent, RecordDecoder(POD, metadata_only=metadata_only)).body)
    assert (body["apiVersion"], body["kind"], body["metadata"]) == ("v1", "Pod", sent["metadata"])
    assert ("spec" in body) is not metadata_only


def deep(levels: int, **metadata: Any) -> bytes:
    """A pod with a field that is nested deeply, and another one behind its metadata."""
    known = {"name": "deep", "namespace": "ns", "uid": "u", "resourceVersion": "7", **metadata}
    spec = b'{"a":' + b"[" * levels + b"]" * levels + b"}"
    return b'{"kind":"Pod", "apiVersion":"v1", "spec": ' + spec + b', "metadata": ' + json.dumps(known).encode() + b"}"


@pytest.mark.parametrize("levels", [1_100, 9_990, 100_000])
def test_an_object_that_is_nested_too_deeply_is_known_by_its_metadata_and_the_others_are_read(levels: int) -> None:
    body = deep(levels, labels={"a": "b"}, managedFields=[{"manager": "m"}], finalizers=["f"])
    good = json.dumps({"metadata": {"name": "good"}, "spec": {}}).encode()
    page = RecordDecoder(POD).page(
        b'{"metadata":{"resourceVersion":"9","continue":"c"},"items":[' + body + b"," + good + b"]}"
    )
    assert (page.resource_version, page.continue_token) == ("9", "c")
    first, second = page.records
    assert (first.key, first.uid, first.resource_version) == (ObjectKey("ns", "deep"), "u", "7")
    assert (first.labels, first.finalizers, first.annotations()) == ({"a": "b"}, ("f",), {})
    assert b"managedFields" not in first.body
    assert second.name == "good"
    word, record = RecordDecoder(POD).frame(b'{"type":"ADDED","object":' + body + b"}")
    assert word == "ADDED"
    assert isinstance(record, Record)
    assert record.key == first.key


@pytest.mark.parametrize("kind", ["PartialObjectMetadata", "Pod", None])
def test_metadata_alone_is_kept_under_the_real_kind(kind: str | None) -> None:
    sent: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"} if kind else {}
    sent |= {"metadata": {"name": "p", "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}, "spec": {"x": 1}}
    record = decoded(sent, RecordDecoder(POD, metadata_only=True))
    metadata = {"name": "p", "labels": {"a": "b"}}
    assert json.loads(record.body) == {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    assert record.labels == {"a": "b"}


def test_annotations_are_a_copy_of_the_readers_own() -> None:
    record = decoded(pod(annotations={"a": "b"}))
    record.annotations()["a"] = "changed"
    assert record.annotations() == {"a": "b"}


def test_a_creation_time_is_read_from_the_body_where_it_can_be() -> None:
    times = {"2026-01-02T03:04:05Z": "2026-01-02T03:04:05Z", None: "", 7: ""}
    assert {sent: decoded(pod(creationTimestamp=sent)).creation_timestamp() for sent in times} == times
    assert decoded(pod()).creation_timestamp() == ""


@pytest.mark.parametrize("name", ["metadata", "spec", "status", "data", "get"])
def test_who_takes_a_record_for_the_object_is_told_where_to_look(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no '{name}', only metadata .* field_changed"):
        getattr(decoded(pod()), name)


def test_a_record_shows_which_state_of_which_object_it_is_and_no_content() -> None:
    record = decoded(pod(uid="u1", resourceVersion="5", annotations={"secret": "hunter2"}))
    assert repr(record) == "Record(ns/p, uid='u1', resource_version='5')"
