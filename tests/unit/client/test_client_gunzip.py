"""What is unpacked is what was packed, wherever it was cut, in small pieces."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.client.gunzip import MOST, Gunzip


@given(st.binary(max_size=300), st.sampled_from([1, MOST - 300, MOST, 3 * MOST]), st.integers(1, 5000), st.booleans())
def test_any_body_comes_back_in_pieces_that_are_not_too_long(end: bytes, zeros: int, step: int, stored: bool) -> None:
    body = b"\x00" * zeros + end
    packed = gzip.compress(body, 0 if stored else 9, mtime=0)
    gunzip, pieces = Gunzip(), list[bytes]()
    for at in range(0, len(packed), step):
        assert not gunzip.ended
        pieces += gunzip.feed(packed[at : at + step])
    assert gunzip.ended
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= MOST
    with pytest.raises(ValueError, match="goes on after its end"):
        [*gunzip.feed(b"x")]


@given(st.binary(max_size=100))
def test_whatever_comes_is_unpacked_or_no_gzip(data: bytes) -> None:
    for begin in (b"", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"):
        told = "is gzip, and goes on after its end"
        try:
            [*Gunzip().feed(begin + data)]
        except ValueError as error:
            told = str(error)
        assert told.startswith(("is no gzip: ", "is gzip, and goes on after its end"))
