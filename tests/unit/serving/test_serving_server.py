from __future__ import annotations

import aiohttp
import anyio
import pytest

from kopylite.errors import UsageError
from kopylite.serving import Address, Answer, HttpServer, Query

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
            async with HttpServer(taken, {"/": echo}):
                pass
    message = str(caught.value)
    assert f"cannot listen on {taken}" in message
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
