"""Checks that may take long, kept off the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

from kopylite.apiserver.schema.cel.budget import TakesLong, quickly

T = TypeVar("T")


async def aside(check: Callable[[], T]) -> T:
    """The result of a pure function; in a thread if expressions of CEL make it slow.

    Args:
        check: changes nothing: it may be called twice.
    """
    try:
        with quickly():
            return check()
    except TakesLong:
        return await anyio.to_thread.run_sync(check)
