"""Answers that no server should give: what is valid, with one thing wrong; or not even that. For hypothesis.

@given(hostile({"kind": "List", "items": [...]}))
def test_any_bytes_are_a_value_or_the_documented_error(body: bytes) -> None: ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

# Deeper than Python's recursion limit, and than what a real server stores. What is deeper still has tests of its own.
DEPTHS = (1_100, 10_500)

_MARK = "@@here@@"

# Raw JSON texts to put in the place of any value: of every type, and of every size that hurts.
ODD_VALUES: tuple[bytes, ...] = (
    *(b"null", b"true", b"0", b"-1", b"1.5", b"1e400", b"-1e999", b"NaN", b"Infinity", b'""', b'"text"'),
    *(b"[]", b"{}", b"[null]", b'[[{"a":[]}]]', b'{"":null}', b'{"name":{"name":[1]}}', b'["a",7,null,{"reason":[]}]'),
    *(b"9" * 400, b"9" * 5000, b"-" + b"9" * 30, b"0." + b"1" * 400),
    *(b'"\\ud800"', b'"\\u0000\\u001b[2J\\n"', b'"' + b"x" * 10_000 + b'"', b'"\xff\xfe"'),
    b"[" * DEPTHS[0] + b"]" * DEPTHS[0],
    b'{"a":' * DEPTHS[1] + b"1" + b"}" * DEPTHS[1],
    *(b"[" * 1_100, b"{", b"", b'"', b"\\"),
)


def hostile(valid: Any) -> st.SearchStrategy[bytes]:
    """Bytes near a valid JSON value: one part replaced, one member more, cut, garbled; and bytes that are none."""
    paths = list(_paths(valid))
    whole = json.dumps(valid, separators=(",", ":")).encode()
    return st.one_of(
        st.builds(_replaced, st.just(valid), st.sampled_from(paths), st.sampled_from(ODD_VALUES)),
        st.builds(_extended, st.just(whole), st.sampled_from(ODD_VALUES)),
        st.sampled_from(ODD_VALUES),
        st.integers(0, len(whole)).map(lambda end: whole[:end]),
        st.tuples(st.integers(0, len(whole)), st.binary(max_size=4)).map(
            lambda p: whole[: p[0]] + p[1] + whole[p[0] :]
        ),
        st.binary(max_size=200),
        st.just(b"<html><body>502 Bad Gateway</body></html>"),
    )


def every(valid: Any) -> Iterator[bytes]:
    """All replacements of one part, without chance: some 40 for each part of the value."""
    for path in _paths(valid):
        for odd in ODD_VALUES:
            yield _replaced(valid, path, odd)


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from _paths(inner, (*path, name))


def _replaced(valid: Any, path: Path, odd: bytes) -> bytes:
    marked = _with(valid, path, lambda _: _MARK)
    return json.dumps(marked, separators=(",", ":")).encode().replace(json.dumps(_MARK).encode(), odd)


def _with(value: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(copy[path[0]], path[1:], change)
    return copy


def _extended(whole: bytes, odd: bytes) -> bytes:
    return whole[:-1] + b',"more":' + odd + whole[-1:]
