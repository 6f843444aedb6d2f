"""Door: lets connections of TLS in, so many at a time.

A server of asyncio shakes hands with whoever connects, for a minute each, and a connection that says nothing takes
300 KiB meanwhile (256 of them asyncio's buffer): a thousand callers that are none take an operator's memory.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
import anyio.abc
import anyio.lowlevel

logger = logging.getLogger(__name__)

# Handshakes at the same time. An API server has no more calls in progress than this, and each takes milliseconds.
MOST_HANDSHAKES = 256
# For one of them.
HANDSHAKE_SECONDS = 10.0
# The machine has no descriptor or memory for a connection: others may give some back meanwhile.
FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
FULL_SECONDS = 1.0


class Door:
    """Accepts connections from entering the context until leaving it, and then cuts the handshakes in progress.

    Beyond MOST_HANDSHAKES the oldest goes, so who shakes hands at once comes in however many do not.

    Args:
        sockets: listen, and are closed at the end.
        context: of TLS.
        factory: makes the protocol of a connection whose handshake is done.
    """

    def __init__(
        self, sockets: list[socket.socket], context: ssl.SSLContext, factory: Callable[[], asyncio.Protocol]
    ) -> None:
        self._sockets = sockets
        self._context = context
        self._factory = factory
        # The oldest first.
        self._shaking: dict[socket.socket, anyio.CancelScope] = {}
        self._tasks: anyio.abc.TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        for listening in self._sockets:
            self._tasks.start_soon(self._accept, listening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        try:
            return await self._tasks.__aexit__(kind, error, trace)
        finally:
            for listening in self._sockets:
                listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:  # of one that is gone before it was accepted there is nothing to tell
                if error.errno in FULL:
                    logger.error("no connection can be accepted: %s", error.strerror)
                    await anyio.sleep(FULL_SECONDS)
                continue
            if len(self._shaking) >= MOST_HANDSHAKES:
                self._shaking.pop(next(iter(self._shaking))).cancel()
            self._shaking[accepted] = scope = anyio.CancelScope()
            self._tasks.start_soon(self._shake_hands, accepted, scope)
            await anyio.lowlevel.checkpoint()  # where many wait, accepting one is no turn of the event loop

    async def _shake_hands(self, accepted: socket.socket, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await asyncio.get_running_loop().connect_accepted_socket(
                    self._factory, accepted, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
                )
        except OSError:  # ssl.SSLError is one: no caller, or one that does not trust us, which says so itself
            pass
        finally:
            self._shaking.pop(accepted, None)
