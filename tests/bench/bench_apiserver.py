"""How fast and how large the embedded API server is, beside a real kube-apiserver with etcd, in one run.

    python -m tests.bench.bench_apiserver             # start, creates/s, watch events/s, memory of 100,000 objects
    python -m tests.bench.bench_apiserver --quick     # a tenth of everything

Each server is a process of its own, asked over TLS by this process, which speaks as little HTTP as it can. Rates are
of the wall clock and of the server's own CPU time (a real server uses all cores, etcd's are counted with it). The real
server needs KUBEBUILDER_ASSETS; its memory is measured with fewer objects, as it takes long to fill.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import yaml

from kopylite.client import load_config
from kopylite.client.tls import TlsContexts
from kopylite.testing import EnvTest
from kopylite.testing.envtest import find_assets

CONNECTIONS = 16
CREATES, REAL_CREATES = 10_000, 5_000
WATCHERS, WATCHED = 50, 2_000
OBJECTS, REAL_OBJECTS = 100_000, 10_000
# No part takes longer, whatever the machine.
PART_SECONDS = 180
_COLLECTION = "/api/v1/namespaces/default/configmaps"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it listens, how to get in, its processes."""

    name: str
    kubeconfig: Path
    host: str
    port: int
    context: ssl.SSLContext
    headers: str
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """Seconds of CPU used so far."""
        return sum(sum(map(int, _stat(pid)[11:13])) for pid in self.pids) / _TICKS

    def memory(self) -> int:
        """Resident bytes of the API server alone."""
        return int(_stat(self.pids[0])[21]) * _PAGE


def _stat(pid: int) -> list[str]:
    """/proc/PID/stat behind the name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@asynccontextmanager
async def embedded(*options: str) -> AsyncIterator[Server]:
    """`kopylite apiserver` with some options, until it says that it serves."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "kopylite", "apiserver", "--write-kubeconfig", str(kubeconfig), *options]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            await process.stdout.readline()  # it serves
            token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
            yield _server("embedded", kubeconfig, f"Authorization: Bearer {token}\r\n", (process.pid,))
        finally:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def real(*, controllers: bool = False) -> AsyncIterator[Server]:
    """kube-apiserver and etcd, without limits of its own; with controllers also kube-controller-manager."""
    flags = {"max-requests-inflight": "0", "enable-priority-and-fairness": "false"}
    async with EnvTest(flags=flags, controllers=controllers) as cluster:
        names = ("kube-apiserver", "etcd", "kube-controller-manager")[: 3 if controllers else 2]
        pids = tuple(cluster._servers[name].pid for name in names)
        yield _server("real", cluster.kubeconfig, "", pids)


def _server(name: str, kubeconfig: Path, headers: str, pids: tuple[int, ...]) -> Server:
    config = load_config(kubeconfig=str(kubeconfig))
    url = urlsplit(config.server)
    return Server(name, kubeconfig, url.hostname or "", url.port or 0, TlsContexts(config.tls).current(), headers, pids)


class Connection:
    """One kept-alive connection; it understands just the answers that these requests get."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer

    async def send(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request and read the head of its answer. Returns the length of the body; -1 if it is chunked."""
        head = f"{method} {path} HTTP/1.1\r\nHost: a\r\n{self._server.headers}Content-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        if not answer.startswith(("http/1.1 200", "http/1.1 201")):
            raise RuntimeError(answer)
        length = answer.partition("content-length: ")[2]
        return int(length.split("\r\n")[0]) if length else -1

    async def create(self, name: str, data: str) -> None:
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "bench"}}}
        await self.post(_COLLECTION, {**obj, "data": {"text": data}})

    async def post(self, path: str, obj: object) -> None:
        length = await self.send("POST", path, json.dumps(obj).encode())
        if length >= 0:
            await self._reader.readexactly(length)
        else:
            await self._reader.readuntil(b"0\r\n\r\n")

    async def get(self, path: str) -> Any:
        """An answer of JSON whose length is known, or one in chunks."""
        length = await self.send("GET", path)
        if length >= 0:
            return json.loads(await self._reader.readexactly(length))
        text = b""
        while size := int(await self._reader.readline(), 16):
            text += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return json.loads(text)

    async def events(self) -> AsyncIterator[int]:
        """How many watch events each read brought: each has its type once."""
        kept = b""
        while data := await self._reader.read(1 << 20):
            text = kept + data
            yield text.count(b'"type":"ADDED"')
            kept = text[-13:]

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connection(server: Server) -> AsyncIterator[Connection]:
    opened = Connection(server, *await asyncio.open_connection(server.host, server.port, ssl=server.context))
    try:
        yield opened
    finally:
        opened.close()


