from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.record import RecordDecoder
from kopylite.objects import Kind
from kopylite.triggers import PAUSED, RECONCILE_AT, annotated

KIND = Kind("example.com/v1", "Thing")
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just("x" * 100_000) | st.just(["true"])


def record(annotations: Any, *, metadata_only: bool = False, **metadata: Any) -> Any:
    metadata = {"name": "a", "annotations": annotations, **metadata}
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {PAUSED: "true"}}
    return RecordDecoder(KIND, metadata_only=metadata_only).record(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("value", "paused", "unclear"),
    [
        ("true", True, None),
        ("True", True, None),
        ("TRUE", True, None),
        ("false", False, None),
        ("", False, None),
        ("1", False, "1"),
        ("yes", False, "yes"),
        (" true", False, " true"),
    ],
)
def test_only_true_pauses_and_what_means_nothing_is_told(value: str, paused: bool, unclear: str | None) -> None:
    assert annotated(record({PAUSED: value})) == (paused, unclear, None)


@pytest.mark.parametrize("metadata_only", [False, True])
def test_metadata_is_enough_to_know_it(metadata_only: bool) -> None:
    found = annotated(record({PAUSED: "true", RECONCILE_AT: "now"}, metadata_only=metadata_only))
    assert found == (True, None, "now")


def test_what_is_being_deleted_is_not_paused() -> None:
    assert not annotated(record({PAUSED: "true"}, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b"])).paused


def test_the_words_elsewhere_in_an_object_are_no_annotation() -> None:
    assert annotated(record(None)) == annotated(None) == (False, None, None)
    assert annotated(record({}, labels={PAUSED: "true"})) == (False, None, None)


@given(st.dictionaries(st.sampled_from([PAUSED, RECONCILE_AT, "a"]), VALUES) | VALUES)
def test_whatever_stands_there_is_read_without_an_error(annotations: Any) -> None:
    found = annotated(record(annotations))
    if found.paused:
        assert annotations[PAUSED].lower() == "true"
