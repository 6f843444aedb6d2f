"""Long work of the server's own in slices, so that no request waits for another's."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")

# How long one slice lasts: far below what a client would notice. A single step may be longer.
SLICE_SECONDS: Final = 0.01


class Slices:
    """Turns for others in the midst of long work that awaits nothing."""

    def __init__(self) -> None:
        self._until = anyio.current_time() + SLICE_SECONDS

    async def turn(self) -> None:
        """Let the event loop have its turn, if the slice is over."""
        if anyio.current_time() >= self._until:
            await anyio.lowlevel.checkpoint()
            self._until = anyio.current_time() + SLICE_SECONDS


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Go through all steps and return the result; after each slice the event loop has its turn."""
    slices = Slices()
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            await slices.turn()
    finally:
        steps.close()
