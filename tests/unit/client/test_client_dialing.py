"""The ways to a server: its addresses, proxies with and without TLS, and what is said when one is closed."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
import trustme

from kopylite.client import ApiRequest, ClientConfig, HttpTransport
from kopylite.client.addresses import host_header
from kopylite.client.connections import KEEPALIVE
from kopylite.client.dialing import Dialer
from kopylite.client.tls import TlsSettings
from kopylite.errors import ConnectionFailed, KubeconfigError
from kopylite.testing.clock import VirtualClock
from tests.operators import eventually
from tests.unit.client.scripted import Hurried, Received, ScriptedServer, answer, pass_on

VERSION = ApiRequest("GET", "/version")
PASSWORD = "p:a@ss wörd"
USER = "user:p%3Aa%40ss%20w%C3%B6rd"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def serving(ca: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    return context


class Proxy:
    """An http proxy that connects to one port of this machine, whatever it is asked for; `asked` has the heads."""

    def __init__(self, port: int, reply: bytes = b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n") -> None:
        self.asked: list[bytes] = []
        self._port, self._reply = port, reply

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(self._reply)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pass_on, reader, back)
                tasks.start_soon(pass_on, there, writer)

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        async with AsyncExitStack() as stack:
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=tls)
            stack.callback(server.close)
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_an_http_proxy_is_asked_to_connect_and_sees_no_more(ca: trustme.CA, scheme: str) -> None:
    big = b"x" * 300_000
    async with ScriptedServer(answer(body=big), tls=serving(ca, "api.internal")) as server:
        proxy = Proxy(server.port)
        async with proxy.listening(serving(ca, "127.0.0.1") if scheme == "https" else None) as at:
            config = ClientConfig(
                "https://api.internal",
                tls=TlsSettings(ca.cert_pem.bytes()),
                proxy=f"{scheme}://{USER}@{at}",
            )
            async with HttpTransport(config) as transport:
                for _ in range(2):
                    assert (await transport.request(VERSION)).body == big
                async with transport.stream(VERSION) as stream:
                    assert await stream.read() == big
    assert len(proxy.asked) == 2  # one connection for requests, one for the stream
    head = proxy.asked[0].decode().split("\r\n")
    assert head[0] == "CONNECT api.internal:443 HTTP/1.1"
    pair = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    assert head[1:3] == ["Host: api.internal:443", f"Proxy-Authorization: Basic {pair}"]
    assert "proxy-authorization" not in server.received[0].headers


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", r"refused: HTTP 502$"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://login/\r\n\r\n", r"refused: HTTP 302$"),
        (b"<html>", r"^no answer from the proxy .*: what came is no HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", r"is no proxy for HTTP CONNECT$"),
    ],
)
async def test_what_a_proxy_says_instead_is_told(ca: trustme.CA, reply: bytes, said: str) -> None:
    async with (
        ScriptedServer(answer(), tls=serving(ca, "api.internal")) as server,
        Proxy(server.port, reply).listening() as at,
        HttpTransport(ClientConfig("https://api.internal", proxy=f"http://{USER}@{at}"), clock=Hurried()) as transport,
    ):
        with pytest.raises(ConnectionFailed, match=said) as caught:
            await transport.request(VERSION)
    assert "p%3Aa" not in str(caught.value)
    assert PASSWORD not in str(caught.value)


async def test_a_certificate_of_another_is_not_trusted_through_a_proxy_either(ca: trustme.CA) -> None:
    tls = TlsSettings(ca.cert_pem.bytes())
    async with (
        ScriptedServer(answer(), tls=serving(ca, "other.internal")) as server,
        Proxy(server.port).listening() as at,
        HttpTransport(
            ClientConfig("https://api.internal", tls=tls, proxy=f"http://{at}"), clock=Hurried()
        ) as transport,
    ):
        with pytest.raises(ConnectionFailed, match=r"certificate of https://api\.internal is not trusted"):
            await transport.request(VERSION)
    assert server.received == []


async def test_the_certificate_of_a_proxy_is_not_taken_for_the_servers(ca: trustme.CA) -> None:
    proxy, tls = Proxy(9), TlsSettings(ca.cert_pem.bytes())
    async with proxy.listening(serving(trustme.CA(), "127.0.0.1")) as at:
        config = ClientConfig("https://api.internal", tls=tls, proxy=f"https://{USER}@{at}")
        async with HttpTransport(config, clock=Hurried()) as transport:
            with pytest.raises(
                ConnectionFailed, match=f"^the certificate of the proxy https://{at} in front of .* is not"
            ):
                await transport.request(VERSION)
    assert proxy.asked == []


async def test_who_hangs_up_in_the_tls_handshake_is_told_in_words() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with HttpTransport(ClientConfig(url), clock=Hurried()) as transport:
        with pytest.raises(ConnectionFailed, match=rf"^no connection to {url}: the other end closed the connection$"):
            await transport.request(VERSION)
    server.close()


def test_what_was_not_sent_since_no_connection_came_in_time_is_not_told_as_sent() -> None:
    """Each attempt has ten seconds for a connection, all together have thirty."""
    clock = VirtualClock()

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # its kernel accepts
            url = f"https://127.0.0.1:{silent.getsockname()[1]}"
            async with HttpTransport(ClientConfig(url), clock=clock) as transport:
                for timeout, said in ((None, 10), (3.0, 3)):
                    with pytest.raises(ConnectionFailed, match=f"^no connection to {url} within {said} s$"):
                        await transport.request(ApiRequest("POST", "/x", body=b"{}"), timeout=timeout)

    clock.run(main)


async def test_plain_http_where_tls_is_expected_is_named_as_that() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read(10_000)
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with HttpTransport(ClientConfig(url), clock=Hurried()) as transport:
        with pytest.raises(ConnectionFailed, match=rf"^no TLS with {url}: "):
            await transport.request(VERSION)
    server.close()


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_second_address_is_tried_when_the_first_one_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(answer(body=b"here")) as server:
        infos = [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, server.port))
            for address in ("127.0.0.9", "127.0.0.1")
        ]

        async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
            return infos

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        async with HttpTransport(ClientConfig(f"http://kube.example.com:{server.port}"), clock=Hurried()) as transport:
            assert (await transport.request(VERSION)).body == b"here"
    assert server.received[0].headers["host"] == f"kube.example.com:{server.port}"


async def test_a_name_that_nobody_knows_is_told_in_words() -> None:
    async with HttpTransport(ClientConfig("http://kube.invalid:1"), clock=Hurried()) as transport:
        with pytest.raises(ConnectionFailed, match=r"^no connection to http://kube\.invalid:1: [A-Z][a-z ]+"):
            await transport.request(VERSION)


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_name_without_an_address_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    async with HttpTransport(ClientConfig("http://kube.example.com"), clock=Hurried()) as transport:
        with pytest.raises(
            ConnectionFailed, match=r"^no connection to http://kube.example.com: its name has no address$"
        ):
            await transport.request(VERSION)


async def test_an_ipv6_server_is_reached_by_its_address() -> None:
    server = ScriptedServer(answer())
    try:
        listening = await asyncio.start_server(server._serve, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    host = f"[::1]:{listening.sockets[0].getsockname()[1]}"
    async with HttpTransport(ClientConfig(f"http://{host}"), clock=Hurried()) as transport:
        assert (await transport.request(VERSION)).status == 200
    listening.close()
    assert server.received[0].headers["host"] == host


def test_a_handshake_that_does_not_end_is_given_up() -> None:
    clock = VirtualClock()

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # its kernel accepts
            dialer = Dialer(f"https://127.0.0.1:{silent.getsockname()[1]}")
            with pytest.raises(ConnectionFailed, match=r"^no connection to https://127.0.0.1:\d+ within 10 s$"):
                await dialer.dial(ssl.create_default_context())
        assert clock.monotonic() == pytest.approx(10.0, abs=0.1)

    clock.run(main)


def test_a_connection_that_waits_for_too_long_is_closed_and_another_is_opened() -> None:
    clock = VirtualClock()
    ended: list[float] = []

    async def act(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())
        if len(ended) == 0:
            asyncio.get_running_loop().create_task(gone(writer))

    async def gone(writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await writer.wait_closed()
        ended.append(clock.monotonic())

    async def main() -> None:
        async with ScriptedServer(act) as server, HttpTransport(ClientConfig(server.url), clock=clock) as transport:
            await transport.request(VERSION)
            await anyio.sleep(KEEPALIVE / 2)
            await transport.request(VERSION)  # from now on it waits
            assert server.connections == 1
            await anyio.sleep(KEEPALIVE + 1)
            await eventually(lambda: ended, "the server saw it closed")
            await transport.request(VERSION)
            assert server.connections == 2

    clock.run(main)


@pytest.mark.parametrize("host", ["a" * 64, "a..b", "a b", "a\u200bb"])
def test_what_is_no_host_is_refused_where_it_is_written(host: str) -> None:
    with pytest.raises(KubeconfigError, match=r"server should be a URL"):
        ClientConfig(f"https://{host}:6443")
    with pytest.raises(KubeconfigError, match=r"a proxy should be a URL"):
        ClientConfig("https://example.com", proxy=f"http://{host}:3128")


@pytest.mark.parametrize("name", [".a", "a" * 64, "a..b", "a\x00b", "\ud800"])
def test_a_name_that_no_certificate_has_is_refused_where_it_is_written(name: str) -> None:
    with pytest.raises(KubeconfigError, match=r"^the client's configuration: tls-server-name .* is neither"):
        ClientConfig("https://example.com", tls=TlsSettings(server_name=name))


async def test_a_host_in_letters_of_its_own_is_asked_for_in_plain_ones(ca: trustme.CA) -> None:
    async with ScriptedServer(answer(), tls=serving(ca, "xn--bcher-kva.example")) as server:
        proxy = Proxy(server.port)
        async with proxy.listening() as at:
            tls = TlsSettings(ca.cert_pem.bytes())
            config = ClientConfig("https://bücher.example:6443", tls=tls, proxy=f"http://{at}")
            async with HttpTransport(config) as transport:
                assert (await transport.request(VERSION)).status == 200
    assert proxy.asked[0].startswith(b"CONNECT xn--bcher-kva.example:6443 HTTP/1.1\r\n")
    assert server.received[0].headers["host"] == "xn--bcher-kva.example:6443"


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("https://example.com", "example.com"),
        ("https://example.com:443/path", "example.com:443"),
        ("http://[fe80::1%25eth0]:80", "[fe80::1]:80"),
        ("http://user:hush@127.0.0.1", "127.0.0.1"),
    ],
)
def test_the_header_host_says_what_the_url_does(url: str, header: str) -> None:
    assert host_header(urlsplit(url)) == header
