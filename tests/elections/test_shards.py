"""Real processes that split the work on a real API server: join, leave, die; every object is done, and once only."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kopylite.devcluster.cluster import Cluster
from kopylite.testing import EmbeddedCluster
from tests.elections import cluster as short
from tests.elections.cluster import playing
from tests.elections.work import SHARDS, TARGET, TIMES, Work, held, join_leave_and_die, overlaps, settled
from tests.operators import eventually

pytestmark = pytest.mark.timeout(420)


async def test_processes_that_join_leave_and_die_do_every_object_and_each_caches_its_own(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with playing(cluster, tmp_path, lease=False) as replicas:
        await join_leave_and_die(replicas, 300)


async def test_processes_of_one_parent_share_the_work_and_one_that_is_killed_comes_back(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async with playing(embedded_cluster, tmp_path, lease=False) as replicas:
        work = Work(replicas, 60)
        await work.each("create", "1")
        async with replicas.replica(
            "p", "--processes", "2", target=TARGET, times=short.TIMES, RUNS=str(work.runs)
        ) as p:
            await eventually(p.running.ready, "both are ready", limit=120)

            async def shared() -> bool:
                parts = [await p.running.sum_of("kopylite_shards_held", process=number) for number in "12"]
                return parts == [SHARDS / 2] * 2

            await eventually(shared, "each has half of the shards", limit=60)
            await work.done("1")
            victim = int(
                Path(f"/proc/{p.running.process.pid}/task/{p.running.process.pid}/children").read_text().split()[0]
            )
            os.kill(victim, signal.SIGKILL)
            with work.runs.open("a") as runs:
                runs.write(f"killed - {victim}\n")
            await work.each("patch", "2")
            await work.done("2")
            await eventually(shared, "each has half of the shards again", limit=60)
            assert await p.running.sum_of("kopylite_child_restarts_total") == 1
            assert await p.end(signal.SIGTERM, limit=60) == 0
            assert {"process=1", "process=2"} <= set(p.running.log.split())


def test_runs_of_two_processes_that_overlap_are_found(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.write_text("begins u 1\nends u 1\nbegins u 2\nbegins v 1\nkilled - 2\nbegins u 1\n")
    assert overlaps(runs) == []
    runs.write_text("begins u 1\nbegins u 2\nends u 1\n")
    assert overlaps(runs) == ["u: 2 began while 1 ran it"]


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
