from __future__ import annotations

from contextlib import AsyncExitStack

import aiohttp
import anyio
import pytest

from kopylite.errors import UsageError
from kopylite.serving import Address, Answer, HttpServer, Query
from kopylite.serving import server as server_module

ANY_PORT = Address("127.0.0.1", 0)


def echo(query: Query) -> Answer:
    return Answer(200, f"{query.tail}|{sorted(query.parameters.items())}|{query.accept}".encode(), "text/x-echo")


async def test_port_zero_takes_a_free_port_and_tells_which() -> None:
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server:
        assert server.address.host == "127.0.0.1"
        assert server.address.port > 0


async def test_a_route_gets_its_tail_its_parameters_and_the_accept_header() -> None:
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server, aiohttp.ClientSession() as session:
        url = f"http://{server.address}/healthz/etcd?exclude=a&exclude=b&verbose"
        async with session.get(url, headers={"Accept": "text/plain"}) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/x-echo"
            assert await response.text() == "etcd|[('exclude', ['a', 'b']), ('verbose', [''])]|text/plain"


async def test_other_paths_are_not_found_and_other_methods_not_allowed() -> None:
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server, aiohttp.ClientSession() as session:
        async with session.get(f"http://{server.address}/metrics") as response:
            assert response.status == 404
        async with session.post(f"http://{server.address}/healthz", data=b"x") as response:
            assert response.status == 405


async def test_a_taken_port_is_one_clear_line() -> None:
    async with HttpServer(ANY_PORT, {"/": echo}) as first:
        taken = first.address
        with pytest.raises(UsageError) as caught:
            async with HttpServer(taken, {"/a": echo, "/b": echo}, "--health-address"):
                pass
    message = str(caught.value)
    assert f"--health-address: cannot listen on {taken} for /a and /b" in message
    assert "taken" in message
    assert "\n" not in message


async def test_the_port_is_free_again_after_leaving() -> None:
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server:
        address = server.address
    async with HttpServer(address, {"/healthz": echo}) as server:
        assert server.address == address


async def test_a_client_that_keeps_its_connection_open_does_not_hold_up_the_end() -> None:
    async with aiohttp.ClientSession() as session:
        with anyio.fail_after(5):
            async with HttpServer(ANY_PORT, {"/healthz": echo}) as server:
                response = await session.get(f"http://{server.address}/healthz")
                assert response.status == 200


async def exchange(address: Address, request: bytes) -> bytes:
    """Send bytes; what comes back until the server closes the connection."""
    stream = await anyio.connect_tcp(*address)
    async with stream:
        await stream.send(request)
        answer = b""
        with anyio.fail_after(10):
            try:
                async for chunk in stream:
                    answer += chunk
            except anyio.BrokenResourceError:
                pass
        return answer


@pytest.mark.parametrize("request_", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nAccept: te", b"GET "])
async def test_a_half_sent_request_is_closed_after_a_limit(request_: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_SECONDS", 0.2)
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server:
        assert await exchange(server.address, request_) == b""


async def test_a_body_that_never_comes_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_SECONDS", 0.2)
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server:
        answer = await exchange(server.address, b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 405")


async def test_many_half_open_connections_do_not_stop_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 20)
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server, AsyncExitStack() as stack:
        for _ in range(120):
            stream = await anyio.connect_tcp(*server.address)
            stack.push_async_callback(anyio.aclose_forcefully, stream)
            await stream.send(b"GET /healthz HTTP/1.1\r\nHost: ")
        answer = await exchange(server.address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")
        served = server._runner.server
        assert served is not None
        assert len(served.connections) <= server_module.MAX_CONNECTIONS


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nAuthorization: Bearer hush\x00\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nAuthorization Bearer hush\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nA: hush" + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"A: hush\r\n" * 1000 + b"\r\n",
        b"GET /" + b"hush" * 10_000 + b" HTTP/1.1\r\n\r\n",
        b"hush\r\n\r\n",
        b"\x16\x03\x01hush",
    ],
)
async def test_a_malformed_request_is_a_400_that_quotes_nothing(head: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with HttpServer(ANY_PORT, {"/healthz": echo}) as server:
        answer = await exchange(server.address, head)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert b"hush" not in answer
    assert not caplog.records


async def test_a_handler_that_fails_is_logged_and_answers_500(caplog: pytest.LogCaptureFixture) -> None:
    def broken(query: Query) -> Answer:
        raise ValueError("hush")

    async with HttpServer(ANY_PORT, {"/healthz": broken}) as server:
        answer = await exchange(server.address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500")
    assert b"hush" not in answer
    assert "the answer to GET /healthz failed" in caplog.text
