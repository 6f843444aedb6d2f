"""What a RecordDecoder keeps of an object, for any object that JSON can spell."""

from __future__ import annotations

import json
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.record import Record, RecordDecoder
from kopylite.objects import Kind

THING = Kind("example.com/v1", "Thing")

texts = st.text(max_size=8) | st.sampled_from(['"managedFields":[', "managedFields", '\\"managedFields\\":[', "a,b"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
labels = st.dictionaries(texts, texts, max_size=3)
managed = st.lists(st.fixed_dictionaries({"manager": texts, "fieldsV1": values}), max_size=3)
metadata = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=8)},
    optional={
        "namespace": texts,
        "uid": texts,
        "resourceVersion": texts,
        "generation": st.integers(0, 2**40),
        "labels": labels | st.none(),
        "annotations": labels,
        "finalizers": st.lists(texts, max_size=2),
        "managedFields": managed,
        "deletionTimestamp": texts | st.none(),
    },
)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Objects whose keys stand in any order, with decoys of managedFields in any place."""
    parts: dict[str, Any] = {"metadata": draw(metadata)}
    parts |= draw(st.fixed_dictionaries({}, optional={"apiVersion": st.just("x/v1"), "spec": values, "a": values}))
    if draw(st.booleans()):
        parts["kind"] = "Thing"
    if draw(st.booleans()):
        parts["decoy"] = {"managedFields": parts["metadata"].get("managedFields", [])}
    keys = draw(st.permutations(list(parts)))
    inner = draw(st.permutations(list(parts["metadata"])))
    parts["metadata"] = {key: parts["metadata"][key] for key in inner}
    return {key: parts[key] for key in keys}


def expected_body(obj: dict[str, Any]) -> dict[str, Any]:
    stripped = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    return stripped if "kind" in obj else {"apiVersion": "example.com/v1", "kind": "Thing"} | stripped


@given(objects(), st.booleans(), st.booleans())
def test_the_body_is_the_object_without_managed_fields_in_exactly_its_size(
    obj: dict[str, Any], compact: bool, ascii_only: bool
) -> None:
    text = json.dumps(obj, separators=(",", ":") if compact else None, ensure_ascii=ascii_only)
    frame = f'{{"type":"ADDED","object":{text}}}'.encode("utf-8", "surrogatepass")
    word, record = RecordDecoder(THING).frame(frame)
    assert word == "ADDED"
    assert isinstance(record, Record)
    assert json.loads(record.body) == expected_body(obj)
    assert sys.getsizeof(record.body) == sys.getsizeof(b"") + len(record.body)


@given(objects())
def test_the_record_is_what_metadata_says(obj: dict[str, Any]) -> None:
    page = json.dumps({"metadata": {"resourceVersion": "5"}, "items": [obj, obj]}).encode()
    for record in RecordDecoder(THING).page(page).records:
        meta = obj["metadata"]
        assert record.key == (meta.get("namespace", ""), meta["name"])
        assert record.uid == meta.get("uid", "")
        assert record.resource_version == meta.get("resourceVersion", "")
        assert record.generation == meta.get("generation", 0)
        assert (record.labels or {}) == (meta.get("labels") or {})
        assert list(record.finalizers) == meta.get("finalizers", [])
        assert record.deletion_timestamp == meta.get("deletionTimestamp")
        assert record.annotations() == meta.get("annotations", {})


@given(st.binary(max_size=60))
def test_bytes_that_are_no_event_are_a_bad_frame_and_nothing_else(data: bytes) -> None:
    from kopylite.cache.record import BadFrame

    decoder = RecordDecoder(THING)
    for text in (data, b'{"type":"ADDED","object":' + data, b'{"type":"ERROR","object":' + data + b"}"):
        try:
            decoder.frame(text)
        except BadFrame:
            continue
