"""Two and three real processes on a real API server, and what happens to them: never do two of them write at once.

Each write has its writer's name, so the order of the server's versions is the proof: once another has written, the
one before writes no more, unless it has taken the lease again.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from kopylite.testing import EnvTest
from tests.elections.cluster import LEASE_SECONDS, History, playing
from tests.operators import eventually

pytestmark = [pytest.mark.realserver, pytest.mark.timeout(180)]


def assert_one_writer_at_a_time(history: History) -> None:
    """Whoever writes is the last one that took the lease, or (in the last moments of its term) the one before.

    That a term's writes never come after the next term's first one is the proof that both did not write at once.
    """
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
