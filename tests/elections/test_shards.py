"""Real processes that split the work on a real API server: join, leave, die; every object is done, and once only."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

import anyio
import pytest

from kopylite.devcluster.cluster import Cluster
from kopylite.leaderelection import LEASE
from kopylite.leaderelection.roster import REPLICA
from kopylite.objects import Unstructured
from kopylite.objects.shard import Shard
from tests.elections.cluster import Replica, Replicas, playing
from tests.elections.writer import CONFIG_MAP
from tests.operators import eventually

pytestmark = pytest.mark.timeout(420)

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

    def __init__(self, replicas: Replicas, count: int) -> None:
        self.replicas, self.count = replicas, count

    async def each(self, act: str, wanted: str) -> None:
        client, limit = self.replicas.client.live, anyio.CapacityLimiter(AT_A_TIME)

        async def one(number: int) -> None:
            metadata = {"name": f"w{number}", "namespace": self.replicas.namespace, "labels": {"work": "yes"}}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"wanted": wanted}}
            async with limit:
                if act == "create":
                    await client.create(Unstructured(obj))
                else:
                    await client.patch(CONFIG_MAP, Unstructured(obj), {"data": {"wanted": wanted}})

        async with anyio.create_task_group() as tasks:
            for number in range(self.count):
                tasks.start_soon(one, number)

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
        assert len(found) == self.count
        for each in found:
            assert Shard(int(each["data"]["shard"]), SHARDS).holds(each.uid), "done by whom its shard belongs to"
        return found


async def test_processes_that_join_leave_and_die_do_every_object_and_each_caches_its_own(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with playing(cluster, tmp_path, lease=False) as replicas:
        work = Work(replicas, 300)
        await work.each("create", "1")
        async with replicas.replica("a", target=TARGET, times=TIMES) as a:
            await eventually(a.running.ready, "a is ready", limit=60)
            await settled(a)
            assert {each["data"]["writer"] for each in await work.done("1")} == {"a"}
            async with (
                replicas.replica("b", target=TARGET, times=TIMES) as b,
                replicas.replica("c", target=TARGET, times=TIMES) as c,
            ):
                async with anyio.create_task_group() as tasks:  # hand-over while there is work
                    tasks.start_soon(work.each, "patch", "2")
                    await settled(a, b, c)
                await work.done("2")
                await work.each("patch", "3")
                writers = Counter(each["data"]["writer"] for each in await work.done("3"))
                assert writers.keys() == {"a", "b", "c"}
                total, sizes = await work.total(), dict[str, float]()

                async def each_its_own() -> bool:
                    sizes.update({replica.name: await cached(replica) for replica in (a, b, c)})
                    # A shard holds a quarter, give or take; 1, 1 and 2 of them.
                    return sum(sizes.values()) == total and max(sizes.values()) < 0.65 * total

                await eventually(each_its_own, f"each caches its own: {sizes} of {total}", limit=60)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(work.each, "patch", "4")
                    await c.end(signal.SIGKILL)
                    assert await b.end(signal.SIGTERM) == 0
                await settled(a)
                assert len(await work.done("4")) == 300
            leases = await replicas.client.live.list(LEASE, namespace=replicas.namespace)
            present = [each for each in leases if REPLICA in (each["metadata"].get("labels") or {})]
            assert len(present) == 2, "b has taken its own Lease away; c could not"


async def test_a_process_that_was_stopped_for_longer_than_its_leases_writes_nothing_of_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with playing(cluster, tmp_path, lease=False) as replicas:
        work = Work(replicas, 60)
        await work.each("create", "1")
        async with (
            replicas.replica("a", target=TARGET, times=TIMES) as a,
            replicas.replica("b", target=TARGET, times=TIMES) as b,
        ):
            await settled(a, b)
            await work.done("1")
            a.signal(signal.SIGSTOP)
            await settled(b)
            await work.each("patch", "2")
            assert {each["data"]["writer"] for each in await work.done("2")} == {"b"}
            versions = {each.name: each.resource_version for each in await work.found()}
            a.signal(signal.SIGCONT)
            await settled(a, b)
            assert versions == {each.name: each.resource_version for each in await work.found()}


async def test_replicas_with_another_number_of_shards_wait_until_the_others_have_ended(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with playing(cluster, tmp_path, lease=False) as replicas:
        work = Work(replicas, 20)
        await work.each("create", "1")
        async with replicas.replica("a", target=TARGET, times=TIMES) as a:
            await settled(a)
            async with replicas.replica("b", "--shards", "2", target=TARGET, times=TIMES) as b:
                await eventually(lambda: "others split the keys otherwise" in b.running.log, "b says so", limit=60)
                await eventually(b.running.ready, "it is ready all the same", limit=60)
                assert await held(b) == []
                assert await a.end(signal.SIGTERM) == 0

                async def takes_over() -> bool:
                    return await held(b) == [0, 1]

                await eventually(takes_over, "b works when a has ended", limit=60)
