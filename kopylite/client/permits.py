"""Permits: a last question before a request is written; and sockets that take back what has not arrived."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextvars import ContextVar

PERMIT: ContextVar[Callable[[], None] | None] = ContextVar("kopylite_permit", default=None)
"""Called before each attempt of the requests that the present task sends; what it raises ends the request unsent."""


def revocable(made: socket.socket) -> socket.socket:
    """Have a socket forget, when it is closed, what the other side has not confirmed.

    Otherwise the kernel goes on sending it: a write that was cancelled while the network was down would be carried out
    minutes later, when nobody knows of it any more and somebody else leads.
    """
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if os.name == "nt" else "ii", 1, 0))
    return made
