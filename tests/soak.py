"""python -m tests.soak [--events 1000000] [--minutes 30]: an operator under a million events and random faults.

Objects are created, changed and deleted behind the operator's back; watches are cut, requests refused or not answered,
the history is compacted, connections break. In virtual time, so that only work takes time. What is printed from time to
time, and compared with the first quarter at the end, are things that must not grow: memory, tasks, objects of the
garbage collector, open files, what waits in the queue. The exit code is 1 if one has grown, or if in the end the
operator has not seen the last state.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import anyio

from kopylite import App, Context, Kind, Manager, Options, Request, Unstructured
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.apiserver.world import Call, Disconnect
from kopylite.client import load_config
from kopylite.errors import InternalError, TooManyRequests
from kopylite.testing import EmbeddedCluster, VirtualClock

CONFIG_MAP, SECRET = Kind("v1", "ConfigMap"), Kind("v1", "Secret")
STORAGE = "configmaps"
OBJECTS = 200
BURST = 250
# Every so many changes of an object the operator writes.
WRITES_EACH = 40
GROWTH = 1.25
# Bytes that pages and pools may take besides; tasks and files that come and go with a connection.
SLACK = {"memory": 24_000_000, "tasks": 12, "objects": 20_000, "files": 12}


@dataclass
class Measure:
    """What must not grow."""

    memory: int
    tasks: int
    objects: int
    files: int

    @classmethod
    def now(cls) -> Measure:
        gc.collect()
        with open("/proc/self/statm") as file:
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return cls(memory, len(asyncio.all_tasks()), len(gc.get_objects()), len(os.listdir("/proc/self/fd")))


class Soak:
    """The world, the operator and the faults."""

    def __init__(self, seed: int, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.random, self.cluster, self.clock = Random(seed), cluster, clock
        self.events = self.faults = self.runs = self.numbers = 0
        self.seen: dict[str, str] = {}
        self.calm = False
        cluster.hooks.before.append(self.refuse)
        cluster.hooks.watch.append(self.cut)

    @property
    def store(self) -> ObjectStore:
        return self.cluster.server.world.store

    def app(self) -> App:
        app = App("soaked")

        @app.reconciler(CONFIG_MAP, workers=4)
        async def reconcile(ctx: Context, request: Request) -> None:
            self.runs += 1
            config_map = await ctx.client.find(CONFIG_MAP, request)
            if config_map is None:
                self.seen.pop(request.name, None)
                return
            number = config_map["data"]["n"] if "data" in config_map else ""
            self.seen[request.name] = number
            if number and int(number) % WRITES_EACH == 0:
                await ctx.client.create_or_update(SECRET, request, lambda secret: _fill(secret, number))

        return app

    def change(self) -> None:
        """One event."""
        name = f"c{self.random.randrange(OBJECTS)}"
        key, store = f"default/{name}", self.store
        stored = store.get(STORAGE, key)
        self.numbers += 1
        if stored is not None and self.random.random() < 0.1:
            store.delete(STORAGE, key, stored)
        else:
            uid = stored.uid if stored else f"{self.numbers:08d}-0000-4000-8000-000000000000"
            metadata = {"name": name, "namespace": "default", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": str(self.numbers)}}
            if stored is None:
                store.create(STORAGE, key, obj, encoding_version="v1")
            else:
                store.update(STORAGE, key, obj, stored, encoding_version="v1")
        self.events += 1

    async def refuse(self, request: HttpRequest) -> Response | None:
        if request.agent.startswith("soaked") and self._happens(0.02):
            error = self.random.choice([Disconnect, InternalError, TooManyRequests])
            raise error() if error is Disconnect else error("not now")
        return None

    async def cut(self, call: Call, frame: bytes) -> bytes | None:
        if call.resource.plural != STORAGE or not self._happens(0.002):
            return frame
        match self.random.randrange(3):
            case 0:
                return None
            case 1:
                raise Disconnect
            case _:
                return frame[: self.random.randrange(1, len(frame))] + b"\n"

    def _happens(self, chance: float) -> bool:
        happens = not self.calm and self.random.random() < chance
        self.faults += happens
        return happens

    async def burst(self) -> None:
        for _ in range(BURST):
            self.change()
        if self._happens(0.05):
            self.cluster.compact()
        if self._happens(0.02):
            self.cluster.server.cut_connections()
        await self.clock.sleep(self.random.choice([0.1, 1.0, 20.0]))

    def forget(self) -> None:
        """What the server keeps for tests and late watchers fills up for a while, and says nothing about a leak."""
        self.cluster.compact()
        self.cluster.requests.clear()
        self.cluster.server.core.log.clear()

    async def settle(self) -> bool:
        """Whether the operator ends up with the present state."""
        self.calm = True
        for _ in range(60):
            await self.clock.sleep(30.0)
            if self.seen == self.present():
                return True
        return False

    def present(self) -> dict[str, str]:
        records = self.store.collection(STORAGE).records.values()
        return {r.name: r.decode()["data"]["n"] for r in records if r.namespace == "default" and r.name[0] == "c"}

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Manager]:
        options = Options(metrics_address="off", health_address="off", namespaces=("default",), grace_period=1)
        manager = Manager(self.app(), load_config(str(self.cluster.kubeconfig)), options, clock=self.clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_synced()
            yield manager
            manager.stop()


def _fill(secret: Unstructured, number: str) -> None:
    secret["stringData"] = {"n": number}


async def soak(clock: VirtualClock, events: int, seconds: float, seed: int) -> int:
    """The exit code."""
    began, measures = time.monotonic(), list[Measure]()
    async with EmbeddedCluster(tls=False, clock=clock, controllers=False) as cluster:
        soak = Soak(seed, cluster, clock)
        async with soak.operator():
            while soak.events < events and time.monotonic() - began < seconds:
                await soak.burst()
                if soak.events * 20 // events > len(measures):
                    soak.forget()
                    measures.append(measure := Measure.now())
                    rate = soak.events / (time.monotonic() - began)
                    print(
                        f"{soak.events:9} events {soak.runs:9} runs {soak.faults:7} faults {rate:7.0f} events/s "
                        f"{measure.memory / 1e6:7.1f} MB {measure.tasks:4} tasks {measure.objects:8} objects "
                        f"{measure.files:3} files",
                        flush=True,
                    )
            settled = await soak.settle()
    grown = growth(measures)
    for line in grown:
        print(f"GROWN: {line}")
    if not settled:
        print("NOT SETTLED: the operator has not seen the last state")
    print(f"{soak.events} events, {soak.runs} runs, {soak.faults} faults, {clock.monotonic() / 3600:.1f} virtual hours")
    return 1 if grown or not settled else 0


def growth(measures: list[Measure]) -> list[str]:
    """What is more in the last quarter than in the first one after the beginning, beyond what comes and goes."""
    if len(measures) < 4:
        return []
    part = max(1, len(measures) // 4)
    found = []
    for name, slack in SLACK.items():
        first = max(getattr(each, name) for each in measures[:part])
        last = min(getattr(each, name) for each in measures[-part:])
        if last > first * GROWTH and last > first + slack:
            found.append(f"{name} from {first} to {last}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="of the wall clock, at most")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable()
    clock = VirtualClock()
    return clock.run(lambda: soak(clock, options.events, options.minutes * 60, options.seed))


if __name__ == "__main__":
    sys.exit(main())
