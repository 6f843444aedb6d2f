"""How fast a watch is taken in: kopylite's informer beside the Watch of kubernetes_asyncio, in one run.

    python -m tests.bench.bench_ingest             # 4 KB and 1 KB objects, alternating, three rounds; ratios at the end
    python -m tests.bench.bench_ingest --memory    # 100,000 objects of 4 KB: memory, and the longest pause of the loop

The server is a process of its own that sends prepared bytes as fast as it is read, one HTTP chunk per event as
kube-apiserver does. Figures are of the client process alone. Read the ratios: the numbers are those of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from kopylite.cache import SharedCache
from kopylite.client.config import ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.objects import Kind

THING = Kind("example.com/v1", "Thing", plural="things", namespaced=True)
OBJECTS = 2_000  # a feed of many events changes them again and again


def thing(number: int, version: int, size: int) -> dict[str, Any]:
    """An object of about `size` bytes, 31 % of it managedFields, as was measured of Pods."""
    managed = [
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {f"f:{i}": {} for i in range(size * 31 // 1150)}}
    ]
    env = [{"name": f"VARIABLE_{i}", "value": "value"} for i in range(max(1, (size * 69 // 100 - 420) // 41))]
    return {
        "kind": "Thing",
        "apiVersion": "example.com/v1",
        "metadata": {
            "name": f"thing-{number:06d}",
            "namespace": "default",
            "uid": f"00000000-0000-0000-0000-{number:012d}",
            "resourceVersion": str(version),
            "labels": {"app": f"app-{number % 50}", "tier": "web"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Owner", "name": f"o{number % 50}", "uid": "u"}],
            "managedFields": managed,
        },
        "spec": {"env": env},
        "status": {"phase": "Running"},
    }


def chunk(word: str, obj: dict[str, Any]) -> bytes:
    data = json.dumps({"type": word, "object": obj}, separators=(",", ":")).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


async def feed(events: int, size: int, distinct: int) -> None:
    """Serve: an empty list, or `distinct` initial objects, then `events` changes at full speed, then silence."""
    marker = {"metadata": {"resourceVersion": "1000000", "annotations": {"k8s.io/initial-events-end": "true"}}}
    initial = [chunk("ADDED", thing(number, 1000 + number, size)) for number in range(distinct)]
    changes = [chunk("MODIFIED", thing(n % OBJECTS, 1_000_001 + n, size)) for n in range(events)]
    empty = json.dumps({"metadata": {"resourceVersion": "1000000"}, "items": []}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            while (more := await reader.readline()).strip():
                head += more
            if b"watch=true" not in head.lower():
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(empty), empty))
                continue
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n")
            if b"sendInitialEvents" in head:
                await send([*initial, chunk("BOOKMARK", marker)], writer)
            await send(changes, writer)

    async def send(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        for at in range(0, len(parts), 50):
            writer.write(b"".join(parts[at : at + 50]))
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@dataclass(frozen=True)
class Measured:
    """Of one client: events per second, and its own CPU time per event in microseconds."""

    per_second: float
    cpu: float


async def kopylite(url: str, events: int) -> Measured:
    """The informer with a handler that does nothing: bytes to store, as an operator does it."""
    async with HttpTransport(ClientConfig(server=url)) as transport:
        cache, done, seen = SharedCache(transport, Resources(transport)), anyio.Event(), 0

        def handler(delta: object) -> None:
            nonlocal seen
            seen += 1
            if seen == events:
                done.set()

        cache.acquire(THING).add_handler(handler)
        began, cpu = time.perf_counter(), time.process_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            await done.wait()
            tasks.cancel_scope.cancel()
        return measured(events, began, cpu)


async def kubernetes_asyncio_dicts(url: str, events: int) -> Measured:
    """Its Watch over custom objects, i.e. dicts, stored in a dict."""
    from kubernetes_asyncio import client, watch

    api = client.ApiClient(client.Configuration(host=url))
    store: dict[str, Any] = {}
    list_things = client.CustomObjectsApi(api).list_cluster_custom_object
    began, cpu, seen = time.perf_counter(), time.process_time(), 0
    async with api, watch.Watch().stream(list_things, "example.com", "v1", "things", resource_version="5") as stream:
        async for event in stream:
            store[event["object"]["metadata"]["name"]] = event["object"]
            seen += 1
            if seen == events:
                break
    return measured(events, began, cpu)


def measured(events: int, began: float, cpu: float) -> Measured:
    return Measured(events / (time.perf_counter() - began), (time.process_time() - cpu) / events * 1e6)


async def memory(url: str, objects: int) -> None:
    """Take in many objects while a heartbeat measures how long others have to wait."""
    longest = (0.0, 0.0)

    async def heartbeat() -> None:
        nonlocal longest
        while True:
            began, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.005)
            longest = max(longest, (time.perf_counter() - began - 0.005, time.thread_time() - cpu))

    async with HttpTransport(ClientConfig(server=url)) as transport:
        cache = SharedCache(transport, Resources(transport))
        before, cpu = resident(), time.process_time()
        informer = cache.acquire(THING)
        informer.add_handler(lambda delta: None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            tasks.start_soon(heartbeat)
            await informer.wait_synced()
            cpu, grown, body = time.process_time() - cpu, resident() - before, informer.store.body_bytes
            tasks.cancel_scope.cancel()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{objects} objects: {grown / 2**20:.0f} MiB more, of it {body / 2**20:.0f} MiB payload "
        f"({(grown - body) / objects:.0f} bytes beside it per object); peak of the process {peak:.0f} MiB; "
        f"CPU {cpu:.2f} s ({cpu / objects * 1e6:.0f} µs per object); longest pause {longest[0] * 1000:.0f} ms "
        f"({longest[1] * 1000:.0f} ms of it CPU)"
    )


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


CLIENTS: dict[str, Callable[[str, int], Coroutine[Any, Any, Measured]]] = {
    "kopylite": kopylite,
    "kubernetes_asyncio": kubernetes_asyncio_dicts,
}


def with_feed(events: int, size: int, distinct: int, arguments: list[str]) -> str:
    """Run a client as a process beside a feed; returns what it printed."""
    this = [
        sys.executable,
        "-m",
        "tests.bench.bench_ingest",
        f"--events={events}",
        f"--size={size}",
        f"--distinct={distinct}",
    ]
    with subprocess.Popen([*this, "--feed"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            return subprocess.run(
                [*this, f"--url={url}", *arguments], check=True, text=True, capture_output=True
            ).stdout
        finally:
            server.terminate()


def compare(events: int, rounds: int) -> None:
    for size in (4096, 1024):
        results: dict[str, list[Measured]] = {name: [] for name in CLIENTS}
        for _ in range(rounds):
            for name in CLIENTS:
                count = events if name == "kopylite" else events // 5
                printed = with_feed(count, size, 0, [f"--client={name}"])
                results[name].append(Measured(**json.loads(printed)))
        rate = {name: statistics.median(one.per_second for one in found) for name, found in results.items()}
        cpu = {name: statistics.median(one.cpu for one in found) for name, found in results.items()}
        for name in CLIENTS:
            print(f"{size} bytes, {name}: {rate[name]:,.0f} events/s, {cpu[name]:.1f} µs CPU per event")
        print(f"{size} bytes: {rate['kopylite'] / rate['kubernetes_asyncio']:.1f} times the events per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="100,000 objects instead of a race")
    for hidden, kind in (("--size", int), ("--distinct", int), ("--url", str), ("--client", str)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--feed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        asyncio.run(feed(options.events, options.size, options.distinct))
    elif options.client:
        found = asyncio.run(CLIENTS[options.client](options.url, options.events))
        print(json.dumps({"per_second": found.per_second, "cpu": found.cpu}))
    elif options.url:
        asyncio.run(memory(options.url, options.distinct))
    elif options.memory:
        print(with_feed(0, 4096, 100_000, []), end="")
    else:
        compare(options.events, options.rounds)


if __name__ == "__main__":
    main()
