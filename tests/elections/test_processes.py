"""Two and three real processes on a real API server, and what happens to them: never do two of them write at once.

Each write has its writer's name, so the order of the server's versions is the proof: once another has written, the
one before writes no more, unless it has taken the lease again.
"""

from __future__ import annotations

import itertools
import re
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from kopylite.leaderelection import LEASE, Lease
from kopylite.leaderelection.lease import absent
from kopylite.objects import ObjectKey, Unstructured
from kopylite.reconcile.recorder import EVENT
from kopylite.testing import EnvTest
from tests.elections.cluster import LEASE_SECONDS, History, playing
from tests.elections.writer import CONFIG_MAP
from tests.operators import eventually

pytestmark = [pytest.mark.realserver, pytest.mark.timeout(180)]


def assert_one_writer_at_a_time(history: History) -> None:
    """Each write comes when its writer is the last one that has taken the lease, in the order of the server's versions.

    Who holds a lease is an identity that a process has for itself, so under each there is one writer. What somebody
    else writes into the lease by hand does not count: it ends a term, and begins none.
    """
    taken = [(version, lease.holder) for version, lease in history.leases if lease is not None and "_" in lease.holder]
    writer_of: dict[str, str] = {}
    told_until = max((version for version, _ in history.leases), default=0)
    for version, writer in history.writers:
        if version > told_until:
            break  # the watch on the lease has not told yet who held it by then
        holder = next((holder for since, holder in reversed(taken) if since < version), "")
        assert holder, f"{writer} wrote at {version}, and nobody had taken the lease"
        assert writer_of.setdefault(holder, writer) == writer, f"{writer} wrote at {version}, when {holder} led"
    terms = history.terms()
    grants = [lease.holder for _, lease in history.leases if lease is not None and lease.holder]
    takes = [holder for i, holder in enumerate(grants) if i == 0 or grants[i - 1] != holder]
    assert len(terms) <= len(takes), f"writers changed {terms} more often than the holder of the lease: {takes}"


async def test_a_killed_leader_is_followed_when_its_lease_has_run_out(real_cluster: EnvTest, tmp_path: Path) -> None:
    async with playing(real_cluster, tmp_path) as replicas, replicas.replica("a") as a, replicas.replica("b") as b:
        history = replicas.history
        first = await history.written_by()
        leader, other = (a, b) if first == "a" else (b, a)
        await eventually(other.running.ready, "the one that stands by is ready", limit=40)
        assert not await other.leads()
        began = time.monotonic()
        await leader.end(signal.SIGKILL)
        await history.written_by(other.name)
        waited = time.monotonic() - began
        # From its last renewal, which was a retry period before at most.
        assert waited > LEASE_SECONDS - 1.5, f"{waited:.1f} s"
        assert await other.leads()
        assert history.terms() == [leader.name, other.name]
        assert_one_writer_at_a_time(history)


async def test_a_leader_that_was_stopped_for_longer_than_its_lease_writes_nothing_when_it_goes_on(
    real_cluster: EnvTest, tmp_path: Path
) -> None:
    async with playing(real_cluster, tmp_path) as replicas, replicas.replica("a") as a, replicas.replica("b") as b:
        history = replicas.history
        first = await history.written_by()
        leader, other = (a, b) if first == "a" else (b, a)
        leader.signal(signal.SIGSTOP)
        await history.written_by(other.name)
        leader.signal(signal.SIGCONT)
        await eventually(lambda: "all leader work has ended" in leader.running.log, "it has noticed")
        await eventually(lambda: f"held by {other.name}" in leader.running.log or "standing by" in leader.running.log,
                         "it stands by")  # fmt: skip
        assert not await leader.leads()
        # It can lead again, without a new process.
        assert await other.end(signal.SIGTERM) == 0
        await history.written_by(leader.name)
        assert history.terms() == [leader.name, other.name, leader.name]
        assert_one_writer_at_a_time(history)


async def test_a_leader_without_a_network_stops_before_another_one_begins(
    real_cluster: EnvTest, tmp_path: Path
) -> None:
    async with playing(real_cluster, tmp_path) as replicas, replicas.replica("a") as a, replicas.replica("b") as b:
        history = replicas.history
        first = await history.written_by()
        leader, other = (a, b) if first == "a" else (b, a)
        leader.proxy.cut = True
        await eventually(lambda: "Leader work is cancelled" in leader.running.log, "it gave up", limit=30)
        assert history.writer == leader.name, "the other one has not begun by then"
        await history.written_by(other.name)
        leader.proxy.cut = False
        await eventually(leader.running.ready, "it is ready again", limit=60)
        assert not await leader.leads()
        assert history.terms() == [leader.name, other.name]
        assert_one_writer_at_a_time(history)


