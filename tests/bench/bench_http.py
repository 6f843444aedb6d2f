"""CPU of one request of HTTP clients beside each other: aiohttp, ours, Rust ones if there are any, and the floor.

    python -m tests.bench.bench_http            # pip install pyreqwest pyqwest, to have them in the table

Each sends the same PATCH over TLS to the same server, 8 at a time over kept connections; CPU is of all threads of this
process, best of five interleaved rounds. The floor is what an asyncio protocol needs that writes a request as bytes and
looks for the end of its answer, and no more: what no client in Python can do without.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from yarl import URL

from kopylite.client import ApiRequest, ClientConfig, HttpTransport
from kopylite.client.credentials import StaticCredentials, bearer
from kopylite.client.tls import TlsSettings
from kopylite.serving.authority import CertificateAuthority

REQUESTS, ROUNDS, AT_ONCE = 1000, 5, 8
PATH = "/apis/apps/v1/namespaces/default/deployments/app-1?fieldManager=peer"
PAYLOAD = json.dumps({"spec": {"text": "y" * 300}}).encode()
HEADERS = {
    "Accept": "application/json",
    "Content-Type": "application/merge-patch+json",
    "Authorization": "Bearer token",
    "User-Agent": "peer/kopylite",
}
ANSWER = json.dumps({"kind": "Deployment", "metadata": {"name": "app-1", "uid": "u"}, "text": "y" * 900}).encode()
HEAD = (
    "HTTP/1.1 200 OK\r\nAudit-Id: 00000000-0000-0000-0000-000000000000\r\nCache-Control: no-cache, private\r\n"
    "Content-Type: application/json\r\nDate: Mon, 30 Nov 2026 17:00:00 GMT\r\n"
    f"Content-Length: {len(ANSWER)}\r\n\r\n"
).encode()
Send = Callable[[], Awaitable[bytes]]


class Messages(asyncio.Protocol):
    """Finds the ends of HTTP messages that say their length."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        self._kept += data
        while (end := self._kept.find(b"\r\n\r\n") + 4) > 3:
            length = int(self._kept[:end].lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(self._kept) < end + length:
                return
            body, self._kept = self._kept[end : end + length], self._kept[end + length :]
            self.on_message(body)

    def on_message(self, body: bytes) -> None:
        self.transport.write(HEAD + ANSWER)


class Floor(Messages):
    """One connection of the floor."""

    answer: asyncio.Future[bytes]

    def on_message(self, body: bytes) -> None:
        self.answer.set_result(body)


async def serve(folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    server = await asyncio.get_running_loop().create_server(Messages, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def of_aiohttp(stack: AsyncExitStack, url: str, ca: bytes) -> Send:
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=ca.decode()), limit=0)
    session = await stack.enter_async_context(
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
    )
    target = URL(url, encoded=True)

    async def send() -> bytes:
        async with session.request("PATCH", target, data=PAYLOAD, headers=HEADERS) as response:
            return await response.read()

    return send


async def of_kopylite(stack: AsyncExitStack, url: str, ca: bytes) -> Send:
    at = URL(url)
    config = ClientConfig(f"https://{at.authority}", StaticCredentials(bearer("token")), TlsSettings(ca))
    transport = await stack.enter_async_context(HttpTransport(config))
    kind = HEADERS["Content-Type"]

    async def send() -> bytes:
        request = ApiRequest("PATCH", at.path, {"fieldManager": "peer"}, PAYLOAD, kind)
        return (await transport.request(request)).body

    return send


async def of_pyreqwest(stack: AsyncExitStack, url: str, ca: bytes) -> Send:
    from pyreqwest.client import ClientBuilder  # type: ignore[import-not-found]

    builder = ClientBuilder().add_root_certificate_pem(ca).http1_only().no_proxy()
    client = await stack.enter_async_context(builder.build())

    async def send() -> bytes:
        response = await client.patch(url).headers(HEADERS).body_bytes(PAYLOAD).build().send()
        return bytes(await response.bytes())

    return send


async def of_pyqwest(stack: AsyncExitStack, url: str, ca: bytes) -> Send:
    import pyqwest  # type: ignore[import-not-found]

    transport = pyqwest.HTTPTransport(tls_ca_cert=ca, http_version=pyqwest.HTTPVersion.HTTP1, enable_otel=False)
    client = pyqwest.Client(transport)

    async def send() -> bytes:
        return bytes((await client.patch(url, headers=HEADERS, content=PAYLOAD)).content)

    return send


async def of_floor(stack: AsyncExitStack, url: str, ca: bytes) -> Send:
    port, context, idle = URL(url).port or 443, ssl.create_default_context(cadata=ca.decode()), []
    for _ in range(AT_ONCE):
        opened = await asyncio.get_running_loop().create_connection(Floor, "127.0.0.1", port, ssl=context)
        stack.callback(opened[0].close)
        idle.append(opened[1])
    fields = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())

    async def send() -> bytes:
        connection = idle.pop()
        connection.answer = asyncio.get_running_loop().create_future()
        head = f"PATCH {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}Content-Length: {len(PAYLOAD)}\r\n\r\n"
        connection.transport.write(head.encode() + PAYLOAD)
        body = await connection.answer
        idle.append(connection)
        return body

    return send


async def microseconds(send: Send) -> float:
    async def work(count: int) -> None:
        for _ in range(count):
            assert await send() == ANSWER

    began = time.process_time()
    await asyncio.gather(*(work(REQUESTS // AT_ONCE) for _ in range(AT_ONCE)))
    return (time.process_time() - began) / REQUESTS * 1e6


async def compare(port: int, ca: bytes) -> None:
    makers = {
        "aiohttp": of_aiohttp,
        "kopylite": of_kopylite,
        "pyreqwest": of_pyreqwest,
        "pyqwest": of_pyqwest,
        "the floor": of_floor,
    }
    best: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        clients = {
            name: await make(stack, f"https://127.0.0.1:{port}{PATH}", ca)
            for name, make in makers.items()
            if name in ("the floor", "kopylite") or importlib.util.find_spec(name)
        }
        for _ in range(ROUNDS):
            for name, send in clients.items():
                best[name] = min(best.get(name, 1e9), await microseconds(send))
    for name, cost in best.items():
        print(f"{name:10} {cost:6.0f} us {cost / best['aiohttp']:6.2f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, authority = Path(name), CertificateAuthority()
        issued = authority.server(["127.0.0.1"])
        (folder / "server.crt").write_bytes(issued.certificate)
        (folder / "server.key").write_bytes(issued.key)
        server = subprocess.Popen([sys.executable, "-m", "tests.bench.bench_http", name], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            uvloop.run(compare(int(server.stdout.readline()), authority.certificate))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]))) if len(sys.argv) > 1 else main()
