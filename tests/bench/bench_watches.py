"""What many watches cost: 5 kinds in 100 namespaces, mirrored by 500 watches, beside the same objects by 5.

    python -m tests.bench.bench_watches                # 20 objects of 1 KB for each, on the embedded server over TLS
    python -m tests.bench.bench_watches --namespaces 20

An operator that is told its namespaces (`-n`) has a watch for each kind in each of them. Figures are of the client
process alone: its memory beyond that before the first watch, its CPU until all is in sync, then while nothing happens,
then for each object that is created. They are of CPU and memory, so other work on the machine is hardly in them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import uvloop

from kopylite.cache import SharedCache
from kopylite.client import HttpTransport, Resources, load_config
from kopylite.objects import Kind
from tests.bench.bench_apiserver import Connection, Server, connection, embedded
from tests.bench.bench_ingest import resident

KINDS = [
    Kind("v1", "ConfigMap", "configmaps", True),
    Kind("v1", "Secret", "secrets", True),
    Kind("v1", "ServiceAccount", "serviceaccounts", True),
    Kind("rbac.authorization.k8s.io/v1", "Role", "roles", True),
    Kind("coordination.k8s.io/v1", "Lease", "leases", True),
]
OBJECTS = 20  # of each kind in each namespace
EVENTS = 5_000
SIZE = 700  # with all metadata, 1 KB
IDLE = 15.0
LIMIT = 300.0
CONNECTIONS = 8


def namespace(number: int) -> str:
    return f"team-{number}"


async def fill(server: Server, namespaces: int, prefix: str, count: int, kinds: list[Kind]) -> None:
    """Create as many objects of each kind in each namespace."""
    todo = iter([(n, kind, i) for i in range(count) for n in range(namespaces) for kind in kinds])

    async def work(one: Connection) -> None:
        for n, kind, i in todo:
            group = kind.api_version if "/" in kind.api_version else ""
            path = f"/apis/{group}" if group else "/api/v1"
            meta: dict[str, Any] = {"name": f"{prefix}-{i}", "annotations": {"text": "x" * SIZE}}
            obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
            await one.post(f"{path}/namespaces/{namespace(n)}/{kind.plural}", obj)

    await at_once(server, work)


async def at_once(server: Server, work: Any) -> None:
    async def over_one() -> None:
        async with connection(server) as one:
            await work(one)

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            for _ in range(CONNECTIONS):
                tasks.start_soon(over_one)


async def mirror(kubeconfig: str, namespaces: int, each: bool, objects: int) -> None:
    """The client process: prints what it found, a line of JSON for each part."""
    seen, wanted, done = 0, objects, anyio.Event()

    def handler(delta: object) -> None:
        nonlocal seen
        seen += 1
        if seen == wanted:
            done.set()

    async with HttpTransport(load_config(kubeconfig)) as transport:
        resources = Resources(transport)
        cache = SharedCache(transport, resources)
        await resources.find(Kind("v1", "Namespace"))  # what the first request loads is no part of a watch
        before, cpu = resident(), time.process_time()
        where = [namespace(n) for n in range(namespaces)] if each else [""]
        informers = [cache.acquire(kind, namespace=name) for name in where for kind in KINDS]
        for informer in informers:
            informer.add_handler(handler)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            await done.wait()
            for informer in informers:
                await informer.wait_synced()
            payload = sum(informer.store.body_bytes for informer in informers)
            listed = {"memory": resident() - before - payload, "list": time.process_time() - cpu}
            await anyio.sleep(2)
            cpu = time.process_time()
            await anyio.sleep(IDLE)
            idle, done, wanted = (time.process_time() - cpu) / IDLE, anyio.Event(), objects + EVENTS
            cpu = time.process_time()
            print(json.dumps(listed | {"idle": idle}), flush=True)
            with anyio.fail_after(LIMIT):
                await done.wait()
            print(json.dumps({"event": (time.process_time() - cpu) / EVENTS}), flush=True)
            tasks.cancel_scope.cancel()


async def measure(namespaces: int, each: bool, loop: str) -> dict[str, float]:
    async with embedded("--no-simulator", "--no-controllers") as server:

        async def begin(one: Connection) -> None:
            for n in numbers:
                await one.post("/api/v1/namespaces", {"metadata": {"name": namespace(n)}})

        numbers = iter(range(namespaces))
        await at_once(server, begin)
        await fill(server, namespaces, "first", OBJECTS, KINDS)
        objects = namespaces * OBJECTS * len(KINDS)
        this = [sys.executable, "-m", "tests.bench.bench_watches", f"--namespaces={namespaces}", f"--loop={loop}"]
        this += [f"--mirror={server.kubeconfig}", f"--objects={objects}", *(["--each"] if each else [])]
        process = await asyncio.create_subprocess_exec(*this, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            found: dict[str, float] = json.loads(await process.stdout.readline())
            await fill(server, namespaces, "later", EVENTS // namespaces, KINDS[:1])
            found |= json.loads(await process.stdout.readline())
            return found
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def compare(namespaces: int, loop: str) -> None:
    print("| watches | MiB beside payload | CPU s to sync | CPU of a core while idle | CPU µs an event |")
    print("|---|---|---|---|---|")
    for each in (False, True):
        row = await measure(namespaces, each, loop)
        print(
            f"| {namespaces * len(KINDS) if each else len(KINDS)} | {row['memory'] / 2**20:.1f} | {row['list']:.2f} "
            f"| {row['idle']:.2%} | {row['event'] * 1e6:.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespaces", type=int, default=100)
    parser.add_argument(
        "--loop", choices=["uvloop", "asyncio"], default="uvloop", help="of the client (default uvloop)"
    )
    parser.add_argument("--mirror", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--objects", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--each", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mirror:
        found = mirror(str(options.mirror), options.namespaces, options.each, options.objects)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop if options.loop == "uvloop" else None) as runner:
            runner.run(found)
    else:
        asyncio.run(compare(options.namespaces, options.loop))


if __name__ == "__main__":
    main()
