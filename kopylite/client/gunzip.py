"""Gunzip: a body in gzip, as it comes, in pieces that are small however much was packed into it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

# Bytes of one piece, a millisecond of work. Packed zeros are a thousand times as long as what came.
MOST: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS


class Gunzip:
    """Unpacks one body."""

    __slots__ = ("_inflate",)

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What is in the next bytes, in pieces of MOST bytes at the most.

        Raises:
            ValueError: it is no gzip, or goes on after its end.
        """
        inflate = self._inflate
        piece = b""
        while data or len(piece) == MOST:
            try:
                piece = inflate.decompress(data, MOST)
            except zlib.error as error:
                raise ValueError(f"is no gzip: {error}") from error
            data = inflate.unconsumed_tail
            if piece:
                yield piece
        if inflate.unused_data:  # a second body, which nobody sends: read as one it would be cut without a word
            raise ValueError("is gzip, and goes on after its end")

    @property
    def ended(self) -> bool:
        """All has come."""
        return self._inflate.eof
