"""What MyApps and their workloads cost an API server: the embedded one with its simulator, and a real one.

    python -m tests.bench.bench_simulator [--objects 5000] [--real-objects 1000]

MyApps are there, and the comparison operator (peer.py) makes a Deployment of each and copies its status. The simulator
makes ReplicaSets and pods of them and lets them run. Beside the real server kube-controller-manager makes them; as no
nodes are there, its pods stay pending. So the first row of each is until all pods exist, and the second, of the
embedded one alone, until all Deployments are available and each MyApp has it in its status. CPU is that of the servers
and controllers, without the operator's; memory that of the API server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from kopylite.devcluster.cluster import install_crds
from kopylite.testing.envtest import find_assets
from tests.bench.bench_apiserver import CONNECTIONS, Connection, Server, connection, embedded, real
from tests.bench.check import MyApp

LIMIT = 900
MYAPPS = "/apis/example.com/v1/namespaces/default/myapps"
PODS = "/api/v1/namespaces/default/pods"


async def create(server: Server, count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        async with connection(server) as one:
            for number in numbers:
                metadata = {"name": f"app-{number}", "namespace": "default"}
                spec = {"image": "nginx:1", "replicas": 1, "notes": "x" * 300}
                await one.post(
                    MYAPPS, {"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": metadata, "spec": spec}
                )

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(work())


@asynccontextmanager
async def operator(server: Server, count: int) -> AsyncIterator[None]:
    environment = os.environ | {"KUBECONFIG": str(server.kubeconfig), "MODE": "work", "COUNT": str(count)}
    peer = str(Path(__file__).with_name("peer.py"))
    process = await asyncio.create_subprocess_exec(sys.executable, peer, env=environment)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(LIMIT):
        while not await condition():  # noqa: ASYNC110  (a server's state is no event)
            await anyio.sleep(0.5)


async def all_pods(one: Connection, count: int) -> bool:
    page = await one.get(f"{PODS}?limit=1")
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0)) >= count


async def all_ready(one: Connection, count: int) -> bool:
    myapps: list[dict[str, dict[str, int]]] = (await one.get(MYAPPS))["items"]
    return sum(myapp.get("status", {}).get("readyReplicas", 0) for myapp in myapps) >= count


async def bench(server: Server, count: int, *, ready: bool) -> None:
    await install_crds(server.kubeconfig, MyApp)
    await create(server, count)
    memory, cpu, began = server.memory(), server.cpu(), time.perf_counter()

    def say(what: str) -> None:
        seconds, used, more = time.perf_counter() - began, server.cpu() - cpu, server.memory() - memory
        each = f"{used / count * 1e3:.1f} ms of CPU and {more / count / 1e3:.1f} kB each"
        print(f"{server.name:>9}: {count:,} {what} after {seconds:.1f} s, {each}", flush=True)

    async with operator(server, count), connection(server) as one:
        await until(lambda: all_pods(one, count))
        say("pods exist")
        if ready:
            await until(lambda: all_ready(one, count))
            say("MyApps are ready")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--real-objects", type=int, default=1000)
    options = parser.parse_args()
    async with embedded() as server:
        await bench(server, options.objects, ready=True)
    if find_assets() is None:
        print("     real: no kube-apiserver and etcd: let KUBEBUILDER_ASSETS name their folder")
        return
    async with real(controllers=True) as server:
        await bench(server, options.real_objects, ready=False)


if __name__ == "__main__":
    anyio.run(main)
