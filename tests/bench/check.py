"""Has a step of the runtime become dearer? `make bench-check`; less than two minutes.

    python -m tests.bench.check            # compare with tests/bench/baseline.json; exit code 1 names the row
    python -m tests.bench.check --update   # what it costs now is the new baseline
    python -m tests.bench.check --profile read

Two measures, and neither minds a busy machine. `calls`: Python and C functions that are called for one step, counted by
the profiler; for one version of Python they are the same on every machine, and 8 % more is a regress. `ratio`: CPU time
of a step in that of a yardstick of the same run (json.loads of the same bytes, or a put and get of asyncio.Queue), the
best of several interleaved rounds; 75 % more is a regress, since a busy machine alone made 35. `bytes`: what
an object costs in a cache beside its payload.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from kopylite.cache import Informer, SharedCache
from kopylite.client import Client, ClientConfig, HttpTransport, Resources
from kopylite.client.verbs import ApiRequest
from kopylite.objects import CustomResource, Kind, ObjectKey, Unstructured
from tests.bench.bench_queue import asyncio_queue, requests, spin
from tests.bench.feed import Feed, encode, line

BASELINE = Path(__file__).parent / "baseline.json"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TOLERANCE = {"calls": 1.08, "ratio": 1.75, "bytes": 1.10, "modules": 1.03}
ROUNDS = 5
OBJECTS, EVENTS, READS, REQUESTS = 500, 4_000, 5_000, 300
NAMES = "from kopylite import App, Context, CustomResource, Kind, Request, Result, Unstructured"


class MyAppSpec(BaseModel):
    image: str
    replicas: int = 1
    notes: str = ""


class MyAppStatus(BaseModel):
    ready_replicas: int = 0
    observed_generation: int = 0


class MyApp(CustomResource[MyAppSpec, MyAppStatus], group="example.com", version="v1", plural="myapps"):
    """As in peer.py."""


DEPLOYMENT = Kind("apps/v1", "Deployment", plural="deployments", namespaced=True)
MYAPPS, DEPLOYMENTS = "/apis/example.com/v1/myapps", "/apis/apps/v1/deployments"


def metadata(number: int, version: int) -> dict[str, Any]:
    return {
        "name": f"app-{number}", "namespace": "default", "uid": f"00000000-0000-0000-0000-{number:012d}",
        "resourceVersion": str(version), "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip


def myapp(number: int, version: int) -> dict[str, Any]:
    spec = {"image": "nginx:1", "replicas": 1 + number % 3, "notes": "x" * 300}
    status = {"readyReplicas": 1, "observedGeneration": 1}
    named = {"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": metadata(number, version)}
    return named | {"spec": spec, "status": status}


def wanted(number: int) -> dict[str, Any]:
    labels = {"app": f"app-{number}"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx:1"}]}}
    return {"replicas": 1 + number % 3, "selector": {"matchLabels": labels}, "template": pod}


def deployment(number: int) -> dict[str, Any]:
    """As the API server gives it back: with its defaults."""
    spec = json.loads(json.dumps(wanted(number)))
    spec |= {"progressDeadlineSeconds": 600, "revisionHistoryLimit": 10}
    spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    spec["template"]["spec"] |= {
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
    }  # fmt: skip
    spec["template"]["spec"]["containers"][0] |= {
        "imagePullPolicy": "IfNotPresent", "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }  # fmt: skip
    labelled = metadata(number, 1000 + number) | {"labels": {"app": f"app-{number}"}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": labelled, "spec": spec, "status": {}}


@asynccontextmanager
async def synced(changes: int = 0) -> AsyncIterator[tuple[Client, Feed, Informer]]:
    """A client whose caches are full, as the reconciles of an operator have it."""
    apps = [myapp(number, 1000 + number) for number in range(OBJECTS)]
    news = [line("MODIFIED", myapp(n % OBJECTS, 1_000_001 + n)) for n in range(changes)]
    feed = Feed({MYAPPS: apps, DEPLOYMENTS: [deployment(number) for number in range(OBJECTS)]}, {MYAPPS: news})
    resources = Resources(feed)
    cache = SharedCache(feed, resources)
    informers = [cache.acquire(kind) for kind in (Kind("example.com/v1", "MyApp", "myapps", True), DEPLOYMENT)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        for informer in informers:
            await informer.wait_synced()
        yield Client(feed, cache=cache, resources=resources), feed, informers[0]
        tasks.cancel_scope.cancel()


class Calls:
    """Function calls between `begin` and `end`."""

    def __init__(self) -> None:
        self.profile = cProfile.Profile()

    def begin(self) -> None:
        self.profile.enable()

    def end(self) -> float:
        self.profile.disable()
        return float(pstats.Stats(self.profile).total_calls)  # type: ignore[attr-defined]


class Cpu:
    """Seconds of CPU between `begin` and `end`."""

    def begin(self) -> None:
        gc.collect()
        self._began = time.process_time()

    def end(self) -> float:
        return time.process_time() - self._began


async def read(meter: Calls | Cpu) -> float:
    """An object from the cache, as an instance of its class."""
    async with synced() as (client, _, _):
        keys = [ObjectKey("default", f"app-{n % OBJECTS}") for n in range(READS)]
        meter.begin()
        for key in keys:
            await client.find(MyApp, key)
        return meter.end() / READS


async def event(meter: Calls | Cpu) -> float:
    """A line of a watch, from the chunk to the handler."""
    async with synced(EVENTS) as (_, feed, informer):
        seen, done = 0, anyio.Event()

        def handler(delta: object) -> None:
            nonlocal seen
            seen += 1
            if seen == OBJECTS + EVENTS:
                done.set()

        informer.add_handler(handler)
        await anyio.sleep(0.05)
        meter.begin()
        feed.go.set()
        await done.wait()
        return meter.end() / EVENTS


async def unchanged(meter: Calls | Cpu) -> float:
    """A create_or_update that finds nothing to do, after the first of its object."""
    async with synced() as (client, feed, _):

        async def upsert(number: int) -> None:
            def mutate(deployment: Unstructured) -> None:
                deployment["metadata"]["labels"] = {"app": f"app-{number}"}
                deployment["spec"] = wanted(number)

            await client.create_or_update(DEPLOYMENT, ObjectKey("default", f"app-{number}"), mutate)

        for number in range(100):
            await upsert(number)
        feed.requests.clear()
        meter.begin()
        for _ in range(5):
            for number in range(100):
                await upsert(number)
        cost = meter.end() / 500
        assert not feed.requests, f"an upsert that changes nothing sent {feed.requests[0]}"
        return cost


async def reconcile(meter: Calls | Cpu) -> float:
    """A whole reconcile that reads nothing: queue, worker, context, settlement, metrics."""
    keys = requests(500)
    meter.begin()
    await spin(keys, 10, 8)
    return meter.end() / 5000


async def request(meter: Calls | Cpu) -> float:
    """A GET over a connection that is open."""
    body = encode(myapp(1, 1))
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with Server(answer) as url:
        async with HttpTransport(ClientConfig(server=url)) as transport:
            asked = ApiRequest("GET", f"{MYAPPS}/app-1")
            for _ in range(10):
                await transport.request(asked)
            meter.begin()
            for _ in range(REQUESTS):
                await transport.request(asked)
            return meter.end() / REQUESTS


class Server:
    """Gives one answer to each request; in a thread, which is not counted: no CPU ratio of it is taken."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> str:
        self._thread.start()
        self._ready.wait(20)
        return f"http://127.0.0.1:{self._port}"

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._respond, "127.0.0.1", 0)
        async with server:
            self._port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._stop.wait()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionResetError):
            while await reader.readline():
                while (await reader.readline()).strip():
                    pass
                writer.write(self._answer)
        writer.close()


