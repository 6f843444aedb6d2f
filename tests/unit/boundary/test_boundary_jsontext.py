"""JSON texts that no decoder takes are taken apart from outside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.boundary.jsontext import depth, elements, members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from([None, 2]), st.booleans())
def test_the_parts_of_an_object_are_those_that_a_decoder_finds(
    value: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        return
    assert {name: json.loads(part) for name, part in members(text).items()} == json.loads(text)


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, 2]))
def test_so_are_those_of_an_array(value: list[Any], indent: int | None) -> None:
    assert [json.loads(part) for part in elements(json.dumps(value, indent=indent).encode())] == value


def test_what_is_too_deep_for_every_decoder_is_told_from_its_neighbours() -> None:
    deep = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    text = b'[{"name":"a"},' + deep + b',{"name":"b, ]} c"}]'
    first, middle, last = elements(text)
    assert (json.loads(first), json.loads(last)) == ({"name": "a"}, {"name": "b, ]} c"})
    assert middle == deep
    assert depth(text) == 20_001


def test_of_a_name_that_occurs_twice_the_last_one_counts() -> None:
    assert members(b'{"a": 1, "b": 2, "a": 3}') == {"a": b"3", "b": b"2"}


def test_brackets_and_quotes_in_texts_are_text() -> None:
    assert members(rb'{"a": "}]\"{[", "b\"": "\\"}') == {"a": rb'"}]\"{["', 'b"': rb'"\\"'}
    assert depth(rb'["[[[", "\"[["]') == 1


@pytest.mark.parametrize("text", [b"", b" ", b"null", b"5", b'"{}"', b"{}", b"[", b"[1", b"[1]]", b"[1] 2", b"[[1]"])
def test_what_is_no_array_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        elements(text)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b'{"a"}', b'{"a":}', b"{1: 2}", b'{"a": 1}}', b'{"a": 1, }', b'{"a" 1}', b"{a: 1}"]
)
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        members(text)
