"""Chunked: the body out of the chunks that HTTP/1.1 sends it in (RFC 9112, 7.1). No I/O."""

from __future__ import annotations

import re
from typing import Final

# The size of a chunk, and perhaps extensions, which mean nothing to anybody; after another chunk, also that one's end.
_FIRST: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_NEXT: Final = re.compile(rb"\r\n" + _FIRST.pattern)
_END: Final = b"\r\n"
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
# No size is as long with all that belongs to it, or it is none.
LONGEST_SIZE: Final = 1024


class ChunkedBody:
    """Takes the bytes of a connection as they come, and gives those of the body.

    Attributes:
        ended: the last chunk has come. What follows it, trailers at most, is not looked at.
    """

    __slots__ = ("_between", "_cut", "_left", "_size", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._between = True  # the next byte begins a chunk
        self._size = _FIRST
        self._left = 0  # bytes of the present chunk that are still to come
        self._cut = b""  # the beginning of a size

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of the body in `data`, in order, none of them empty.

        Raises:
            ValueError: these are no chunks.
        """
        if self._between:
            # An event of a watch is one chunk, and mostly comes alone: a fifth of the work.
            size, _, rest = data.partition(_END)
            if len(rest) > 2 and rest.endswith(_END) and _HEX.issuperset(size) and int(size, 16) == len(rest) - 2:
                return [rest[:-2]]
        pieces: list[bytes] = []
        if self._cut:
            data, self._cut = self._cut + data, b""
        at, end = 0, len(data)
        while at < end and not self.ended:
            if not self._left:
                head = self._size.match(data, at)
                if head is None:
                    self._cut = _cut(data[at:])
                    break
                self._size = _NEXT
                self._left = int(head[1], 16)
                self.ended = not self._left
                at = head.end()
            if piece := data[at : at + self._left]:
                pieces.append(piece)
                self._left -= len(piece)
                at += len(piece)
        self._settle()
        return pieces

    def _settle(self) -> None:
        if self._cut == _END and self._size is _NEXT:
            self._cut, self._size = b"", _FIRST
        self._between = self._size is _FIRST and not self._left and not self._cut and not self.ended


def _cut(start: bytes) -> bytes:
    """What may become a size when more has come."""
    if start.find(b"\n", 2) >= 0 or len(start) > LONGEST_SIZE:
        raise ValueError("what came is no chunk of a body")
    return start