async def create(server: Server, prefix: str, count: int, size: int) -> float:
    """Create objects over several connections at a time. Returns the seconds it took."""
    numbers: Iterator[int] = iter(range(count))
    data = "x" * size

    async def work() -> None:
        async with connection(server) as one:
            for number in numbers:
                await one.create(f"{prefix}-{number:06d}", data)

    start = time.perf_counter()
    with anyio.fail_after(PART_SECONDS):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONNECTIONS):
                tasks.create_task(work())
    return time.perf_counter() - start


async def watch(server: Server, ready: asyncio.Semaphore, count: int) -> None:
    """Read a watch until it has brought `count` events."""
    async with connection(server) as one:
        await one.send("GET", f"{_COLLECTION}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
        ready.release()
        seen = 0
        async for events in one.events():
            seen += events
            if seen >= count:
                return


async def warm_up(server: Server) -> None:
    """The first requests load what the server does not need to start; and a real one's namespace may not be there."""
    with anyio.fail_after(PART_SECONDS):
        while True:
            try:
                await create(server, "warm", CONNECTIONS, 10)
                return
            except ExceptionGroup:
                await anyio.sleep(0.5)


async def bench_creates(server: Server, count: int) -> None:
    await warm_up(server)
    cpu = server.cpu()
    seconds = await create(server, "create", count, 300)
    print(f"{server.name:>9}: {_rate(count, seconds, server.cpu() - cpu)} creates/s", flush=True)


async def bench_watches(server: Server, watchers: int, count: int) -> None:
    ready = asyncio.Semaphore(0)
    with anyio.fail_after(PART_SECONDS):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(watchers):
                tasks.create_task(watch(server, ready, count))
            for _ in range(watchers):
                await ready.acquire()
            start, cpu = time.perf_counter(), server.cpu()
            tasks.create_task(create(server, "watched", count, 300))
    seconds, used = time.perf_counter() - start, server.cpu() - cpu
    what = f"watch events/s ({watchers} watchers of {count} creates)"
    print(f"{server.name:>9}: {_rate(watchers * count, seconds, used)} {what}", flush=True)


async def bench_memory(server: Server, count: int) -> None:
    await create(server, "memory", count, 700)
    print(f"{server.name:>9}: {server.memory() / 1e6:9,.0f} MB with {count:,} objects of 1 KB more", flush=True)


def _rate(count: int, seconds: float, cpu: float) -> str:
    return f"{count / seconds:9,.0f}/s, {count / max(cpu, 0.01):9,.0f} per CPU second of"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    part = 10 if parser.parse_args().quick else 1
    began = time.perf_counter()
    async with embedded("--no-controllers") as server:
        print(f" embedded: {time.perf_counter() - began:9.2f} s from the command until it serves", flush=True)
        await bench_creates(server, CREATES // part)
        await bench_watches(server, WATCHERS, WATCHED // part)
        await bench_memory(server, OBJECTS // part)
    if find_assets() is None:
        print("     real: no kube-apiserver and etcd: let KUBEBUILDER_ASSETS name their folder")
        return
    began = time.perf_counter()
    async with real() as server:
        print(f"     real: {time.perf_counter() - began:9.2f} s from the command until it serves", flush=True)
        await bench_creates(server, REAL_CREATES // part)
        await bench_watches(server, WATCHERS, WATCHED // part)
        await bench_memory(server, REAL_OBJECTS // part)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    anyio.run(main)
