"""Connections over real sockets: an address that moves, and how many watches are opened at a time."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
import trustme
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kopylite.client import ApiRequest, ClientConfig, HttpTransport
from kopylite.client.connections import KEEPALIVE, OPENING_AT_A_TIME, Connections
from kopylite.client.dialing import Dialer
from kopylite.client.permits import PERMIT
from kopylite.client.tls import TlsSettings
from kopylite.client.wire import PIECE, HttpConnection
from kopylite.errors import KopyliteError, RequestTimeout, StreamBroken, UsageError
from tests.leftovers import open_files
from tests.operators import eventually
from tests.unit.client.scripted import Act, Hurried, Received, ScriptedServer, answer, chunked, reset

VERSION = ApiRequest("GET", "/version")
NAME = "kube.example.com"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(address: str, port: int = 0, handler: Handler | None = None) -> AsyncIterator[int]:
    """A server on an address of this machine that answers with it; yields the port."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=address)

    app = web.Application()
    app.router.add_get("/{path:.*}", handler or answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Names:
    """A resolver that says what it is told to."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked = 0

    async def getaddrinfo(self, host: str, port: int, **hints: Any) -> list[Any]:
        assert host == NAME
        self.asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (self.address, port))]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names("127.0.0.1")
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo)
    return names


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_name_that_moves_is_followed_as_soon_as_its_address_fails(names: Names) -> None:
    async with AsyncExitStack() as first:
        port = await first.enter_async_context(serving("127.0.0.1"))
        async with HttpTransport(ClientConfig(f"http://{NAME}:{port}")) as transport:
            for _ in range(3):
                assert (await transport.request(VERSION)).body == b"127.0.0.1"
            assert names.asked == 1  # an address that works is remembered
            await first.aclose()
            names.address = "127.0.0.2"
            async with serving("127.0.0.2", port):
                with anyio.fail_after(20):
                    assert (await transport.request(VERSION)).body == b"127.0.0.2"


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_watch_follows_its_name_too(names: Names) -> None:
    async with AsyncExitStack() as first:
        port = await first.enter_async_context(serving("127.0.0.1"))
        async with HttpTransport(ClientConfig(f"http://{NAME}:{port}")) as transport:
            async with transport.stream(VERSION) as stream:
                assert await stream.read() == b"127.0.0.1"
            await first.aclose()
            names.address = "127.0.0.2"
            async with serving("127.0.0.2", port):

                async def opened() -> bytes:
                    while True:
                        try:
                            async with transport.stream(VERSION) as stream:
                                return await stream.read()
                        except OSError:
                            raise
                        except Exception:  # the first one finds nobody there
                            continue

                with anyio.fail_after(20):
                    assert await opened() == b"127.0.0.2"
    assert names.asked <= 3


async def test_few_watches_are_opened_at_a_time_and_all_are_open_in_the_end() -> None:
    waiting: list[int] = []
    most: list[int] = []
    opened: list[int] = []
    answer, over = anyio.Semaphore(0), anyio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        waiting.append(1)
        most.append(len(waiting))
        await answer.acquire()
        waiting.pop()
        response = web.StreamResponse()
        await response.prepare(request)
        await over.wait()
        return response

    count = 3 * OPENING_AT_A_TIME
    async with (
        serving("127.0.0.1", handler=slow) as port,
        HttpTransport(ClientConfig(f"http://127.0.0.1:{port}")) as transport,
        anyio.create_task_group() as tasks,
    ):

        async def watch() -> None:
            async with transport.stream(VERSION):
                opened.append(1)
                await anyio.sleep_forever()

        for _ in range(count):
            tasks.start_soon(watch)
        await eventually(lambda: len(waiting) == OPENING_AT_A_TIME, "as many as may were on their way")
        for _ in range(count):
            answer.release()
        await eventually(lambda: len(opened) == count, "all were open")
        over.set()
        tasks.cancel_scope.cancel()
    assert max(most) == OPENING_AT_A_TIME


async def test_who_needs_a_permit_is_asked_for_it_on_the_connection_of_all() -> None:
    ports: set[Any] = set()
    permits = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.Response(text="1")

    def ask() -> None:
        nonlocal permits
        permits += 1
        if permits == 2:
            raise UsageError("no permit any more")

    async with serving("127.0.0.1", handler=answer) as port:
        config = ClientConfig(server=f"http://127.0.0.1:{port}")
        async with HttpTransport(config) as transport:
            await transport.request(VERSION)
            token = PERMIT.set(ask)
            await transport.request(VERSION)
            with pytest.raises(UsageError, match="no permit"):
                await transport.request(VERSION)
            PERMIT.reset(token)
            await transport.request(VERSION)
    assert permits == 2
    assert len(ports) <= 2  # the request without a permit has taken its connection with it


async def test_a_request_that_is_given_up_shortly_before_the_end_leaves_no_socket() -> None:
    """Its connection says goodbye to a server that does not listen."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    before = {*open_files()}
    heard, listening = anyio.Event(), socket.create_server(("127.0.0.1", 0))
    serving: list[ssl.SSLSocket] = []

    def serve() -> None:
        serving.append(context.wrap_socket(listening.accept()[0], server_side=True))
        serving[0].recv(1000)

    async def listen() -> None:
        await asyncio.to_thread(serve)
        heard.set()

    url = f"https://127.0.0.1:{listening.getsockname()[1]}"
    transport = HttpTransport(ClientConfig(url, tls=TlsSettings(ca.cert_pem.bytes())))
    with listening:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            tasks.start_soon(transport.request, VERSION)
            await heard.wait()
            tasks.cancel_scope.cancel()
        await transport.aclose()
        mine = {*before, listening.fileno(), serving[0].fileno()}
        left = [name for number, name in open_files().items() if number not in mine and name.startswith("socket:")]
        serving[0].close()
    assert left == []


async def kept(transport: HttpTransport, server: ScriptedServer, count: int) -> None:
    """Have so many connections wait for a request."""
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(transport.request, VERSION)
    assert server.connections == count


def together(count: int, later: Act) -> Act:
    """Answers the first requests when so many have come; those who come later on their connections meet `later`."""
    writers: set[asyncio.StreamWriter] = set()
    all_here = asyncio.Event()

    async def act(received: Received, writer: asyncio.StreamWriter) -> None:
        if writer in writers:
            return await later(received, writer)
        if len(writers) < count:
            writers.add(writer)
            if len(writers) == count:
                all_here.set()
            await all_here.wait()
        writer.write(answer())

    return act


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_when_a_connection_that_waited_has_died_the_others_are_not_tried(method: str) -> None:
    """A load balancer that has forgotten them all: each would fail its request, and a read has five attempts."""
    request = ApiRequest(method, "/version", body=b"{}" if method == "POST" else None)
    async with (
        ScriptedServer(together(9, reset)) as server,
        HttpTransport(ClientConfig(server.url), clock=Hurried()) as transport,
    ):
        await kept(transport, server, 9)
        if method == "POST":
            with pytest.raises(StreamBroken):
                await transport.request(request)
        assert (await transport.request(request)).status == 200
    assert len(server.received) == 9 + 2
    assert server.connections == 9 + 1


async def test_a_watch_without_an_answer_is_a_sign_that_those_that_wait_have_died() -> None:
    again = together(3, reset)

    async def act(received: Received, writer: asyncio.StreamWriter) -> None:
        await (reset if received.target == "/watch" else again)(received, writer)

    async with ScriptedServer(act) as server, HttpTransport(ClientConfig(server.url)) as transport:
        await kept(transport, server, 3)
        with pytest.raises(StreamBroken, match=r"^GET /watch: no whole answer from "):
            async with transport.stream(ApiRequest("GET", "/watch")):
                pass
        assert (await transport.request(ApiRequest("POST", "/x", body=b"{}"))).status == 200


async def test_a_server_that_closes_after_each_answer_without_a_word_loses_no_write() -> None:
    async def close(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())
        writer.close()

    async with ScriptedServer(close) as server, HttpTransport(ClientConfig(server.url)) as transport:
        for _ in range(10):
            assert (await transport.request(ApiRequest("POST", "/x", body=b"{}"))).status == 200
    assert len(server.received) == 10


@pytest.mark.parametrize("news", [answer(body=b"forged"), b""])
async def test_what_came_while_the_event_loop_was_held_up_is_seen_before_a_connection_is_used_again(
    news: bytes,
) -> None:
    """`news`: an answer that nobody asked for; b"": the end."""
    loop, accepted = asyncio.get_running_loop(), list[socket.socket]()

    async def serve() -> None:
        accepted.append((await loop.sock_accept(listening))[0])
        await loop.sock_recv(accepted[-1], 1000)
        await loop.sock_sendall(accepted[-1], answer(body=b"asked"))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        async with HttpTransport(ClientConfig(f"http://127.0.0.1:{listening.getsockname()[1]}")) as transport:
            for _ in range(2):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(serve)
                    response = await transport.request(ApiRequest("POST", "/x", body=b"{}"), timeout=10)
                assert response.body == b"asked"
                with accepted[-1] as there:
                    there.sendall(news)


async def test_connections_that_had_an_answer_since_are_trusted_when_another_falls_silent() -> None:
    asked, loop = anyio.Event(), asyncio.get_running_loop()

    async def silence(_: Received, writer: asyncio.StreamWriter) -> None:
        if asked.is_set():
            writer.write(answer())
        asked.set()

    async with (
        ScriptedServer(together(3, silence)) as server,
        HttpTransport(ClientConfig(server.url)) as transport,
    ):
        await kept(transport, server, 3)

        async def silent() -> None:
            with pytest.raises(RequestTimeout):
                await transport.request(VERSION, timeout=0.5)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(silent)
            await asked.wait()
            began = loop.time()
            await eventually(lambda: loop.time() > began, "time went on: uvloop's goes by milliseconds")
            await transport.request(VERSION)
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(transport.request, VERSION)
    assert server.connections == 4  # one of three was trusted


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("size", [0, 3 * PIECE])
async def test_a_request_that_is_cancelled_at_any_moment_leaves_no_half_of_its_answer(
    tls: bool, waited: bool, size: int
) -> None:
    """`waited`: it goes over a connection that is there already."""
    ca, turns, ended = trustme.CA(), 0, False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)

    async def act(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.sleep(0)
        with suppress(ConnectionError):
            await chunked(received.target.encode(), *[b"x" * 100_000] * 3)(received, writer)

    async with ScriptedServer(act, tls=context if tls else None) as server:
        config = ClientConfig(server.url, tls=TlsSettings(ca.cert_pem.bytes()))
        while not ended:
            async with HttpTransport(config) as transport:
                if waited:
                    await transport.request(VERSION)
                first = asyncio.ensure_future(transport.request(ApiRequest("PUT", f"/{turns}", body=b"x" * size)))
                for _ in range(turns):
                    await asyncio.sleep(0)
                first.cancel()
                await asyncio.wait([first])
                ended = not first.cancelled()
                for again in range(2):
                    response = await transport.request(ApiRequest("GET", f"/{turns}/{again}"), timeout=20)
                    assert response.body.rstrip(b"x").decode() == f"/{turns}/{again}"
            turns += 1
    assert turns > 5


@pytest.mark.parametrize("tls", [False, True])
async def test_a_dial_that_is_cancelled_at_any_moment_closes_its_own_descriptor_and_no_other(tls: bool) -> None:
    """uvloop 0.21 and 0.22, as `make matrix ARGS=lowest` has it, leave a number that is closed to the socket."""
    ca, turns, ended = trustme.CA(), 0, False
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    ca.issue_cert("127.0.0.1").configure_cert(serving)
    ca.configure_trust(trusting)
    async with ScriptedServer(answer(), tls=serving if tls else None) as server:
        dialer = Dialer(server.url)
        while not ended:
            dial = asyncio.ensure_future(dialer.dial(trusting if tls else None))
            for _ in range(turns):
                await asyncio.sleep(0)
            dial.cancel()
            await asyncio.wait([dial])
            others = socket.socketpair()  # takes the lowest numbers that are free
            if ended := not dial.cancelled():
                dial.result().abort()
            del dial
            gc.collect()
            for each in others:
                os.fstat(each.fileno())
                each.close()
            turns += 1
    assert turns > 2


class Moment:
    """Stands for an event loop that is at one moment."""

    def __init__(self, moment: float) -> None:
        self.moment = moment
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.moment

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> None:
        self.timers.append((when, callback, args))


class Still(asyncio.Transport):
    aborted = False

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


async def test_what_was_under_way_when_all_was_closed_opens_nothing_any_more() -> None:
    """A request that would try again, and a later one."""
    asked, go_on, heard = anyio.Event(), anyio.Event(), 0

    async def never(request: web.Request) -> web.StreamResponse:
        nonlocal heard
        heard += 1
        asked.set()
        await go_on.wait()
        return web.Response()

    async with serving("127.0.0.1", handler=never) as port:
        transport, ends = HttpTransport(ClientConfig(f"http://127.0.0.1:{port}")), list[Exception]()

        async def request() -> None:
            try:
                await transport.request(VERSION)
            except KopyliteError as error:
                ends.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request)
            await asked.wait()
            await transport.aclose()
            await request()
        go_on.set()
        assert [type(error) for error in ends] == [UsageError, UsageError]
        assert heard == 1


async def test_a_connection_that_is_made_while_all_are_closed_is_cut() -> None:
    made = anyio.Event()

    class Made:
        aborted = 0

        def abort(self) -> None:
            self.aborted += 1

    class Slow(Dialer):
        async def dial(self, context: ssl.SSLContext | None) -> Any:
            await made.wait()
            return connection

    connection, connections = Made(), Connections(Slow("http://127.0.0.1:9"))

    async def take() -> None:
        with pytest.raises(UsageError, match="is closed"):
            await connections.take(None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        await connections.aclose()
        made.set()
    assert connection.aborted == 1


@given(st.floats(0, 1e7))
def test_whenever_a_connection_was_used_last_its_end_is_one_moment(used: float) -> None:
    """Moments are floats: what is a minute later need not be a minute earlier, seen from there."""
    loop: Any = Moment(used)
    connection, below = HttpConnection(loop), Still()
    connection.connection_made(below)
    connections = Connections(Dialer("http://127.0.0.1:9"))
    connections.keep(connection, loop)
    (loop.moment, close, args) = loop.timers.pop()
    assert loop.moment == used + KEEPALIVE
    close(*args)
    assert below.aborted
    assert loop.timers == []
