"""However a stream is cut into chunks, its lines come out the same."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kopylite.client.codec import LineSplitter


@given(st.lists(st.text(alphabet="ab€🚀 \r", max_size=12), max_size=8), st.data())
def test_lines_do_not_depend_on_chunks(lines: list[str], data: st.DataObject) -> None:
    stream = "\n".join(lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = LineSplitter()
    edges = [0, *cuts, len(stream)]
    found = [line for begin, end in itertools.pairwise(edges) for line in splitter.feed(stream[begin:end])]
    *whole, rest = stream.split(b"\n")
    assert found == [line for line in whole if line]
    assert splitter.pending == len(rest)
