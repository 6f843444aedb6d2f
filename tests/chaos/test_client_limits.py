"""Limits are on silence, not on length; and what this client makes itself wait for is not called the server's fault."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from kopylite.client import verbs
from kopylite.client.api import Api
from kopylite.client.config import ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.client.verbs import EVERYTHING, ApiRequest, ResourceInfo
from kopylite.errors import ConnectionFailed, RequestTimeout
from kopylite.objects import Kind
from kopylite.testing.clock import VirtualClock
from tests.unit.client.scripted import Act, Received, ScriptedServer, answer

THING = ResourceInfo(Kind("example.com/v1", "Thing", plural="things", namespaced=True), "things", True)
GET = ApiRequest("GET", "/api/v1/namespaces/default")


def with_server(
    *acts: bytes | Act, scenario: Callable[[HttpTransport, VirtualClock], Awaitable[Any]], **settings: Any
) -> ScriptedServer:
    """Run a scenario against a server, in virtual time."""
    clock, server = VirtualClock(), ScriptedServer(*acts)

    async def main() -> None:
        async with server, HttpTransport(ClientConfig(server.url, **settings), clock=clock) as transport:
            await scenario(transport, clock)

    clock.run(main)
    return server


def slowly(body: bytes, pieces: int, pause: float, *, whole: bool = True) -> Act:
    """An answer in so many pieces, with a pause before each."""

    async def act(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        size = -(-len(body) // pieces)
        for at in range(0, len(body) if whole else len(body) - size, size):
            await asyncio.sleep(pause)
            writer.write(body[at : at + size])
        if not whole:
            await asyncio.sleep(10_000)

    return act


def late(seconds: float, body: bytes = b"{}") -> Act:
    async def act(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(answer(body=body))

    return act


def page(count: int, token: str = "") -> bytes:
    items = [{"metadata": {"name": f"t{n}", "namespace": "ns"}} for n in range(count)]
    return json.dumps({"metadata": {"resourceVersion": "9", "continue": token}, "items": items}).encode()


EXPIRED = answer(410, json.dumps({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}).encode())


def test_a_list_may_take_any_time_as_long_as_it_goes_on() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        response = await transport.request(verbs.list_page(THING))
        assert response.body == page(50)
        assert clock.monotonic() > 600

    with_server(slowly(page(50), 40, 20.0), scenario=scenario)


def test_a_live_list_whose_token_expired_is_read_in_one_piece_however_long_that_takes() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        found = await Api(transport, Resources(transport, clock)).list_all(THING.kind, "ns", EVERYTHING)
        assert len(found) == 50

    server = with_server(answer(body=page(2, "more")), EXPIRED, slowly(page(50), 40, 20.0), scenario=scenario)
    assert "limit=500" in server.received[1].target
    assert "limit" not in server.received[2].target


def test_a_whole_list_may_begin_as_late_as_the_server_allows_itself() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        assert (await transport.request(verbs.list_page(THING))).body == page(3)

    with_server(late(59.0, page(3)), scenario=scenario)


def test_discovery_may_take_its_time_too() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        found = await Resources(transport, clock).find(Kind("example.com/v1", "Thing"))
        assert found.plural == "things"
        assert clock.monotonic() > 60

    served = json.dumps({"resources": [{"name": "things", "kind": "Thing", "namespaced": True}]}).encode()
    with_server(slowly(served, 7, 10.0), scenario=scenario)


@pytest.mark.parametrize("request_", [verbs.list_page(THING, limit=500), verbs.discovery("example.com/v1")], ids=str)
def test_an_answer_that_falls_silent_is_given_up_and_the_error_says_so(request_: ApiRequest) -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        with pytest.raises(RequestTimeout, match=r"fell silent for 30 s in mid-answer, after \d+ bytes"):
            await transport.request(request_)
        assert clock.monotonic() < 60

    with_server(slowly(page(50), 4, 5.0, whole=False), scenario=scenario)


def test_a_small_answer_that_trickles_for_ever_is_given_up() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        with pytest.raises(RequestTimeout, match="was not whole"):
            await transport.request(GET)
        assert clock.monotonic() < 40

    with_server(slowly(b"x" * 1000, 1000, 1.0), scenario=scenario)


def test_a_time_for_everything_holds_for_lists_as_well() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        with pytest.raises(RequestTimeout):
            await transport.request(verbs.list_page(THING), timeout=50)
        assert clock.monotonic() < 51

    with_server(slowly(page(50), 40, 20.0), scenario=scenario)


def test_a_large_object_may_travel_slowly_in_both_directions() -> None:
    body = json.dumps({"data": "x" * 2_000_000}).encode()

    async def reads_slowly(received: Received, writer: asyncio.StreamWriter) -> None:
        assert received.body == body
        await asyncio.sleep(100)  # what 2 MB take on a line of 20 kB a second
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 200_000):
            await asyncio.sleep(10)
            writer.write(body[at : at + 200_000])

    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            request = ApiRequest("PUT", "/api/v1/x", body=body, content_type="application/json")
            assert (await transport.request(request)).body == body

    server = with_server(reads_slowly, scenario=scenario)
    assert server.received[0].headers["content-length"] == str(len(body))
    assert server.received[0].headers["content-type"] == "application/json"


def test_two_hundred_requests_at_a_time_do_not_blame_the_server_for_their_own_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """64 at a time, each 20 s: the last ones begin after a minute."""

    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(transport.request, GET)

    with caplog.at_level(logging.WARNING):
        server = with_server(late(20.0), scenario=scenario)
    assert len(server.received) == 200
    assert server.connections <= 64
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1, "one cause, one line"
    assert "All 64 connections of this client for requests are in use" in lines[0]
    assert "max_connections" in lines[0]


def test_who_gets_no_turn_in_time_learns_that_nothing_was_sent() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.request, GET)
            await anyio.sleep(1)
            with pytest.raises(ConnectionFailed, match=r"not sent: no turn within 5 s.*max_connections"):
                await transport.request(GET, timeout=5)

    server = with_server(late(20.0), scenario=scenario, max_connections=1)
    assert len(server.received) == 1


def test_lists_and_requests_do_not_wait_for_each_other() -> None:
    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.request, verbs.list_page(THING))
            await anyio.sleep(1)
            await transport.request(GET)
            assert clock.monotonic() < 2

    async def act(received: Received, writer: asyncio.StreamWriter) -> None:
        await (late(20.0, page(1)) if "things" in received.target else late(0.0))(received, writer)

    with_server(act, scenario=scenario, max_connections=1)


def test_a_turn_is_given_back_whatever_happens() -> None:
    async def closes(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def scenario(transport: HttpTransport, clock: VirtualClock) -> None:
        with pytest.raises(RequestTimeout):
            await transport.request(GET)
        with anyio.move_on_after(1):
            await transport.request(GET)
        post = ApiRequest("POST", "/api/v1/x", body=b"{}", content_type="application/json")
        with pytest.raises(Exception, match="no whole answer"):
            await transport.request(post)
        assert (await transport.request(GET, timeout=5)).status == 200

    with_server(late(10_000), late(10_000), closes, answer(), scenario=scenario, max_connections=1)
