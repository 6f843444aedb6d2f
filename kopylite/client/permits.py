"""Permits: a last question before a request is written; and a socket that takes back what has not arrived."""

from __future__ import annotations

import os
import socket
import struct
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


def revocable_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that forgets, when it is closed, what the other side has not confirmed.

    Otherwise the kernel goes on sending it: a write that was cancelled while the network was down would be carried out
    minutes later, when nobody knows of it any more and somebody else leads.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if os.name == "nt" else "ii", 1, 0))
    return made
