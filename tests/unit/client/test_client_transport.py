from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trustme

from kopylite.client.config import ClientConfig
from kopylite.client.credentials import CachedCredentials, ClientIdentity, StaticCredentials, bearer, token_file
from kopylite.client.tls import TlsSettings
from kopylite.client.transport import HttpTransport
from kopylite.client.verbs import ApiRequest
from kopylite.clock import Clock, SystemClock
from kopylite.errors import ConnectionFailed, KubeconfigError, RequestTimeout, StreamBroken
from kopylite.observers import ClientObserver
from tests.unit.client.scripted import Hurried, Received, ScriptedServer, answer, chunked, pass_on, reset

GET = ApiRequest("GET", "/api/v1/nodes/a%2Fb", {"fieldManager": "me", "x": "a b"})
POST = ApiRequest("POST", "/api/v1/nodes", body=b'{"a":1}', content_type="application/json")


Opener = Callable[..., HttpTransport]


class Observer(ClientObserver):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        assert host.startswith("127.0.0.1:")
        self.seen.append((method, code))


@pytest.fixture
async def opened() -> AsyncIterator[list[HttpTransport]]:
    transports: list[HttpTransport] = []
    yield transports
    for transport in transports:
        await transport.aclose()


@pytest.fixture
def open_to(opened: list[HttpTransport]) -> Opener:
    """Makes a transport that is closed at the end."""

    def make(
        server: str, observer: ClientObserver | None = None, clock: Clock | None = None, **settings: Any
    ) -> HttpTransport:
        transport = HttpTransport(ClientConfig(server, **settings), observer=observer, clock=clock or Hurried())
        opened.append(transport)
        return transport

    return make


async def test_path_query_headers_and_body_go_out_as_given(open_to: Opener) -> None:
    async with ScriptedServer(answer(body=b'{"kind":"Node"}', X_More="yes")) as server:
        transport = open_to(
            server.url, credentials=StaticCredentials(bearer("t")), headers=(("Impersonate-User", "a"),)
        )
        response = await transport.request(GET)
        assert (response.status, response.body, response.headers["x-more"]) == (200, b'{"kind":"Node"}', "yes")
        await transport.request(POST)
    get, post = server.received
    assert (get.method, get.target) == ("GET", "/api/v1/nodes/a%2Fb?fieldManager=me&x=a%20b")
    assert get.headers["authorization"] == "Bearer t"
    assert get.headers["impersonate-user"] == "a"
    assert get.headers["accept-encoding"] == "identity"
    assert get.headers["user-agent"].startswith("kopylite")
    assert (post.body, post.headers["content-type"]) == (b'{"a":1}', "application/json")
    assert server.connections == 1, "connections are kept"


async def test_answers_of_any_status_are_returned_and_observed(open_to: Opener) -> None:
    observer = Observer()
    async with ScriptedServer(answer(404, b"nope"), answer(500, b"<html>")) as server:
        transport = open_to(server.url, observer)
        assert (await transport.request(GET)).status == 404
        assert (await transport.request(POST)).body == b"<html>"
    assert observer.seen == [("GET", "404"), ("POST", "500")]


async def test_a_server_that_asks_to_wait_is_asked_again_even_for_a_post(open_to: Opener) -> None:
    observer = Observer()
    busy = b'{"kind":"Status","reason":"TooManyRequests","details":{"retryAfterSeconds":0.01}}'
    async with ScriptedServer(answer(429, busy), answer(503, b"", Retry_After="0"), answer(201)) as server:
        assert (await open_to(server.url, observer).request(POST)).status == 201
    assert observer.seen == [("POST", "429"), ("POST", "503"), ("POST", "201")]
    assert [r.body for r in server.received] == [POST.body] * 3


async def test_a_reset_is_retried_for_a_read_and_not_for_a_write(open_to: Opener) -> None:
    async with ScriptedServer(reset, answer()) as server:
        assert (await open_to(server.url).request(GET)).status == 200
    async with ScriptedServer(reset, answer()) as server:
        said = f"^POST /api/v1/nodes: no whole answer from {server.url}: [a-zA-Z ]+$"  # once, and without a number
        with pytest.raises(StreamBroken, match=said):
            await open_to(server.url).request(POST)
    assert len(server.received) == 1


