"""Permits: a last question before a request is written, when it has its connection."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import aiohttp

PERMIT: ContextVar[Callable[[], None] | None] = ContextVar("kopylite_permit", default=None)
"""Called before each attempt of the requests that the present task sends; what it raises ends the request unsent."""


async def _ask(session: aiohttp.ClientSession, context: Any, params: Any) -> None:
    """By its name aiohttp calls this when the headers are sent; it is when they are about to be, and may raise."""
    if (permit := PERMIT.get()) is not None:
        permit()


def asking() -> aiohttp.TraceConfig:
    """What makes a session ask."""
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_ask)
    return trace
