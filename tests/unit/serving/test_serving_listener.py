"""Listener and LimitedServer: what both servers of an operator have in common."""

from __future__ import annotations

import aiohttp
import anyio
import pytest
from aiohttp import web

from kopylite.errors import UsageError
from kopylite.serving import Address
from kopylite.serving.listener import LimitedServer, Listener

HERE = Address("127.0.0.1", 0)


def listener(address: Address = HERE, most: int = 10, idle: int | None = None) -> Listener:
    async def respond(request: web.BaseRequest) -> web.Response:
        if request.path == "/slow":
            await anyio.sleep(0.3)
        return web.Response(text="done")

    server = LimitedServer(respond, lambda status: web.Response(status=status, text="no"), most=most, idle=idle)
    return Listener(address, server, purpose="for tests", setting="--here", way_out="take another", grace=1)


async def test_a_taken_port_is_told_with_the_setting_and_the_way_out() -> None:
    async with listener() as running:
        with pytest.raises(UsageError) as caught:
            await listener(running.address).__aenter__()
    text = f"--here: cannot listen on {running._wanted.host}:"
    assert str(caught.value).startswith(text)
    assert str(caught.value).endswith("for tests: the port is taken by another process (take another)")


@pytest.mark.parametrize(("most", "most_idle"), [(2, None), (100, 1)])
async def test_beyond_the_most_connections_an_idle_one_goes_and_none_that_is_answered(
    most: int, most_idle: int | None
) -> None:
    async with listener(most=most, idle=most_idle) as running:
        answers: list[str] = []

        async def slow() -> None:
            async with aiohttp.ClientSession() as session, session.get(f"http://{running.address}/slow") as response:
                answers.append(await response.text())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            await anyio.sleep(0.05)
            idle = [await anyio.connect_tcp(*running.address) for _ in range(4)]
            with anyio.fail_after(10), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await idle[0].receive()
        for one in idle:
            await one.aclose()
    assert answers == ["done"]


async def test_what_is_no_request_gets_the_servers_own_answer() -> None:
    async with listener() as running, await anyio.connect_tcp(*running.address) as stream:
        await stream.send(b"nonsense\r\n\r\n")
        assert b" 400 " in await stream.receive()
