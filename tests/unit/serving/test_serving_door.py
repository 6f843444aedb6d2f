"""Who shakes hands comes in, however many do not; and what is in the middle of it at the end is cut."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
import trustme

from kopylite.serving import Address, PostServer, door
from tests.operators import eventually

REQUEST = (
    b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)

Call = Callable[[], Awaitable[bytes]]


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Address, Call]]:
    """Where it listens, and a call to it."""
    ca, context, trusting = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(trusting)

    async def answer(body: bytes, timeout: float) -> bytes:
        return b"{}"

    now = asyncio.get_running_loop().time
    async with PostServer(Address("127.0.0.1", 0), {"/": answer}, context, now=now) as server:

        async def call() -> bytes:
            reader, writer = await asyncio.open_connection(*server.address, ssl=trusting)
            writer.write(REQUEST)
            try:
                return await reader.readline()
            finally:
                writer.transport.abort()

        with anyio.fail_after(30):
            yield server.address, call


async def silent(address: Address) -> socket.socket:
    """A connection of somebody who says nothing."""
    connection = socket.socket()
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, address)
    return connection


async def test_of_those_who_do_not_shake_hands_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_HANDSHAKES", 3)
    loop = asyncio.get_running_loop()
    async with served() as (address, call):
        connections = [await silent(address) for _ in range(10)]
        for connection in connections[:7]:
            assert await loop.sock_recv(connection, 1) == b""
        for _ in range(5):
            assert await call() == b"HTTP/1.1 200 OK\r\n"
        for connection in connections:
            connection.close()


async def test_a_handshake_that_takes_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HANDSHAKE_SECONDS", 0.05)
    async with served() as (address, _):
        with await silent(address) as connection:
            assert await asyncio.get_running_loop().sock_recv(connection, 1) == b""


async def test_what_is_in_the_middle_of_its_handshake_at_the_end_is_cut_and_nobody_listens_any_more() -> None:
    async with served() as (address, call):
        connection = await silent(address)
        assert await call() == b"HTTP/1.1 200 OK\r\n", "so the other was accepted before"
    with connection:
        assert await asyncio.get_running_loop().sock_recv(connection, 1) == b""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\x00" * 70_000, b"\x00"])
async def test_what_is_no_handshake_is_closed_without_a_word(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with served() as (address, call):
        async with await anyio.connect_tcp(*address) as stream:
            try:
                await stream.send(said)
                await stream.send_eof()
                while True:
                    await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
        assert await call() == b"HTTP/1.1 200 OK\r\n"
    assert caplog.text == ""


async def test_when_no_descriptor_is_left_it_is_told_and_those_who_wait_come_in_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "FULL_SECONDS", 0.01)
    async with served() as (address, call):
        assert await call() == b"HTTP/1.1 200 OK\r\n"
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        connection = socket.socket()
        connection.setblocking(False)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            await asyncio.get_running_loop().sock_connect(connection, address)
            await eventually(lambda: "no connection can be accepted: Too many open files" in caplog.text, "it is told")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await call() == b"HTTP/1.1 200 OK\r\n"
        connection.close()