async def test_an_answer_cut_in_the_middle_is_broken(open_to: Opener) -> None:
    async def half(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        writer.close()

    async with ScriptedServer(half) as server:
        with pytest.raises(StreamBroken):
            await open_to(server.url).request(POST)


async def test_a_refused_connection_is_tried_again_until_the_server_is_back(open_to: Opener) -> None:
    async with ScriptedServer(answer()) as server:
        port, url = server.port, server.url
    with pytest.raises(ConnectionFailed, match="no connection to"):
        await open_to(url).request(POST)
    back, waits = ScriptedServer(answer(201)), []

    class Returning(SystemClock):
        """The server is back when the third attempt is made."""

        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                back._server = await asyncio.start_server(back._serve, "127.0.0.1", port)

    assert (await open_to(url, clock=Returning()).request(POST)).status == 201
    assert waits == [pytest.approx(0.1, rel=0.11), pytest.approx(0.2, rel=0.11)]
    await back.__aexit__()


async def test_a_silent_server_ends_in_a_timeout(open_to: Opener) -> None:
    async def silence(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    observer = Observer()
    async with ScriptedServer(silence) as server:
        with anyio.fail_after(5), pytest.raises(RequestTimeout, match=r"^GET /api/v1/nodes/a%2Fb: no answer from http"):
            await open_to(server.url, observer).request(GET, timeout=0.1)
    assert observer.seen == [("GET", "<error>")]


async def test_a_redirect_is_not_followed(open_to: Opener) -> None:
    async with ScriptedServer(answer(302, b"", Location="http://127.0.0.1:9/steal")) as server:
        transport = open_to(server.url, credentials=StaticCredentials(bearer("t")))
        with pytest.raises(StreamBroken, match=r"redirects to http://127\.0\.0\.1:9 \(HTTP 302\)"):
            await transport.request(GET)
        with pytest.raises(StreamBroken, match="is no Kubernetes API server"):
            async with transport.stream(GET):
                pass


@pytest.mark.parametrize(
    "head",
    [b"101 X\r\nUpgrade: h2c\r\nConnection: Upgrade", b"304 X", b"307 X\r\nLocation: http://[\r\nContent-Length: 0"],
)
async def test_what_is_no_answer_of_an_api_server_is_no_empty_answer(open_to: Opener, head: bytes) -> None:
    async with ScriptedServer(b"HTTP/1.1 " + head + b"\r\n\r\n") as server:
        with pytest.raises(StreamBroken, match="is no Kubernetes API server"):
            await open_to(server.url).request(GET)


async def test_a_401_renews_the_credentials_once(open_to: Opener, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")

    async def check(received: Received, writer: asyncio.StreamWriter) -> None:
        good = received.headers["authorization"] == "Bearer new"
        path.write_text("new")
        writer.write(answer(200 if good else 401))

    async with ScriptedServer(check) as server:
        transport = open_to(server.url, credentials=token_file(path))
        assert (await transport.request(POST)).status == 200
    assert [r.headers["authorization"] for r in server.received] == ["Bearer old", "Bearer new"]


async def test_a_lasting_401_is_an_answer_after_one_renewal(open_to: Opener) -> None:
    loads = 0

    async def load() -> ClientIdentity:
        nonlocal loads
        loads += 1
        return bearer(str(loads))

    async with ScriptedServer(answer(401)) as server:
        transport = open_to(server.url, credentials=CachedCredentials(load))
        assert (await transport.request(GET)).status == 401
        async with transport.stream(GET) as stream:
            assert stream.status == 401
    assert len(server.received) == 4
    async with ScriptedServer(answer(401)) as server:
        assert (await open_to(server.url, credentials=StaticCredentials(bearer("t"))).request(GET)).status == 401
    assert len(server.received) == 1


async def test_credentials_that_fail_at_first_are_a_mistake_and_later_an_outage(
    open_to: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    async with ScriptedServer(answer(), answer(401)) as server:
        with pytest.raises(KubeconfigError, match="cannot be read"):
            await open_to(server.url, credentials=token_file(path)).request(GET)
        path.write_text("t")
        transport = open_to(server.url, credentials=token_file(path))
        await transport.request(GET)
        path.unlink()
        with pytest.raises(ConnectionFailed, match="no credentials"):
            await transport.request(GET)


async def test_every_warning_of_an_answer_is_logged_once_with_its_request(
    open_to: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    more = b'\r\nWarning: 299 - "one"\r\nWarning: 299 - "two", 299 - "three"\r\n\r\n'
    warned = answer(200).replace(b"\r\n\r\n", more, 1)
    async with ScriptedServer(warned) as server:
        transport = open_to(server.url)
        for _ in range(3):
            await transport.request(POST)
        async with transport.stream(ApiRequest("GET", "/api/v1/pods")):
            pass
    assert [r.getMessage() for r in caplog.records] == [
        f"{request}: the API server warns: {text}"
        for request in ("POST /api/v1/nodes", "GET /api/v1/pods")
        for text in ("one", "two", "three")
    ]


async def test_a_stream_hands_out_chunks_and_ends_when_the_server_ends_it(open_to: Opener) -> None:
    async with (
        ScriptedServer(chunked(b"one\n", b"two\n")) as server,
        open_to(server.url).stream(GET) as stream,
    ):
        assert stream.status == 200
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"one\ntwo\n"


async def test_a_stream_that_is_cut_breaks_after_what_came(open_to: Opener) -> None:
    got = b""
    async with ScriptedServer(chunked(b"one\n", end=False)) as server, open_to(server.url).stream(GET) as stream:
        with pytest.raises(StreamBroken):  # noqa: PT012 - the loop is what raises
            async for chunk in stream.chunks():
                got += chunk
    assert got == b"one\n"


async def test_a_closed_stream_wakes_its_reader(open_to: Opener) -> None:
    async def quiet(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await asyncio.Event().wait()

    with anyio.fail_after(5):
        async with ScriptedServer(quiet) as server, open_to(server.url).stream(GET) as stream:

            async def read() -> None:
                with pytest.raises(StreamBroken):
                    async for _ in stream.chunks():
                        pass

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                await stream.aclose()
                await stream.aclose()


async def test_streams_do_not_use_up_the_connections_of_requests(
    open_to: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopylite.client.transport.MAX_CONNECTIONS", 1)

    async def serve(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer() if received.method == "POST" else b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")

    async with ScriptedServer(serve) as server:
        transport = open_to(server.url)
        with anyio.fail_after(5):
            async with transport.stream(GET), transport.stream(GET), transport.stream(GET):
                assert (await transport.request(POST)).status == 200


async def test_a_stream_is_not_retried(open_to: Opener) -> None:
    async with (
        ScriptedServer(answer(429, b"busy", Retry_After="1")) as server,
        open_to(server.url).stream(GET) as stream,
    ):
        assert (stream.status, stream.headers["retry-after"], await stream.read()) == (429, "1", b"busy")
    assert len(server.received) == 1
    with pytest.raises(ConnectionFailed):
        async with open_to(server.url).stream(GET):
            pass


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def server_tls(ca: trustme.CA, name: str, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    if wants_client:
        ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def test_a_server_is_verified_by_its_ca_and_name(open_to: Opener, ca: trustme.CA) -> None:
    pem = ca.cert_pem.bytes()
    async with ScriptedServer(answer(), tls=server_tls(ca, "api.internal")) as server:
        named = open_to(server.url, tls=TlsSettings(pem, server_name="api.internal"))
        assert (await named.request(GET)).status == 200
        assert (await open_to(server.url, tls=TlsSettings(insecure=True)).request(GET)).status == 200
        with pytest.raises(ConnectionFailed, match="not trusted"):
            await open_to(server.url, tls=TlsSettings(pem)).request(GET)
        with pytest.raises(ConnectionFailed, match="not trusted"):
            await open_to(server.url, tls=TlsSettings(trustme.CA().cert_pem.bytes())).request(GET)


async def test_the_client_shows_its_certificate(open_to: Opener, ca: trustme.CA) -> None:
    cert = ca.issue_cert("client")
    chain = b"".join(blob.bytes() for blob in cert.cert_chain_pems)
    tls = TlsSettings(ca.cert_pem.bytes(), chain, cert.private_key_pem.bytes())
    async with ScriptedServer(answer(), tls=server_tls(ca, "127.0.0.1", wants_client=True)) as server:
        assert (await open_to(server.url, tls=tls).request(GET)).status == 200


async def test_a_rotated_client_certificate_is_shown_after_a_401(
    open_to: Opener, ca: trustme.CA, tmp_path: Path
) -> None:
    def issue() -> None:
        cert = ca.issue_cert("client")
        (tmp_path / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
        (tmp_path / "tls.key").write_bytes(cert.private_key_pem.bytes())

    issue()
    tls = TlsSettings(ca.cert_pem.bytes(), tmp_path / "tls.crt", tmp_path / "tls.key")
    serials: list[object] = []

    async def check(_: Received, writer: asyncio.StreamWriter) -> None:
        serial = writer.get_extra_info("peercert")["serialNumber"]
        if not serials:
            issue()
        serials.append(serial)
        writer.write(answer(401 if serial == serials[0] else 200))

    async with ScriptedServer(check, tls=server_tls(ca, "127.0.0.1", wants_client=True)) as server:
        assert (await open_to(server.url, tls=tls).request(POST)).status == 200
    assert len(set(serials)) == 2


async def test_a_rotated_ca_is_taken_up_without_a_restart(open_to: Opener, ca: trustme.CA, tmp_path: Path) -> None:
    path, other = tmp_path / "ca.crt", trustme.CA()
    path.write_bytes(other.cert_pem.bytes())
    async with ScriptedServer(answer(), tls=server_tls(ca, "127.0.0.1")) as server:
        transport = open_to(server.url, tls=TlsSettings(path))
        with pytest.raises(ConnectionFailed):
            await transport.request(GET)
        path.write_bytes(ca.cert_pem.bytes() + other.cert_pem.bytes())
        assert (await transport.request(GET)).status == 200


async def test_a_proxy_gets_the_request_and_its_password_stays_out_of_errors(open_to: Opener) -> None:
    async with ScriptedServer(answer()) as proxy:
        transport = open_to("http://127.0.0.1:9", proxy=f"http://user:hush@127.0.0.1:{proxy.port}")
        assert (await transport.request(GET)).status == 200
    assert proxy.received[0].target.startswith("http://127.0.0.1:9/api/v1/nodes/")
    assert proxy.received[0].headers["proxy-authorization"].startswith("Basic ")
    with pytest.raises(ConnectionFailed) as caught:
        await transport.request(GET)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_dead_proxy_is_named_without_its_password(open_to: Opener, scheme: str) -> None:
    transport = open_to("https://example.com:6443", proxy=f"{scheme}://user:hush@127.0.0.1:9")
    with pytest.raises(
        ConnectionFailed, match=f"no connection to the proxy {scheme}://127.0.0.1:9 in front of https://ex"
    ):
        await transport.request(GET)


async def test_a_proxy_that_refuses_is_named(open_to: Opener) -> None:
    async with ScriptedServer(answer(407)) as proxy:
        transport = open_to("https://example.com:6443", proxy=proxy.url)
        with pytest.raises(ConnectionFailed, match=f"the proxy {proxy.url} in front of .*HTTP 407; put user and pass"):
            await transport.request(GET)


class SocksProxy:
    """A SOCKS5 proxy that lets one user in and connects to one port of this machine, whatever it is asked for."""

    def __init__(self, port: int, password: bytes) -> None:
        self.asked: list[bytes] = []
        self._port, self._password = port, password

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly((await reader.readexactly(2))[1])
        writer.write(b"\x05\x02")
        user = await reader.readexactly((await reader.readexactly(2))[1])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x01\x00" if (user, password) == (b"user", self._password) else b"\x01\x01")
        head = await reader.readexactly(5)
        assert head[3] == 3, "the proxy resolves the name"
        self.asked.append(await reader.readexactly(head[4]))
        await reader.readexactly(2)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on, reader, back)
            tasks.start_soon(pass_on, there, writer)


async def test_a_socks_proxy_resolves_names_and_checks_the_user(open_to: Opener, ca: trustme.CA) -> None:
    async with ScriptedServer(answer(), tls=server_tls(ca, "api.internal")) as server:
        proxy = SocksProxy(server.port, b"hu sh")
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        tls = TlsSettings(ca.cert_pem.bytes())
        good = open_to("https://api.internal", tls=tls, proxy=f"socks5://user:hu%20sh@127.0.0.1:{port}")
        assert (await good.request(GET)).status == 200
        bad = open_to("https://api.internal", tls=tls, proxy=f"socks5://user:wrong@127.0.0.1:{port}")
        with pytest.raises(ConnectionFailed, match=r"no connection to the proxy socks5://127\.0\.0\.1") as caught:
            await bad.request(GET)
        assert "wrong" not in str(caught.value)
        await good.aclose()
        listening.close()
    assert proxy.asked == [b"api.internal"]


def test_a_socks_proxy_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kopylite.client.socks.find_spec", lambda name: None)
    with pytest.raises(KubeconfigError, match=r"pip install 'kopylite\[socks\]'"):
        HttpTransport(ClientConfig("https://example.com", proxy="socks5://127.0.0.1:9"))
