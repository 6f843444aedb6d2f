from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.client.chunked import LONGEST_SIZE, ChunkedBody

END = b"0\r\n\r\n"


def chunk(piece: bytes, size: str = "{:x}") -> bytes:
    return size.format(len(piece)).encode() + b"\r\n" + piece + b"\r\n"


@given(
    st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n"])),
    st.lists(st.integers(0, 400)),
    st.sampled_from(["{:x}", "{:X}", "{:04x}", "{:x};name=value", "{:x} ; name"]),
)
def test_wherever_the_bytes_are_cut_the_body_is_the_same(pieces: list[bytes], cuts: list[int], size: str) -> None:
    sent = b"".join(chunk(piece, size) for piece in pieces) + END
    body, found, at = ChunkedBody(), b"", 0
    for cut in [*sorted(cuts), len(sent)]:
        assert not body.ended or at >= len(sent) - 2
        came = body.feed(sent[at:cut])
        assert all(came)
        found, at = found + b"".join(came), max(at, cut)
    assert found == b"".join(pieces)
    assert body.ended


def test_what_follows_the_last_chunk_is_not_the_body() -> None:
    body = ChunkedBody()
    assert body.feed(chunk(b"one") + b"0\r\nTrailer: 1\r\n\r\n" + chunk(b"two")) == [b"one"]
    assert body.ended
    assert body.feed(chunk(b"three")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"{}\r\n",
        b"-3\r\nabc\r\n",
        b"+3\r\nabc\r\n",
        b"0x3\r\nabc\r\n",
        b"3_0\r\nabc\r\n",
        b"\r\n\r\nabc",
        b"3\r\nabcdef\r\n3\r\n",
        b"1" * 16 + b"\r\n",
        b"1" * (LONGEST_SIZE + 1),
    ],
)
@pytest.mark.parametrize("before", [b"", chunk(b"good")])
def test_what_is_no_chunk_is_an_error_that_does_not_show_it(wrong: bytes, before: bytes) -> None:
    with pytest.raises(ValueError, match=r"^what came is no chunk of a body$"):
        ChunkedBody().feed(before + wrong)
