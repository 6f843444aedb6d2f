"""What more objects and more kinds cost: memory, CPU of the first list and of an event, the longest pause of the loop.

    python -m tests.bench.bench_growth            # 1,000 to 100,000 objects of one kind; 10,000 of 1 to 50 kinds
    python -m tests.bench.bench_growth --events 10000

An ideal informer's memory grows by the payload, and its CPU per object and per event does not grow at all. The server
is a process of its own, as in bench_ingest; the figures are of the client process alone. A pause is given in CPU time
of the event loop's thread: on a busy machine the wall clock says more of the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from kopylite.cache import Informer, SharedCache
from kopylite.client import ClientConfig, HttpTransport, Resources
from kopylite.objects import Kind
from tests.bench.bench_ingest import chunk, resident, thing

SIZE = 1024
STEPS = [(1_000, 1), (10_000, 1), (100_000, 1), (10_000, 10), (10_000, 50)]


def kind(number: int) -> Kind:
    return Kind("example.com/v1", f"Thing{number}", plural=f"thing{number}s", namespaced=True)


async def feed(objects: int, kinds: int, events: int) -> None:
    """Serve the same objects under each kind's path, and, when somebody asks for /go, changes of them."""
    each = objects // kinds
    marker = {"metadata": {"resourceVersion": "1000000", "annotations": {"k8s.io/initial-events-end": "true"}}}
    initial = [chunk("ADDED", thing(number, 1000 + number, SIZE)) for number in range(each)]
    initial.append(chunk("BOOKMARK", marker))
    changes = [chunk("MODIFIED", thing(n % each, 1_000_001 + n, SIZE)) for n in range(events // kinds)]
    go = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client has seen enough
            await answer(reader, writer)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            while (await reader.readline()).strip():
                pass
            if b"/go " in head:
                go.set()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                continue
            name = b"Thing" + head.partition(b"/thing")[2].partition(b"s?")[0]
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n")
            for chunks in (initial, changes):
                for at in range(0, len(chunks), 50):
                    writer.write(b"".join(named(each, name) for each in chunks[at : at + 50]))
                    await writer.drain()
                await go.wait()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def named(sent: bytes, kind: bytes) -> bytes:
    """A chunk as it is with the name of its own kind."""
    text = sent.partition(b"\r\n")[2][:-2].replace(b'"Thing"', b'"%b"' % kind)
    return b"%x\r\n%b\r\n" % (len(text), text)


class Pulse:
    """Notices how long the event loop's thread works without letting others have it, in seconds of CPU."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        while True:
            cpu = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - cpu)
            await asyncio.sleep(0.002)


@asynccontextmanager
async def informed(transport: HttpTransport, kinds: int) -> AsyncIterator[list[Informer]]:
    cache = SharedCache(transport, Resources(transport))
    informers = [cache.acquire(kind(number)) for number in range(kinds)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        yield informers
        tasks.cancel_scope.cancel()


async def take_in(url: str, objects: int, kinds: int, events: int) -> None:
    """Print, as JSON, what it cost this process."""
    seen, done, pulse = 0, anyio.Event(), Pulse()

    def handler(delta: object) -> None:
        nonlocal seen
        seen += 1
        if seen == objects + events:
            done.set()

    async with HttpTransport(ClientConfig(server=url)) as transport:
        before, cpu = resident(), time.process_time()
        async with informed(transport, kinds) as informers, anyio.create_task_group() as tasks:
            tasks.start_soon(pulse.beat)
            for informer in informers:
                informer.add_handler(handler)
            for informer in informers:
                await informer.wait_synced()
            first, grown = time.process_time() - cpu, resident() - before
            payload = sum(informer.store.body_bytes for informer in informers)
            cpu = time.process_time()
            go = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            go[1].write(b"GET /go HTTP/1.1\r\n\r\n")
            await done.wait()
            later = time.process_time() - cpu
            go[1].close()
            tasks.cancel_scope.cancel()
    found = {
        "MiB": grown / 2**20, "bytes beside payload": (grown - payload) / objects, "list": first / objects * 1e6,
        "event": later / events * 1e6, "pause": pulse.longest * 1000,
    }  # fmt: skip
    print(json.dumps(found))


def measure(objects: int, kinds: int, events: int) -> dict[str, float]:
    this = [sys.executable, "-m", "tests.bench.bench_growth", f"--objects={objects}", f"--kinds={kinds}"]
    this.append(f"--events={events}")
    with subprocess.Popen([*this, "--feed"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            done = subprocess.run([*this, f"--url={url}"], check=True, text=True, stdout=subprocess.PIPE)
        finally:
            server.terminate()
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000, help="changes after the first list (default 10000)")
    for hidden, kind_of in (("--objects", int), ("--kinds", int), ("--url", str)):
        parser.add_argument(hidden, type=kind_of, help=argparse.SUPPRESS)
    parser.add_argument("--feed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        asyncio.run(feed(options.objects, options.kinds, options.events))
    elif options.url:
        asyncio.run(take_in(options.url, options.objects, options.kinds, options.events))
    else:
        print(
            "| objects | kinds | MiB more | bytes each beside payload | µs to list one | µs an event | longest pause |"
        )
        print("|---|---|---|---|---|---|---|")
        for objects, kinds in STEPS:
            row = measure(objects, kinds, options.events)
            print(
                f"| {objects:,} | {kinds} | {row['MiB']:.0f} | {row['bytes beside payload']:,.0f} | {row['list']:.0f} "
                f"| {row['event']:.0f} | {row['pause']:.0f} ms |",
                flush=True,
            )


if __name__ == "__main__":
    main()
