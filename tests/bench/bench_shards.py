"""What shards cost and give: one and two processes of one machine on the same objects, beside each other; and a proof.

    python -m tests.bench.bench_shards                    # 5,000 objects of 8 KB, on a real API server
    python -m tests.bench.bench_shards --proof            # three processes that join, leave and die during the work

Each object needs one write. Wall time is from the first run to the last write (a first start waits for one lease
duration before it), CPU that of the processes, memory what each has more at the end than one that watches an empty
namespace. With `--proof`, each process notes the begin and end of each run: no two have had an object at once, and all
were done. Needs KUBEBUILDER_ASSETS.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import anyio

from kopylite.testing import EnvTest
from tests.elections.cluster import Replica, Replicas, playing
from tests.elections.work import TARGET, Work, join_leave_and_die
from tests.operators import children_of, eventually

SHARDS = 12
LIMIT = 600.0
# Nobody dies here, and a busy machine shall not make it look so.
TIMES = ("--lease-duration", "30s", "--renew-deadline", "20s", "--retry-period", "1s")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figures:
    """Of one round; memory in MiB, of each process."""

    wall: float
    cpu: float
    memory: list[float]
    cached: list[int]


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pid: int) -> float:
    """What is its own alone: pages of libraries, which all processes share, are no part of it."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private")) / 1024


async def play(replicas: Replicas, processes: int, objects: int) -> Figures:
    """Let some processes do what is there."""
    began = time.monotonic()
    async with replicas.replica(
        "p", "--processes", str(processes), "--shards", str(SHARDS), target=TARGET, times=TIMES
    ) as p:
        await eventually(lambda: p.running.address, "the parent listens", limit=LIMIT)

        async def so_many(least: int) -> bool:
            # Of writes: a run may be the second one of its object. Leases are put.
            return await p.running.sum_of("rest_client_requests_total", method="PATCH", code="200") >= least

        if objects:
            await eventually(lambda: so_many(1), "it has begun", limit=LIMIT)
            began = time.monotonic()
        await eventually(lambda: so_many(objects), "all objects are done", limit=LIMIT)
        wall = time.monotonic() - began

        async def settled() -> bool:
            held = await of_each(p, processes, "kopylite_shards_held")
            return sum(held) == SHARDS and max(held) - min(held) <= 1

        await eventually(settled, "each has its fair part", limit=LIMIT)
        pids = children_of(p.running.process.pid) or [p.running.process.pid]
        objects_of_each = await of_each(p, processes, "kopylite_informer_objects", kind="ConfigMap")
        found = Figures(wall, sum(map(cpu_of, pids)), [*map(memory_of, pids)], [*map(int, objects_of_each)])
        assert await p.end(signal.SIGTERM, limit=120) == 0
        return found


async def of_each(p: Replica, processes: int, metric: str, **labels: str) -> list[float]:
    """A figure of each process; one alone has no parent that tells them apart."""
    numbers = [{"process": str(number + 1)} for number in range(processes)] if processes > 1 else [{}]
    return [await p.running.sum_of(metric, **labels, **number) for number in numbers]


async def compare(cluster: EnvTest, objects: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with playing(cluster, Path(folder), lease=False) as replicas:
            base = (await play(replicas, 1, 0)).memory[0]
        print(f"a process without objects: {base:.0f} MiB of its own", flush=True)
        for processes in (1, 2):
            async with playing(cluster, Path(folder), lease=False) as replicas:
                work = Work(replicas, objects, size, SHARDS)
                await work.each("create", "1")
                found = await play(replicas, processes, objects)
                await work.done("1")
                more = ", ".join(f"{each - base:.0f}" for each in found.memory)
                print(
                    f"| {processes} | {found.wall:.1f} s | {found.cpu:.1f} s | {more} MiB | {found.cached} objects |",
                    flush=True,
                )


async def prove(cluster: EnvTest, objects: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        async with playing(cluster, Path(folder), lease=False) as replicas:
            await join_leave_and_die(replicas, objects, limit=LIMIT)
            runs = (Path(folder) / "runs").read_text().count("begins")
        print(
            f"{objects} objects, four times, by up to three processes that joined, left and died: {runs} runs, none of "
            f"an object that another process ran, all done, in {time.monotonic() - began:.0f} s"
        )


async def main(objects: int, size: int, *, proof: bool) -> None:
    async with EnvTest(start_timeout=200) as cluster:
        await (prove(cluster, objects) if proof else compare(cluster, objects, size))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--bytes", type=int, default=8192)
    parser.add_argument("--proof", action="store_true")
    arguments = parser.parse_args()
    anyio.run(lambda: main(arguments.objects, arguments.bytes, proof=arguments.proof))