async def cached(objects: int = 4 * OBJECTS) -> float:
    """Bytes of an object in a store, beside its payload."""
    apps = [myapp(number, 1000 + number) for number in range(objects)]
    feed = Feed({MYAPPS: apps}, {})
    cache = SharedCache(feed, Resources(feed))
    informer = cache.acquire(Kind("example.com/v1", "MyApp", "myapps", True))
    gc.collect()
    tracemalloc.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        await informer.wait_synced()
        await anyio.sleep(0.05)
        gc.collect()
        held = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*kopylite*")])
        tasks.cancel_scope.cancel()
    tracemalloc.stop()
    return (sum(each.size for each in held.statistics("filename")) - informer.store.body_bytes) / objects


def loads(times: int = READS) -> float:
    body = encode(myapp(1, 1))
    began = time.process_time()
    for _ in range(times):
        json.loads(body)
    return (time.process_time() - began) / times


def queue() -> float:
    keys = requests(500)
    began = time.process_time()
    asyncio.run(asyncio_queue(keys, 10))
    return (time.process_time() - began) / 5000


STEPS: dict[str, Callable[[Calls | Cpu], Coroutine[Any, Any, float]]] = {
    "read": read, "event": event, "unchanged": unchanged, "reconcile": reconcile, "request": request,
}  # fmt: skip
YARDSTICKS: dict[str, Callable[[], float]] = {"read": loads, "event": loads, "unchanged": loads, "reconcile": queue}


