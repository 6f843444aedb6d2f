"""Dialer: opens connections to one server, straight or through a proxy, and knows what it says when that fails."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import aiohappyeyeballs
import anyio

from kopylite.client.addresses import PORTS, ascii_host, without_user
from kopylite.client.credentials import basic
from kopylite.client.permits import revocable
from kopylite.client.socks import require_socks, socks_socket
from kopylite.client.wire import Broken, HttpConnection, head_of, lines_of, said
from kopylite.errors import ConnectionFailed

# Seconds for everything until a request can be sent: names, TCP, the proxy, TLS.
CONNECT_TIMEOUT: Final = 10.0
# Seconds that the other end has to say goodbye when a TLS connection is closed. asyncio would keep it for 30 s, and
# deliver what is in it if the network comes back meanwhile.
GOODBYE_SECONDS: Final = 0.001
# An address that works is good for so many seconds. One that fails is looked up anew at once.
ADDRESS_SECONDS: Final = 60.0
# A second address is tried beside the first one after so many seconds (RFC 8305).
NEXT_ADDRESS: Final = 0.25

AddressInfo = tuple[Any, Any, int, str, Any]


class Dialer:
    """Opens connections to one server.

    Args:
        server: its URL; what comes after the port does not matter.
        proxy: the URL of an http, https or socks5 proxy in front of it; "": none.
        server_name: to expect in the server's certificate instead of the URL's host.

    Raises:
        KubeconfigError: a package for this proxy is not installed.
    """

    def __init__(self, server: str, proxy: str = "", server_name: str | None = None) -> None:
        self._url, self._proxy = urlsplit(server), urlsplit(proxy) if proxy else None
        self._server = f"{self._url.scheme}://{self._url.netloc}"
        self._name = server_name or self._url.hostname or ""
        self._to = f"the proxy {without_user(proxy)} in front of {server}" if proxy else server
        self._addresses: list[AddressInfo] = []
        self._known_until = 0.0
        self._asking = anyio.Lock()
        if self._proxy is not None and self._proxy.scheme == "socks5":
            require_socks()

    def look_up_anew(self) -> None:
        """A connection has failed: the name may stand for another address by now."""
        self._known_until = 0.0

    async def dial(self, context: ssl.SSLContext | None) -> HttpConnection:
        """A new connection.

        Args:
            context: of TLS, if the server's URL is https.

        Raises:
            ConnectionFailed: it names what could not be reached or trusted, and why, without the proxy's password.
        """
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                with _tls_with(self._server):
                    return await self._dial(context)
        except OSError as error:
            if isinstance(error, TimeoutError) and not error.errno:
                raise self.too_slow(CONNECT_TIMEOUT) from error
            raise ConnectionFailed(f"no connection to {self._to}: {said(error)}") from error

    def too_slow(self, seconds: float) -> ConnectionFailed:
        """The error of a connection that could not be made within this time."""
        return ConnectionFailed(f"no connection to {self._to} within {seconds:.0f} s")

    async def _dial(self, context: ssl.SSLContext | None) -> HttpConnection:
        host, port = ascii_host(self._url.hostname or ""), _port(self._url)
        if self._proxy is None:
            return await _open(await self._connected(host, port), context, self._name)
        if self._proxy.scheme == "socks5":
            return await _open(revocable(await socks_socket(self._proxy, host, port)), context, self._name)
        to_proxy = (context or ssl.create_default_context()) if self._proxy.scheme == "https" else None
        reached = await self._connected(self._proxy.hostname or "", _port(self._proxy))
        with _tls_with(self._to):
            connection = await _open(reached, to_proxy, self._proxy.hostname or "")
        if context is None:
            return connection
        try:
            await self._ask_to_connect(connection, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
            return await _upgrade(connection, context, self._name)
        except BaseException:
            connection.abort()
            raise

    async def _ask_to_connect(self, connection: HttpConnection, target: str) -> None:
        assert self._proxy is not None
        lines = lines_of([("Host", target), *proxy_headers(self._proxy)])
        try:
            answer = await connection.send(head_of("CONNECT", target, lines, None))
            await answer.begin()
        except Broken as error:
            raise ConnectionFailed(f"no answer from {self._to}: {error}") from error
        if answer.status != 200:
            hint = "; put user and password into its URL" if answer.status == 407 else ""
            raise ConnectionFailed(f"{self._to} refused: HTTP {answer.status}{hint}")
        if answer.take():
            raise ConnectionFailed(f"{self._to} speaks before the server does: it is no proxy for HTTP CONNECT")

    async def _connected(self, host: str, port: int) -> socket.socket:
        addresses = await self._look_up(host, port)
        return await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS, socket_factory=_socket
        )

    async def _look_up(self, host: str, port: int) -> list[AddressInfo]:
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() >= self._known_until:
                self._addresses = _literal(host, port) or list(
                    await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
                )
                if not self._addresses:
                    raise OSError("its name has no address")
                self._known_until = loop.time() + ADDRESS_SECONDS
            return self._addresses


def proxy_headers(proxy: SplitResult) -> list[tuple[str, str]]:
    """What says who asks an http proxy, if its URL tells."""
    if proxy.username is None:
        return []
    return [("Proxy-Authorization", basic(unquote(proxy.username), unquote(proxy.password or "")).authorization or "")]


@contextmanager
def _tls_with(name: str) -> Iterator[None]:
    """Say whose certificate or TLS it is that fails."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise ConnectionFailed(f"the certificate of {name} is not trusted: {said(error)}") from error
    except ssl.SSLError as error:
        raise ConnectionFailed(f"no TLS with {name}: {said(error)}") from error


async def _open(made: socket.socket, context: ssl.SSLContext | None, name: str) -> HttpConnection:
    loop = asyncio.get_running_loop()
    tls: dict[str, Any] = {}
    if context is not None:
        tls = {"ssl": context, "server_hostname": name, "ssl_shutdown_timeout": GOODBYE_SECONDS}
    try:
        return (await loop.create_connection(lambda: HttpConnection(loop, context), sock=made, **tls))[1]
    except BaseException:
        if not isinstance(loop, asyncio.BaseEventLoop):
            # uvloop has closed the descriptor. Before 0.23 it leaves the number to the socket, which closes that again
            # when it is forgotten: by then it may be somebody else's connection.
            made.detach()
        raise


async def _upgrade(through: HttpConnection, context: ssl.SSLContext, name: str) -> HttpConnection:
    """TLS with the server, inside of a connection that the proxy has made."""
    loop = asyncio.get_running_loop()
    connection = HttpConnection(loop, context)
    transport = await loop.start_tls(
        through.transport, connection, context, server_hostname=name, ssl_shutdown_timeout=GOODBYE_SECONDS
    )
    assert transport is not None
    connection.connection_made(transport)
    return connection


def _socket(address: AddressInfo) -> socket.socket:
    return revocable(socket.socket(address[0], address[1], address[2]))


def _literal(host: str, port: int) -> list[AddressInfo]:
    """The address that a host is already, which need not be looked up in a thread."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return []
    if "%" in host:
        return []  # an interface's name, which is a number to the socket
    family, more = (socket.AF_INET, ()) if address.version == 4 else (socket.AF_INET6, (0, 0))
    return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, *more))]


def _port(url: SplitResult) -> int:
    return url.port or PORTS[url.scheme]
