"""Replicas that share shards through a server in memory, in virtual time: joins, deaths, lost answers, refusals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import anyio
import pytest

from kopylite.client import ApiRequest
from kopylite.errors import Forbidden
from kopylite.leaderelection import Elector, LeaseSettings, Membership, Post, Roster, roster, shard_labels
from kopylite.leaderelection.lease import Lease, micro_time
from kopylite.leaderelection.observer import ElectionObserver, LeaseChange
from kopylite.testing.clock import START, VirtualClock
from tests.operators import eventually
from tests.unit.leaderelection.leaseserver import LeaseServer, Line

DURATION, PERIOD = 15.0, 2.0


class Listener(ElectionObserver):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.changes: list[LeaseChange] = []
        self.refusals = 0

    def changed(self, lease: Lease, change: LeaseChange, note: str) -> None:
        self.changes.append(change)

    def forbidden(self, error: Forbidden) -> None:
        self.refusals += 1


class Replica:
    """One process with its shards, whose work is to wait."""

    def __init__(self, name: str, server: LeaseServer, clock: VirtualClock, shards: int = 4) -> None:
        self.name, self.shards, self.clock = name, shards, clock
        self.listener, self.line = Listener(), Line(server)
        own = self._settings(f"app-replica-{name}")
        self.roster = Roster(name, "app", shards, own)
        self.over = [anyio.Event() for _ in range(shards)]
        self.electors = [self._elector(shard) for shard in range(shards)]
        posts = [Post(elector, partial(self._hand_over, i)) for i, elector in enumerate(self.electors)]
        self.membership = Membership(own, self.roster, posts, self.line, clock=clock, observer=self.listener)
        self._scope = anyio.CancelScope()

    def _settings(self, name: str, labels: dict[str, str] | None = None) -> LeaseSettings:
        return LeaseSettings(name=name, namespace="default", labels=labels or {})

    def _elector(self, shard: int) -> Elector:
        settings = self._settings(f"app-shard-{shard}", shard_labels("app", shard, self.shards))
        return Elector(
            settings, self.name, self.line, clock=self.clock, observer=self.listener, standing=False,
            may_claim=lambda: self.roster.may_claim(self.clock.elapsed()),
        )  # fmt: skip

    async def run(self) -> None:
        """As a process, until `end`."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.membership.run)
                for shard, elector in enumerate(self.electors):
                    tasks.start_soon(elector.run, lambda shard=shard: self._work(shard))

    def _hand_over(self, shard: int) -> None:
        self.over[shard].set()

    async def _work(self, shard: int) -> None:
        self.over[shard] = anyio.Event()
        await self.over[shard].wait()

    def stop(self) -> None:
        """As SIGTERM."""
        self.membership.leave()
        for elector, over in zip(self.electors, self.over, strict=True):
            elector.stop()
            over.set()

    def end(self) -> None:
        """The process is gone; what it does for an orderly end arrives, unless its line is cut."""
        self._scope.cancel()

    @property
    def held(self) -> list[int]:
        return self.membership.held


async def eventually_in(seconds: float, condition: Callable[[], bool]) -> None:
    await eventually(condition, "it came so", limit=seconds)


def served(shards: int = 4) -> LeaseServer:
    """With the Leases of the shards as manifests bring them."""
    server = LeaseServer()
    for shard in range(shards):
        server.put({"metadata": {"name": f"app-shard-{shard}", "namespace": "default"}})
    return server


def test_a_replica_says_that_it_is_there_takes_all_shares_with_another_and_gets_them_back() -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a, b = Replica("a", server, clock), Replica("b", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.run)
            await eventually_in(10, lambda: a.held == [0, 1, 2, 3])
            assert server.leases["app-replica-a"]["metadata"]["labels"] == {
                roster.SHARDS_OF: "app", roster.COUNT: "4", roster.REPLICA: roster.ACTIVE,
            }  # fmt: skip
            tasks.start_soon(b.run)
            await eventually_in(20, lambda: (len(a.held), len(b.held)) == (2, 2))
            assert sorted(a.held + b.held) == [0, 1, 2, 3]
            server.requests.clear()
            await anyio.sleep(50)
            assert not [each for each in server.requests if each.startswith("GET app-shard")], "each keeps to its own"
            now = b.membership.statistics()
            assert (now.replicas, now.shards, now.held, now.blocked) == (2, 4, 2, False)
            assert now.rebalances >= 1
            b.stop()
            await eventually_in(10, lambda: a.held == [0, 1, 2, 3])
            b.end()
            await eventually_in(10, lambda: "app-replica-b" not in server.leases)
            tasks.cancel_scope.cancel()
        assert a.listener.changes.count(LeaseChange.TAKEN) == 6
        assert b.listener.changes == [LeaseChange.TAKEN] * 2 + [LeaseChange.GIVEN_BACK] * 2
        assert server.holders() == {}

    clock.run(play)


