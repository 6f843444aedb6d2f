"""A campaign of the elector, in virtual time: what it asks for, tells and waits for until it leads; and giving back."""

from __future__ import annotations

import logging

import anyio
import pytest

from kopylite.client import ApiRequest
from kopylite.leaderelection import LeaseChange
from kopylite.leaderelection.lease import Lease
from kopylite.testing.clock import VirtualClock
from tests.unit.leaderelection.leaseserver import LeaseServer
from tests.unit.leaderelection.process import ENDING, Process, leading, played, until

WARNING = logging.WARNING


def is_watch(request: ApiRequest) -> bool:
    return "watch" in request.params


def test_where_there_is_no_lease_one_is_made_that_names_nobody_and_claimed_when_it_was_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        await anyio.sleep(100)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: server.leases, 5)
            made = clock.elapsed()
            await until(lambda: one.terms)
            assert 14.9 < one.terms[0] - made < 15.1
            one.end()

    with caplog.at_level(logging.INFO):
        server = played(play, lease=False)
    assert server.requests.count("POST") == 1
    told = [record.args for record in caplog.records if "names nobody" in record.message]
    assert [each[1] for each in told if isinstance(each, tuple)] == [pytest.approx(15)]


def test_whom_it_stands_by_for_is_told_once_of_each(caplog: pytest.LogCaptureFixture) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two, three = (Process(name, server, clock) for name in ("one", "two", "three"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 1)
            tasks.start_soon(three.elector.run, three.work)
            await anyio.sleep(60)
            assert told() == ["one"]
            three.end()
            tasks.start_soon(two.elector.run, two.work)
            await anyio.sleep(5)
            one.over.set()
            await until(lambda: two.terms, 1)
            await anyio.sleep(60)
            assert told() == ["one", "one", "two"]
            two.over.set()
            await until(lambda: len(one.terms) == 2, 1)
            await anyio.sleep(60)
            assert told() == ["one", "one", "two", "one"], "after a term of its own it says so again"
            one.end()
            two.end()

    def told() -> list[str]:
        args = [record.args for record in caplog.records if "standing by" in record.message]
        return [str(each[1]) for each in args if isinstance(each, tuple)]

    with caplog.at_level(logging.INFO):
        played(play)


@pytest.mark.parametrize("trouble", [403, 500, "cut"])
def test_a_lease_that_cannot_be_read_is_told_of_once_counted_and_told_of_when_it_can_be(
    trouble: int | str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        server.fault = lambda request: None if is_watch(request) else trouble
        await anyio.sleep(50)
        assert one.elector.unreached_for == 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await anyio.sleep(100)
            assert one.elector.unreached_for == pytest.approx(100)
            assert one.elector.problem
            assert [record.levelno for record in caplog.records] == [WARNING], "what goes on is told once"
            assert {what for what, _ in one.told} == ({"forbidden"} if trouble == 403 else set())
            assert len(server.requests) < 100
            server.fault = lambda request: None
            await until(lambda: one.terms, 10)
            assert one.elector.problem == ""
            await anyio.sleep(100)
            assert one.elector.unreached_for < 2.3
            one.end()
        assert sum("again" in record.message for record in caplog.records) == 1, "and when it is over"

    with caplog.at_level(logging.INFO):
        played(play)


def test_who_may_not_watch_is_told_so_once_and_finds_a_free_lease_by_looking() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        server.fault = lambda request: 403 if is_watch(request) else None
        one, two = Process("one", server, clock), Process("two", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 1)
            tasks.start_soon(two.elector.run, two.work)
            await anyio.sleep(100)
            assert [what for what, _ in two.told] == ["forbidden"]
            assert (two.elector.holder, two.elector.problem) == ("one", "")
            asked = server.requests.count("GET a")
            one.end()
            await until(lambda: two.terms, 2 * 2.2)
            assert 100 / 4.4 - 2 < asked < 100 / 2 + 2
            two.end()

    server = played(play)
    assert server.requests.count("WATCH a") == 2, "once for each"


def test_a_watch_that_breaks_is_begun_again_after_a_while() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two = Process("one", server, clock), Process("two", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 1)
            before = server.requests.count("WATCH a")
            server.fault = lambda request: 500 if is_watch(request) else None
            tasks.start_soon(two.elector.run, two.work)
            await anyio.sleep(100)
            assert 100 / 4 - 2 < server.requests.count("WATCH a") - before < 100 / 2 + 2
            server.fault = lambda request: None
            await anyio.sleep(5)
            one.end()
            await until(lambda: two.terms, 0.2)
            two.end()

    played(play)


@pytest.mark.parametrize(("trouble", "asks"), [(403, []), (500, ["GET a"])])
def test_a_claim_that_was_refused_needs_no_giving_back_and_one_that_may_be_carried_out_does(
    trouble: int, asks: list[str]
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        server.fail("PUT", trouble)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.elector.problem, 1)
            server.requests.clear()
            one.elector.stop()
        assert server.requests == asks

    played(play)


def test_a_claim_whose_answer_was_lost_is_ones_own_and_those_that_go_on_like_that_are_no_storm() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        server.fail("PUT", "lost")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await anyio.sleep(60)
            assert server.holders() == {"a": "one"}
            assert (one.terms, one.elector.holder) == ([], "one")
            assert 60 / 4.4 - 2 < server.requests.count("PUT a") < 60
            server.fault = lambda request: None
            await until(lambda: one.terms, 2 * 2.2)
            one.end()

    assert played(play).holders() == {}


def test_one_that_comes_back_under_its_old_name_waits_as_any_other() -> None:
    """Two may have one name, by an accident: what this one has not written itself, somebody else may lead by."""

    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, again = Process("one", server, clock), Process("one", server, clock)
        async with anyio.create_task_group() as tasks:
            async with anyio.create_task_group() as life:
                life.start_soon(one.elector.run, one.work)
                await anyio.sleep(10)
                one.line.cut = True
                life.cancel_scope.cancel()
            ended = clock.elapsed()
            tasks.start_soon(again.elector.run, again.work)
            await until(lambda: again.terms)
            assert ended + 15 <= again.terms[0] < ended + 15.1
            assert server.leases["a"]["spec"]["leaseTransitions"] == 0, "its name is the same"
            again.end()

    played(play)


def test_one_that_does_not_stand_asks_for_nothing_and_knows_what_others_have_read() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two = Process("one", server, clock), Process("two", server, clock, standing=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 1)
            server.requests.clear()
            tasks.start_soon(two.elector.run, two.work)
            await anyio.sleep(0.5)
            assert (server.requests, two.elector.unreached_for, two.elector.holder) == ([], 0, "")
            two.elector.saw(await two.read())
            assert two.elector.holder == "one"
            one.end()
            await anyio.sleep(20)
            assert two.terms == []
            two.elector.stand()
            await until(lambda: two.terms, 0.1)
            two.elector.saw(Lease("somebody", 1, "", "", 0, {"metadata": {}}))
            assert two.elector.holder == "two", "who stands looks itself"
            two.elector.stand_back()
            await anyio.sleep(60)
            assert server.holders() == {"a": "two"}, "it goes on until its work has ended"
            two.over.set()
            await anyio.sleep(60)
            assert (server.holders(), len(two.terms), two.elector.unreached_for) == ({}, 1, 0)
            two.elector.stand()
            await until(lambda: len(two.terms) == 2, 5)
            two.end()
        assert [what for what, _ in two.told if what != "ending"] == [LeaseChange.TAKEN, LeaseChange.GIVEN_BACK] * 2

    played(play)


def test_a_claim_that_was_on_its_way_when_one_stood_back_is_given_back() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        server.fail("PUT", "lost, slowly")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(server.holders, 1)
            server.fault = lambda request: None
            one.elector.stand_back()
            await until(lambda: not server.holders(), 0.2)
            await anyio.sleep(60)
            assert (server.holders(), one.terms) == ({}, [])
            one.elector.stop()

    played(play)


def test_a_lease_is_claimed_only_if_its_owner_agrees(caplog: pytest.LogCaptureFixture) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        agreed = False
        one = Process("one", server, clock, may_claim=lambda: agreed)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await anyio.sleep(60)
            assert (server.holders(), one.elector.problem) == ({}, "")
            assert not caplog.records, "a free Lease is nothing to tell of"
            agreed = True
            await until(lambda: one.terms, 2 * 2.2)
            one.end()

    with caplog.at_level(logging.INFO):
        played(play)


@pytest.mark.parametrize(("after", "holder", "told"), [(14.9, "one", 1), (15.0, "", 0)])
def test_while_a_write_without_an_answer_may_yet_be_carried_out_the_lease_runs_out_by_itself(
    after: float, holder: str, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)

        async def work() -> None:
            one.elector.fence.doubt()
            await anyio.sleep(after - ENDING)
            one.elector.stop()

        await one.elector.run(work)

    assert played(play).leases["a"]["spec"]["holderIdentity"] == holder
    assert sum("is left to run out" in record.message for record in caplog.records) == told


def test_a_lease_to_which_somebody_writes_is_given_back_all_the_same() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            server.label(team="red")
            one.end()

    server = played(play)
    assert server.holders() == {}
    assert server.leases["a"]["metadata"]["labels"] == {"team": "red"}


@pytest.mark.parametrize(("trouble", "seconds", "tries"), [("cut", 5, 1), (500, 0, 1), (403, 0, 1), (409, 0, 3)])
def test_a_lease_that_cannot_be_given_back_is_told_of_once_and_holds_nobody_up(
    trouble: int | str, seconds: float, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (_, tasks):
            server.fail("PUT", trouble)
            server.requests.clear()
            tasks.cancel_scope.cancel()
            began = clock.elapsed()
        assert clock.elapsed() - began == pytest.approx(seconds)
        assert server.requests.count("PUT a") == tries

    assert played(play).holders() == {"a": "one"}
    assert sum("could not be given back" in record.message for record in caplog.records) == 1


def test_what_is_not_ones_own_any_more_is_not_given_back_and_no_matter_of_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            server.hand_to("somebody")
            server.requests.clear()
            one.end()
        assert server.requests == ["PUT a", "GET a"]

    assert played(play).holders() == {"a": "somebody"}
    assert not caplog.records


def test_an_elector_that_was_stopped_before_it_ran_asks_for_nothing() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        one.elector.stop()
        await one.elector.run(one.work)

    assert played(play).requests == []
