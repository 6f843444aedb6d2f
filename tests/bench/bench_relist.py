"""What a relist costs in memory: the peak of the process beside its steady size.

    python -m tests.bench.bench_relist             # 10,000 objects of 8 KB; streamed, then in pages of 500

The server is a process of its own. The client mirrors the objects, the server declares every version too old, and the
client lists again. Of the whole second list not one object has changed, as after an outage or an expired version.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import anyio

from kopylite.cache import SharedCache
from kopylite.client.config import ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.client.verbs import ApiRequest
from kopylite.observers import InformerObserver
from tests.bench.bench_ingest import THING, thing

VERSION = "1000000"
RELISTS = 3


def chunk(word: str, body: bytes) -> bytes:
    line = b'{"type":"%b","object":%b}\n' % (word.encode(), body)
    return b"%x\r\n%b\r\n" % (len(line), line)


def answer(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


async def serve(objects: int, size: int, streamed: bool) -> None:  # noqa: C901  (small functions over one state)
    """Serve `things`; whoever asks for /expire ends all watches with 410."""
    bodies = [json.dumps(thing(n, 1000 + n, size), separators=(",", ":")).encode() for n in range(objects)]
    marker = {"metadata": {"resourceVersion": VERSION, "annotations": {"k8s.io/initial-events-end": "true"}}}
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    open_watches: set[asyncio.Event] = set()

    def page(params: dict[str, str]) -> bytes:
        begin, limit = int(params.get("continue", 0)), int(params.get("limit", objects))
        more = str(begin + limit) if begin + limit < objects else ""
        meta = json.dumps({"resourceVersion": VERSION, "continue": more}).encode()
        return b'{"metadata":%b,"items":[%b]}' % (meta, b",".join(bodies[begin : begin + limit]))

    async def expire(writer: asyncio.StreamWriter) -> None:
        while not open_watches:  # noqa: ASYNC110  (a bench may)
            await asyncio.sleep(0.01)
        while open_watches:
            open_watches.pop().set()
        writer.write(answer("200 OK", b"{}"))

    async def watch(params: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n")
        if "sendInitialEvents" in params:
            for body in bodies:
                writer.write(chunk("ADDED", body))
                await writer.drain()
            writer.write(chunk("BOOKMARK", json.dumps(marker).encode()))
        await writer.drain()
        open_watches.add(ended := asyncio.Event())
        await ended.wait()
        writer.write(chunk("ERROR", json.dumps(expired).encode()) + b"0\r\n\r\n")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            while (await reader.readline()).strip():
                pass
            target = urlsplit(head.split(b" ")[1].decode())
            params = dict(parse_qsl(target.query))
            if target.path == "/expire":
                await expire(writer)
            elif "watch" not in params:
                writer.write(answer("200 OK", page(params)))
            elif "sendInitialEvents" in params and not streamed:
                writer.write(answer("422 Unprocessable Entity", b'{"kind":"Status","code":422,"reason":"Invalid"}'))
            else:
                await watch(params, writer)
            await writer.drain()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Relists(InformerObserver):
    def __init__(self) -> None:
        self.count = 0

    def relisted(self) -> None:
        self.count += 1


async def measure(url: str, name: str, objects: int) -> None:
    observer = Relists()
    async with HttpTransport(ClientConfig(server=url)) as transport:
        cache = SharedCache(transport, Resources(transport), observe=lambda scope: observer)
        informer = cache.acquire(THING)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            await informer.wait_synced()
            assert len(informer.store) == objects
            gc.collect()
            steady = resident()
            Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
            for _ in range(RELISTS):
                before = observer.count
                await transport.request(ApiRequest("GET", "/expire"))
                with anyio.fail_after(120):
                    while observer.count == before or informer.statistics().phase != "watching":  # noqa: ASYNC110
                        await anyio.sleep(0.02)
            peak, after = high_water(), resident()
            assert len(informer.store) == objects
            tasks.cancel_scope.cancel()
    print(
        f"{name}: steady {steady / 2**20:.0f} MiB, peak of {RELISTS} relists {peak / 2**20:.0f} MiB "
        f"({peak / steady:.2f} times), afterwards {after / 2**20:.0f} MiB; "
        f"payload {informer.store.body_bytes >> 20} MiB",
        flush=True,
    )


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def high_water() -> int:
    """The most memory that was resident since clear_refs."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--serve", choices=["streamed", "paged"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.url:
        asyncio.run(measure(arguments.url.partition(" ")[2], arguments.url.partition(" ")[0], arguments.objects))
        return
    if arguments.serve:
        asyncio.run(serve(arguments.objects, arguments.size, arguments.serve == "streamed"))
        return
    this = [sys.executable, "-m", "tests.bench.bench_relist", f"--objects={arguments.objects}"]
    for mode in ("streamed", "paged"):
        command = [*this, f"--size={arguments.size}", f"--serve={mode}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            try:
                subprocess.run([*this, f"--url={mode} {url}"], check=True)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
