"""Connections: those that wait for the next request to one server, and those that are in use."""

from __future__ import annotations

import asyncio
import select
import ssl
from typing import Final

import anyio

from kopylite.client.dialing import Dialer
from kopylite.client.wire import HttpConnection
from kopylite.errors import ConnectionFailed, UsageError

# kube-apiserver closes idle connections after 90 s; whoever closes first never meets the race.
KEEPALIVE: Final = 60.0
# A TLS handshake is some milliseconds of work for both ends. Hundreds at once are so slow that they time out, and begin
# anew; so many are no slower than one after the other.
OPENING_AT_A_TIME: Final = 16
# Turns of the event loop that a connection needs to close its socket when it is cut: TLS's, then TCP's.
_LAST_TURNS: Final = 10


class Connections:
    """The connections of one client to one server. Opened when they are needed, in one event loop.

    No limit: who would wait here would think that the answer does not come. See Lane.

    Attributes:
        opening: turns for the streams that are being opened.
    """

    def __init__(self, dialer: Dialer) -> None:
        self.opening = anyio.Semaphore(OPENING_AT_A_TIME, fast_acquire=True)
        self._dialer = dialer
        self._idle: list[HttpConnection] = []  # the one that was used last at the end
        self._used: set[HttpConnection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def take(self, context: ssl.SSLContext | None) -> HttpConnection:
        """A connection that was set up with this context: one that waits, else a new one; `give_back` it.

        Raises:
            ConnectionFailed: there is none to be had.
            UsageError: all are closed, and nobody would close another one.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.context is context and _is_quiet(connection):
                self._used.add(connection)
                return connection
            connection.abort()  # also one with a certificate that has been renewed
        return await self.open(context)

    async def open(self, context: ssl.SSLContext | None) -> HttpConnection:
        """A new connection; `give_back` it. Raises as `take`."""
        self._refuse_if_closed()
        connection = await self._dialer.dial(context)
        if self._closed:  # meanwhile
            connection.abort()
        self._refuse_if_closed()
        self._used.add(connection)
        return connection

    def cut(self, connection: HttpConnection) -> None:
        """Give a connection back that is not to be used again. Harmless when repeated."""
        self._used.discard(connection)
        connection.abort()

    def give_back(self, connection: HttpConnection) -> None:
        """It waits for the next request if its answer has come as a whole, or none was asked for; else it is cut."""
        if not connection.usable:
            return self.cut(connection)
        self._used.discard(connection)
        connection.release()
        self.keep(connection, asyncio.get_running_loop())

    def keep(self, connection: HttpConnection, loop: asyncio.AbstractEventLoop) -> None:
        """Have it wait for the next request, until its end."""
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_at(connection.idle_since + KEEPALIVE, self._close_idle, loop)

    def look_up_anew(self) -> None:
        """There was no connection: the server's name may stand for another address by now."""
        self._dialer.look_up_anew()

    def distrust(self, since: float) -> None:
        """A request of this moment, of the loop's time, got no answer: open new connections from now on.

        Those that wait and had none since then either may have ended like it, and nobody was told: when a load balancer
        forgets them, or the network does. One after the other would fail its request.
        """
        self._dialer.look_up_anew()
        proven: list[HttpConnection] = []
        for connection in self._idle:
            if connection.idle_since > since:
                proven.append(connection)
            else:
                connection.abort()
        self._idle = proven

    def too_slow(self, seconds: float) -> ConnectionFailed:
        """The error of whoever could not wait for a connection any longer; it names what is not reached."""
        self._dialer.look_up_anew()
        return self._dialer.too_slow(seconds)

    async def aclose(self) -> None:
        """Cut all connections, and open none any more; when it returns their sockets are closed."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        cut = [*self._idle, *self._used]
        self._idle, self._used = [], set()
        for connection in cut:
            connection.abort()
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise UsageError("the client is closed: use it before its transport, or `connect`, has ended")

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what has waited for long enough, and come again for the rest."""
        now = loop.time()
        kept: list[HttpConnection] = []
        for connection in self._idle:
            if connection.usable and connection.idle_since + KEEPALIVE > now:
                kept.append(connection)
            else:
                connection.abort()
        self._idle = kept
        self._sweep = loop.call_at(kept[0].idle_since + KEEPALIVE, self._close_idle, loop) if kept else None


def _is_quiet(connection: HttpConnection) -> bool:
    """Nothing has come that the event loop has not read yet: neither the connection's end, on which a write would be
    lost, nor an answer that nobody asked for, which the next one who asks would take for theirs."""
    made = connection.transport.get_extra_info("socket")
    if not hasattr(select, "poll"):  # Windows
        return not select.select([made], [], [], 0)[0]
    news = select.poll()
    news.register(made, select.POLLIN)
    return not news.poll(0)