async def test_clocks_that_are_wrong_by_ten_minutes_change_nothing(real_cluster: EnvTest, tmp_path: Path) -> None:
    async with (
        playing(real_cluster, tmp_path) as replicas,
        replicas.replica("a", SKEW="600") as a,
        replicas.replica("b", SKEW="-600") as b,
        replicas.replica("c") as c,
    ):
        history, by_name = replicas.history, {"a": a, "b": b, "c": c}
        for _ in range(3):
            leader = by_name.pop(await history.written_by())
            for other in by_name.values():
                await eventually(other.running.ready, f"{other.name} is ready", limit=40)
            assert len(history.terms()) == 4 - len(by_name) - 1, "nobody has taken a lease that was renewed"
            await leader.end(signal.SIGKILL)
            if by_name:
                await history.written_by(*by_name)
        assert sorted(history.terms()) == ["a", "b", "c"]
        times = [time for _, lease in history.leases if lease for time in (lease.acquired, lease.renewed) if time]
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", time) for time in times)
        assert_one_writer_at_a_time(history)


@pytest.mark.parametrize("deed", ["deleted", "emptied", "given away"])
async def test_a_lease_that_is_taken_by_hand_makes_no_second_writer(
    real_cluster: EnvTest, tmp_path: Path, deed: str
) -> None:
    async with (
        playing(real_cluster, tmp_path) as replicas,
        replicas.replica("a") as a,
        replicas.replica("b") as b,
        replicas.replica("c") as c,
    ):
        history, client, key = replicas.history, replicas.client.live, ObjectKey(replicas.namespace, "writer")
        leader = await history.written_by()
        for replica in (a, b, c):
            await eventually(replica.running.ready, f"{replica.name} is ready", limit=40)
        for _ in range(3):
            if deed == "deleted":
                await client.delete(LEASE, key)
            else:
                holder = "" if deed == "emptied" else "somebody"
                await client.patch(LEASE, key, {"spec": {"holderIdentity": holder}})
            enough = len(history.writers) + 50
            await eventually(partial(history.has, enough), "somebody works again", limit=30)
        if deed == "deleted":
            assert history.terms() == [leader], "the leader makes its lease anew and goes on"
        assert_one_writer_at_a_time(history)


async def test_a_storm_of_conflicts_on_the_lease_makes_no_second_writer(real_cluster: EnvTest, tmp_path: Path) -> None:
    """Somebody writes a label to the Lease all the time, so that nearly every renewal is a conflict."""
    async with (
        playing(real_cluster, tmp_path) as replicas,
        replicas.replica("a") as a,
        replicas.replica("b") as b,
    ):
        history, client, key = replicas.history, replicas.client.live, ObjectKey(replicas.namespace, "writer")
        await history.written_by()
        await eventually(a.running.ready, "a is ready", limit=40)
        await eventually(b.running.ready, "b is ready", limit=40)

        async def storm() -> None:
            for number in itertools.count():
                await client.patch(LEASE, key, {"metadata": {"labels": {"storm": str(number)}}})

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(storm)
            await anyio.sleep(2.5 * LEASE_SECONDS)  # the length of the fault, not a wait for something
            tasks.cancel_scope.cancel()
        enough = len(history.writers) + 20
        await eventually(partial(history.has, enough), "somebody works when it is over", limit=40)
        assert_one_writer_at_a_time(history)


async def test_an_api_server_that_takes_long_for_each_call_makes_no_second_writer(
    real_cluster: EnvTest, tmp_path: Path
) -> None:
    """At 5 s a call, nobody can renew within the deadline of 4 s."""
    async with (
        playing(real_cluster, tmp_path) as replicas,
        replicas.replica("a") as a,
        replicas.replica("b") as b,
    ):
        history = replicas.history
        await history.written_by()
        await eventually(a.running.ready, "a is ready", limit=40)
        await eventually(b.running.ready, "b is ready", limit=40)
        a.proxy.delay = b.proxy.delay = 5.0
        await eventually(lambda: "cancelled" in a.running.log + b.running.log, "the leader gave up", limit=40)
        await anyio.sleep(LEASE_SECONDS)  # the length of the fault, not a wait for something
        a.proxy.delay = b.proxy.delay = 0.0
        enough = len(history.writers) + 20
        await eventually(partial(history.has, enough), "somebody works when it is over", limit=60)
        assert_one_writer_at_a_time(history)