def test_what_a_dead_replica_held_is_taken_when_its_leases_have_run_out_and_its_litter_is_cleared() -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a, b = Replica("a", server, clock), Replica("b", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.run)
            tasks.start_soon(b.run)
            await eventually_in(20, lambda: (len(a.held), len(b.held)) == (2, 2))
            theirs = set(b.held)
            b.line.cut = True
            b.end()
            began = clock.elapsed()
            await eventually_in(60, lambda: a.held == [0, 1, 2, 3])
            took = clock.elapsed() - began
            assert DURATION - PERIOD - 1 < took < DURATION + 3 * PERIOD, f"{theirs} were left alone for their time"
            await eventually_in(2 * roster.LITTER * DURATION, lambda: "app-replica-b" not in server.leases)
            tasks.cancel_scope.cancel()

    clock.run(play)


def test_an_answer_that_is_lost_makes_no_second_lease_and_holds_nobody_up() -> None:
    server, clock = served(), VirtualClock()
    lost: list[str] = []

    def lose_the_first_of_each(request: ApiRequest) -> str | None:
        key = f"{request.method} {request.path}"
        if request.method not in ("POST", "PUT") or key in lost:
            return None
        lost.append(key)
        return "lost"

    server.fault = lose_the_first_of_each

    async def play() -> None:
        a = Replica("a", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.run)
            await eventually_in(60, lambda: a.held == [0, 1, 2, 3])
            tasks.cancel_scope.cancel()

    clock.run(play)
    assert len(lost) >= 3
    assert sum(name.startswith("app-replica") for name in server.leases) == 0, "it has cleared its own"


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_write_of_our_lease_that_is_carried_out_while_we_end_leaves_none_behind(method: str) -> None:
    server, clock = served(), VirtualClock()
    lost: list[str] = []

    def lose_the_first(request: ApiRequest) -> str | None:
        if request.method != method or lost or b"app-replica-a" not in (request.body or b""):
            return None
        lost.append(method)
        return "lost"

    async def play() -> None:
        a = Replica("a", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.membership.run)
            await eventually_in(60, lambda: bool(lost))
            tasks.cancel_scope.cancel()

    server.fault = lose_the_first
    clock.run(play)
    assert lost == [method]
    assert "app-replica-a" not in server.leases


def test_a_lease_of_ours_that_somebody_else_has_taken_over_stays_when_we_end() -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a = Replica("a", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.membership.run)
            await eventually_in(60, lambda: "app-replica-a" in server.leases)
            server.hand_to("somebody", "app-replica-a")
            tasks.cancel_scope.cancel()

    clock.run(play)
    assert server.leases["app-replica-a"]["spec"]["holderIdentity"] == "somebody"


def test_a_lease_of_ours_that_somebody_deletes_or_edits_is_there_again_and_shards_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a = Replica("a", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.run)
            await eventually_in(10, lambda: a.held == [0, 1, 2, 3])
            del server.leases["app-replica-a"]
            await eventually_in(3 * PERIOD, lambda: "app-replica-a" in server.leases)
            server.label("app-replica-a", team="red")
            mine = server.leases["app-replica-a"]
            await eventually_in(3 * PERIOD, lambda: server.leases["app-replica-a"] is not mine)
            await anyio.sleep(3 * PERIOD)
            assert server.leases["app-replica-a"]["metadata"]["labels"]["team"] == "red"
            assert a.held == [0, 1, 2, 3]
            tasks.cancel_scope.cancel()
        assert LeaseChange.LOST not in a.listener.changes

    clock.run(play)