def imported() -> dict[str, float]:
    """What the names of an operator cost: modules and calls, in a process of its own."""
    script = f"import cProfile, pstats, sys\np = cProfile.Profile()\np.enable()\n{NAMES}\np.disable()\n"
    script += "print(pstats.Stats(p).total_calls, len(sys.modules))"
    here = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", script]
    for _ in range(2):  # the first one may have to compile
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | here)
    calls, modules = map(float, done.stdout.split())
    return {"import calls": calls, "import modules": modules}


def measured() -> dict[str, float]:
    found = imported()
    for name, step in STEPS.items():
        asyncio.run(step(Cpu()))  # what is made once is made
        found[f"{name} calls"] = round(asyncio.run(step(Calls())), 1)
    best: dict[str, list[float]] = {name: [float("inf"), float("inf")] for name in YARDSTICKS}
    for _ in range(ROUNDS):
        for name, yardstick in YARDSTICKS.items():
            own, other = best[name]
            best[name] = [min(own, asyncio.run(STEPS[name](Cpu()))), min(other, yardstick())]
    found |= {f"{name} ratio": round(own / other, 2) for name, (own, other) in best.items()}
    return found | {"cached bytes": round(asyncio.run(cached()))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the baseline of this version of Python anew")
    parser.add_argument("--profile", choices=STEPS, help="show which functions one step calls, and end")
    options = parser.parse_args()
    if options.profile:
        meter = Calls()
        asyncio.run(STEPS[options.profile](meter))
        pstats.Stats(meter.profile).sort_stats("ncalls").print_stats(45)
        return 0
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    found = measured()
    if options.update:
        BASELINE.write_text(json.dumps(known | {PYTHON: found}, indent=1) + "\n")
    return compare(found, known.get(PYTHON, {}))


def compare(found: dict[str, float], known: dict[str, float]) -> int:
    """Print each row beside the baseline's; 1 if one of them has become dearer."""
    if not known:
        print(f"there is no baseline of Python {PYTHON}: nothing is compared (--update makes one)")
    worse = []
    for row, value in found.items():
        before, limit = known.get(row), TOLERANCE[row.rpartition(" ")[2]]
        change = "" if not before else f"{before:>10,.1f} {100 * (value / before - 1):+6.1f} %"
        if before and value > before * limit:
            worse.append(row)
            change += f"   DEARER: at most {100 * (limit - 1):+.0f} % is noise"
        print(f"{row:20} {value:>10,.1f} {change}")
    if worse:
        print(f"dearer than before: {', '.join(worse)}. If it is worth it: --update, and say so in the commit")
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