async def test_a_leader_that_is_stopped_drains_gives_its_lease_back_last_and_is_followed_at_once(
    real_cluster: EnvTest, tmp_path: Path
) -> None:
    slow = ("--lease-duration", "60s", "--renew-deadline", "40s", "--retry-period", "2s")  # nobody waits for its end
    async with (
        playing(real_cluster, tmp_path) as replicas,
        replicas.replica("a", target="tests/elections/drained.py", times=slow) as a,
    ):
        client, namespace = replicas.client.live, replicas.namespace
        await eventually(a.leads, "a leads", limit=40)
        async with replicas.replica("b", target="tests/elections/drained.py", times=slow) as b:
            await eventually(b.running.ready, "b is ready", limit=40)
            async with anyio.create_task_group() as tasks:
                for number in range(100):
                    metadata = {"name": f"d{number}", "namespace": namespace, "labels": {"elections": "drain"}}
                    tasks.start_soon(client.create, Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))
            active = "controller_runtime_active_workers"

            async def all_run() -> bool:
                return await a.running.sum_of(active) == 100

            await eventually(all_run, "100 reconciles are in flight", limit=30)
            assert await a.end(signal.SIGTERM) == 0
            await eventually(b.leads, "the other one leads", limit=10)
            found = await client.list(CONFIG_MAP, namespace=namespace, labels="elections=drain")
            assert {each["data"]["second"] for each in found} == {"a"}, "all were done, by the one that began them"
            released = next(version for version, lease in replicas.history.leases if lease and lease.released)
            # Whatever a has written, it has written before it gave the lease back.
            assert all(int(each.resource_version) < released for each in found)
            events = await client.list(EVENT, namespace=namespace, fields="regarding.kind=Lease")
            notes = [each["note"] for each in sorted(events, key=lambda each: int(each.resource_version))]
            assert [note.split(" ", 1)[1] for note in notes][:2] == ["became leader", "stopped leading"]
            assert all(int(e.resource_version) < released for e in events if "stopped" in e["note"])


async def test_what_needs_no_leader_works_in_every_process(real_cluster: EnvTest, tmp_path: Path) -> None:
    async with (
        playing(real_cluster, tmp_path) as replicas,
        replicas.replica("a"),
        replicas.replica("b"),
    ):
        key = ObjectKey(replicas.namespace, "everywhere")

        async def both() -> bool:
            data = (await replicas.client.live.get(CONFIG_MAP, key)).get("data") or {}
            return {"seen-by-a", "seen-by-b"} <= data.keys()

        await eventually(both, "both have seen it", limit=40)
        await eventually(replicas.history.terms, "somebody leads", limit=40)  # which may be later
        assert len(replicas.history.terms()) == 1


async def test_without_a_lease_the_first_leader_waits_once_in_case_it_was_just_deleted(
    real_cluster: EnvTest, tmp_path: Path
) -> None:
    async with playing(real_cluster, tmp_path, lease=False) as replicas, replicas.replica("a") as a:
        await eventually(a.running.ready, "it is ready meanwhile", limit=40)
        await replicas.history.written_by("a")
        first = next(lease for _, lease in replicas.history.leases if lease)
        assert (first.holder, first.duration) == ("", int(LEASE_SECONDS))
        assert "is left alone for" in a.running.log


def test_a_write_under_somebody_elses_lease_would_be_seen() -> None:
    def lease(holder: str) -> Lease:
        return replace(absent("writer", "default"), holder=holder)

    history = History()
    history.leases = [(1, lease("vm_1")), (4, lease("by hand")), (7, lease("vm_2")), (20, lease("vm_2"))]
    history.writers = [(2, "a"), (3, "a"), (5, "a"), (8, "b")]
    assert_one_writer_at_a_time(history)
    history.writers += [(9, "a")]
    with pytest.raises(AssertionError, match="a wrote at 9, when vm_2 led"):
        assert_one_writer_at_a_time(history)