def test_who_leaves_says_so_at_once() -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a = Replica("a", server, clock)
        now = a.membership.statistics()
        assert (now.replicas, now.shards, now.held, now.rebalances, now.blocked) == (1, 4, 0, 0, False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.membership.run)
            await anyio.sleep(10 * PERIOD)
            assert a.membership.statistics().rebalances == 1
            a.membership.leave()
            await eventually_in(
                0.1, lambda: server.leases["app-replica-a"]["metadata"]["labels"][roster.REPLICA] == roster.WAITING
            )
            tasks.cancel_scope.cancel()

    clock.run(play)


def test_who_finds_its_own_lease_gone_takes_nothing_before_it_has_looked_again() -> None:
    """The others may have seen nobody meanwhile, and gone to work with another number of shards."""
    server, clock = served(), VirtualClock()
    before_each_look: dict[str, set[bool]] = {"POST": set(), "PUT": set()}
    made: list[float] = []

    async def play() -> None:
        a = Replica("a", server, clock)

        def note(request: ApiRequest) -> None:
            last = server.requests[-2].split()[0] if len(server.requests) > 1 else ""
            if server.requests[-1] == "GET" and last in before_each_look:
                before_each_look[last].add(a.roster.may_claim(clock.elapsed()))
            if server.requests[-1] in ("POST", "GET app-replica-a"):
                made.append(clock.elapsed())

        server.fault = note
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.membership.run)
            await anyio.sleep(3 * PERIOD)
            server.delete("app-replica-a")
            await anyio.sleep(3 * PERIOD)
            tasks.cancel_scope.cancel()

    clock.run(play)
    assert server.requests.count("POST") == 2
    assert before_each_look == {"POST": {False}, "PUT": {True}}
    assert made[1] == made[2], "it is made anew as soon as it is known to be gone"


def test_what_a_replica_writes_says_since_when_it_is_there_and_is_renewed_each_period() -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a = Replica("a", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.membership.run)
            await anyio.sleep(100)
            spec = server.leases["app-replica-a"]["spec"]
            assert spec == {
                "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": micro_time(START), "renewTime": spec["renewTime"],
            }  # fmt: skip
            assert micro_time(START + timedelta(seconds=98)) <= spec["renewTime"] <= micro_time(clock.now())
            assert 100 / PERIOD <= server.requests.count("PUT app-replica-a") < 100 / (0.6 * PERIOD)
            tasks.cancel_scope.cancel()

    clock.run(play)


def test_a_replica_that_may_not_write_its_lease_says_so_once_takes_nothing_and_counts_the_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, clock, refuses = served(), VirtualClock(), True
    server.fault = lambda request: 403 if refuses and request.method == "POST" else None

    async def play() -> None:
        nonlocal refuses
        a = Replica("a", server, clock)
        assert a.membership.unreached_for == 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.run)
            await anyio.sleep(100)
            assert a.held == []
            assert a.membership.unreached_for == pytest.approx(100, abs=PERIOD)
            assert "as the test wants it" in a.membership.problem
            refuses = False
            await eventually_in(10, lambda: a.held == [0, 1, 2, 3])
            assert a.membership.problem == ""
            assert a.membership.unreached_for <= PERIOD
            tasks.cancel_scope.cancel()
        assert a.listener.refusals > 10

    with caplog.at_level(logging.INFO):
        clock.run(play)
    told = [record.message for record in caplog.records if "the leases of the shards of app" in record.message]
    assert len(told) == 2
    assert "as the test wants it" in told[0]
    assert told[1].endswith("can be read and written again")


def test_replicas_of_another_number_of_shards_are_waited_for_and_that_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, clock = served(), VirtualClock()

    async def play() -> None:
        a, b = Replica("a", server, clock), Replica("b", server, clock, shards=2)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.run)
            await eventually_in(10, lambda: a.held == [0, 1, 2, 3])
            tasks.start_soon(b.run)
            await anyio.sleep(60)
            assert (a.held, b.held) == ([0, 1, 2, 3], [])
            assert b.membership.statistics().blocked
            a.stop()
            await anyio.sleep(PERIOD)
            a.end()
            await eventually_in(60, lambda: b.held == [0, 1])
            assert not b.membership.statistics().blocked
            tasks.cancel_scope.cancel()

    clock.run(play)
    assert caplog.text.count("others split the keys otherwise: a (4 shards)") == 1
