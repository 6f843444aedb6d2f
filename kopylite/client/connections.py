"""Connections: the pools of one client, how many are opened at a time, and what is known of the server's addresses."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable
from typing import Any

import aiohttp
import anyio

from kopylite.client.permits import PERMIT, asking, revocable_socket
from kopylite.client.socks import socks_connector
from kopylite.client.streams import StreamedResponse

# kube-apiserver closes idle connections after 90 s; whoever closes first never meets the race.
KEEPALIVE = 60.0
# A TLS handshake is some milliseconds of work for both ends. Hundreds at once are so slow that they time out, and begin
# anew; so many are no slower than one after the other.
OPENING_AT_A_TIME = 16
# Seconds that the other end has to say goodbye when a TLS connection is closed. A request that is given up closes its
# connection; asyncio would keep it for 30 s, and deliver what is in it if the network comes back meanwhile.
GOODBYE_SECONDS = 0.001
# An address that works is good for so long. One that fails is looked up anew at once.
ADDRESS_SECONDS = 60


class Connections:
    """Pooled connections for requests, and one of its own for each stream. Opened when they are needed.

    Args:
        headers: of every request.
        socks: the URL of a socks5 proxy in front of the server; "": none.

    Attributes:
        opening: turns for the streams that are being opened.
    """

    def __init__(self, headers: Iterable[tuple[str, str]], socks: str = "") -> None:
        self.opening = anyio.Semaphore(OPENING_AT_A_TIME, fast_acquire=True)
        self._headers = tuple(headers)
        self._socks = socks
        self._requests: aiohttp.ClientSession | None = None
        self._asking: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    @property
    def requests(self) -> aiohttp.ClientSession:
        """For requests that are answered at once; with the connections of all, one that asks for permits, if it has to.

        aiohttp's way to be asked makes each request a fifteenth dearer, and few operators have a leader.
        """
        if self._requests is None or self._asking is None:
            connector = self._connector()
            self._requests = self._session(connector)
            self._asking = self._session(connector, connector_owner=False, trace_configs=[asking()])
        return self._requests if PERMIT.get() is None else self._asking

    @property
    def streams(self) -> aiohttp.ClientSession:
        """For answers that last."""
        if self._streams is None:
            self._streams = self._session(self._connector(), trace_configs=[asking()], response_class=StreamedResponse)
        return self._streams

    def look_up_anew(self) -> None:
        """A connection has failed: the server's name may stand for another address by now."""
        for session in (self._requests, self._streams):
            if session is not None and isinstance(session.connector, aiohttp.TCPConnector):
                session.connector.clear_dns_cache()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._asking is not None:
            await self._asking.close()
        for session in (self._requests, self._streams):
            if session is not None:
                if isinstance(session.connector, aiohttp.TCPConnector):
                    await session.connector.close(abort_ssl=True)
                await session.close()
        self._requests = self._asking = self._streams = None
        # What was dropped closes its socket in the next turn of the event loop, and what was given up before, after its
        # goodbye. A socket that is not closed when the loop ends stays open.
        await asyncio.sleep(2 * GOODBYE_SECONDS)

    def _session(self, connector: aiohttp.BaseConnector, **more: Any) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            # trust_env costs two thread hops a request and reads ~/.netrc; the proxy is settled by the config.
            trust_env=False,
            **more,
        )

    def _connector(self) -> aiohttp.BaseConnector:
        # No limit: waiting inside of aiohttp would look like an answer that doesn't come. See Lane.
        if self._socks:
            return socks_connector(self._socks, limit=0, keepalive_timeout=KEEPALIVE)
        with warnings.catch_warnings():
            # Its successor, close(abort_ssl=True), is for all connections at the end, and not for one of them.
            warnings.filterwarnings("ignore", "The ssl_shutdown_timeout parameter", DeprecationWarning)
            return aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEEPALIVE,
                ttl_dns_cache=ADDRESS_SECONDS,
                socket_factory=revocable_socket,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
