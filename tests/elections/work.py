"""The work that replicas split: objects to be done, who holds which shard, and whether two ever ran one at once."""

from __future__ import annotations

import re
import signal
from collections import Counter, defaultdict
from pathlib import Path

import anyio

from kopylite.leaderelection import LEASE
from kopylite.leaderelection.roster import REPLICA
from kopylite.objects import Unstructured
from kopylite.objects.shard import Shard
from tests.elections.cluster import Replica, Replicas
from tests.elections.writer import CONFIG_MAP
from tests.operators import eventually

TARGET = "tests/elections/sharded.py"
# A replica that a loaded machine keeps from renewing loses what it holds, and these tests count that.
TIMES = ("--lease-duration", "15s", "--renew-deadline", "10s", "--retry-period", "1s")
SHARDS = 4
AT_A_TIME = 16


async def held(replica: Replica) -> list[int]:
    """The shards that a process holds, by its own metrics."""
    text = (await replica.running.get("/metrics"))[1]
    found = re.findall(r'^leader_election_master_status\{name="sharded-shard-(\d+)"\} 1', text, re.M)
    return sorted(map(int, found))


async def cached(replica: Replica) -> float:
    return await replica.running.sum_of("kopylite_informer_objects", kind="ConfigMap")


async def settled(*replicas: Replica) -> None:
    """Wait until these hold all shards, each its fair part."""

    async def fair() -> bool:
        parts = [await held(replica) for replica in replicas]
        sizes = sorted(map(len, parts))
        return sorted(shard for part in parts for shard in part) == list(range(SHARDS)) and sizes[-1] - sizes[0] <= 1

    await eventually(fair, f"{[replica.name for replica in replicas]} hold all shards", limit=120)


class Work:
    """ConfigMaps to be worked on, and what was done."""

    def __init__(self, replicas: Replicas, count: int, size: int = 0, shards: int = SHARDS) -> None:
        self.replicas, self.count, self.filling, self.shards = replicas, count, "x" * size, shards
        self.runs = replicas.folder / "runs"

    async def each(self, act: str, wanted: str) -> None:
        client, limit = self.replicas.client.live, anyio.CapacityLimiter(AT_A_TIME)

        async def one(number: int) -> None:
            metadata = {"name": f"w{number}", "namespace": self.replicas.namespace, "labels": {"work": "yes"}}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"wanted": wanted}}
            if self.filling:
                obj["data"] = {"wanted": wanted, "filling": self.filling}
            async with limit:
                if act == "create":
                    await client.create(Unstructured(obj))
                else:
                    await client.patch(CONFIG_MAP, Unstructured(obj), {"data": {"wanted": wanted}})

        async with anyio.create_task_group() as tasks:
            for number in range(self.count):
                tasks.start_soon(one, number)

    def note_killed(self, pid: int) -> None:
        """Its runs ended with it."""
        with self.runs.open("a") as runs:
            runs.write(f"killed - {pid}\n")

    async def found(self) -> list[Unstructured]:
        return await self.replicas.client.live.list(CONFIG_MAP, namespace=self.replicas.namespace, labels="work=yes")

    async def total(self) -> int:
        """How many ConfigMaps there are, others included."""
        return len(await self.replicas.client.live.list(CONFIG_MAP, namespace=self.replicas.namespace))

    async def done(self, wanted: str, limit: float = 150) -> list[Unstructured]:
        """Wait until all is; nobody has done what is of another's shard."""
        found: list[Unstructured] = []

        async def all_done() -> bool:
            found[:] = await self.found()
            return all(each["data"].get("done") == wanted for each in found)

        await eventually(all_done, f"all {self.count} objects are done", limit=limit)
        assert overlaps(self.runs) == [], "two had an object at once"
        assert len(found) == self.count
        for each in found:
            assert Shard(int(each["data"]["shard"]), self.shards).holds(each.uid), "done by whom its shard belongs to"
        return found


def overlaps(runs: Path) -> list[str]:
    """The runs that began while another process ran the same object, by what the processes have noted.

    All are of one machine, so they share its monotonic clock. A run of a process that was killed has no end: it ended
    when the process did, before anybody else's lease could.
    """
    open_runs: dict[str, set[str]] = defaultdict(set)
    found = []
    for line in runs.read_text().splitlines() if runs.exists() else ():
        word, uid, process = line.split()
        if word == "killed":
            for others in open_runs.values():
                others.discard(process)
        elif word == "ends":
            open_runs[uid].discard(process)
        else:
            if others := open_runs[uid] - {process}:
                found.append(f"{uid}: {process} began while {', '.join(others)} ran it")
            open_runs[uid].add(process)
    return found


async def join_leave_and_die(replicas: Replicas, count: int, limit: float = 150) -> None:
    """One replica does all; two join during the second round of work, and in the last one dies, and one leaves."""
    work = Work(replicas, count)
    more = {"target": TARGET, "times": TIMES, "RUNS": str(work.runs)}
    await work.each("create", "1")
    async with replicas.replica("a", **more) as a:  # type: ignore[arg-type]
        await eventually(a.running.ready, "a is ready", limit=60)
        await settled(a)
        assert {each["data"]["writer"] for each in await work.done("1", limit)} == {"a"}
        async with replicas.replica("b", **more) as b, replicas.replica("c", **more) as c:  # type: ignore[arg-type]
            async with anyio.create_task_group() as tasks:  # hand-over while there is work
                tasks.start_soon(work.each, "patch", "2")
                await settled(a, b, c)
            await work.done("2", limit)
            await work.each("patch", "3")
            writers = Counter(each["data"]["writer"] for each in await work.done("3", limit))
            assert writers.keys() == {"a", "b", "c"}
            await each_caches_its_own(work, a, b, c)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work.each, "patch", "4")
                await c.end(signal.SIGKILL)
                work.note_killed(c.running.process.pid)
                assert await b.end(signal.SIGTERM) == 0
            await settled(a)
            assert len(await work.done("4", limit)) == count
        leases = await replicas.client.live.list(LEASE, namespace=replicas.namespace)
        present = [each for each in leases if REPLICA in (each["metadata"].get("labels") or {})]
        assert len(present) == 2, "b has taken its own Lease away; c could not"


async def each_caches_its_own(work: Work, *replicas: Replica) -> None:
    total, sizes = await work.total(), dict[str, float]()

    async def each_its_own() -> bool:
        sizes.update({replica.name: await cached(replica) for replica in replicas})
        # Of three, a shard holds a quarter, give or take; 1, 1 and 2 of them.
        return sum(sizes.values()) == total and max(sizes.values()) < 0.65 * total

    await eventually(each_its_own, f"each caches its own: {sizes} of {total}", limit=60)
