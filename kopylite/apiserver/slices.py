"""Long work of the server's own in slices, so that no request waits for another's."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")

# How long one slice lasts: far below what a client would notice. A single step may be longer.
SLICE_SECONDS: Final = 0.01


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Go through all steps and return the result; after each slice the event loop has its turn."""
    until = anyio.current_time() + SLICE_SECONDS
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if anyio.current_time() >= until:
                await anyio.lowlevel.checkpoint()
                until = anyio.current_time() + SLICE_SECONDS
    finally:
        steps.close()
