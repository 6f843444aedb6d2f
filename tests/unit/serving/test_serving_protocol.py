"""What happens below the requests: connections that are in the middle of something when the server ends."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl

import anyio
import pytest
import trustme

from kopylite.serving import Address, PostServer
from tests.leftovers import open_files

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def answer(body: bytes, timeout: float) -> bytes:
    return b"{}"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def served_by(ca: trustme.CA) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    context, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(trusting)
    return context, trusting


def sockets() -> set[str]:
    return {name for name in open_files().values() if name.startswith("socket:")}


async def shaken_hands(raw: socket.socket, trusting: ssl.SSLContext) -> ssl.SSLSocket:
    return await asyncio.to_thread(trusting.wrap_socket, raw, server_hostname="127.0.0.1")


async def test_a_connection_whose_handshake_ends_after_the_server_is_not_served(ca: trustme.CA) -> None:
    context, trusting = served_by(ca)
    loop = asyncio.get_running_loop()
    async with PostServer(Address("127.0.0.1", 0), {"/": answer}, context, now=loop.time) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        early, other = await asyncio.open_connection(*server.address, ssl=trusting)
        other.write(REQUEST)  # it came later, so the first one is accepted
        await early.readuntil(b"{}")
    with anyio.fail_after(20):
        assert await early.read() == b"", "one that was served is closed"
        other.close()
        try:
            await writer.start_tls(trusting, server_hostname="127.0.0.1")
            writer.write(REQUEST)
            heard = await reader.read()
        except OSError:  # ssl.SSLError is one
            heard = b""
        assert heard == b""
        writer.close()


async def test_a_client_that_does_not_say_goodbye_leaves_no_socket_at_the_end(ca: trustme.CA) -> None:
    """A machine that is busy, or gone: TLS would wait for it for half a minute, longer than the event loop lives."""
    context, trusting = served_by(ca)
    before = sockets()
    loop = asyncio.get_running_loop()
    async with PostServer(Address("127.0.0.1", 0), {"/": answer}, context, now=loop.time) as server:
        raw = await asyncio.to_thread(socket.create_connection, server.address)
        client = await shaken_hands(raw, trusting)
        client.sendall(REQUEST)
        assert (await asyncio.to_thread(client.recv, 1000)).startswith(b"HTTP/1.1 200")
        mine = {os.readlink(f"/proc/self/fd/{client.fileno()}")}
        began = loop.time()
    assert sockets() - mine <= before
    assert loop.time() - began < 20
    client.close()


async def test_a_client_that_says_goodbye_gets_its_answer_and_keeps_nobody_waiting(
    ca: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopylite.serving.protocol.GOODBYE_SECONDS", 600.0)
    context, trusting = served_by(ca)
    loop = asyncio.get_running_loop()
    with anyio.fail_after(60):
        async with PostServer(Address("127.0.0.1", 0), {"/": answer}, context, now=loop.time) as server:
            reader, writer = await asyncio.open_connection(*server.address, ssl=trusting)
            writer.write(REQUEST)
            await reader.readuntil(b"{}")
    assert await reader.read() == b""
    writer.close()
