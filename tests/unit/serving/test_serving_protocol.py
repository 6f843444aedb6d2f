"""What happens below the requests: connections that are in the middle of something when the server ends."""

from __future__ import annotations

import asyncio
import ssl

import anyio
import pytest
import trustme

from kopylite.serving import Address, PostServer

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def answer(body: bytes, timeout: float) -> bytes:
    return b"{}"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


async def test_a_connection_whose_handshake_ends_after_the_server_is_not_served(ca: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
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
