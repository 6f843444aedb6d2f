"""A term of the elector, in virtual time: who is told what, when leader work ends, and what the Lease says then."""

from __future__ import annotations

import anyio
import pytest

from kopylite.leaderelection.observer import LeaseChange
from kopylite.leaderelection.term import OVERDUE
from kopylite.testing.clock import VirtualClock
from tests.unit.leaderelection.leaseserver import LATE, LeaseServer
from tests.unit.leaderelection.process import Process, leading, played, renewed, until

TAKEN, GIVEN_BACK, LOST = LeaseChange.TAKEN, LeaseChange.GIVEN_BACK, LeaseChange.LOST


def test_who_ends_its_work_tells_it_while_the_lease_is_still_its_own_and_another_one_follows_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two = Process("one", server, clock), Process("two", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 0.1)
            tasks.start_soon(two.elector.run, two.work)
            await anyio.sleep(100)
            assert (one.elector.leading, two.elector.leading, two.elector.holder) == (True, False, "one")
            assert 100 / 2.2 - 1 < server.requests.count("PUT a") < 100 / 1.8 + 2, "a renewal each period, and no more"
            assert one.told == [(TAKEN, "one")]
            one.over.set()
            await until(lambda: two.terms, 0.2)
            assert not one.elector.leading, "no write of its passes from here on"
            assert one.told == [(TAKEN, "one"), (GIVEN_BACK, "one"), ("ending", "one")]
            assert one.notes == ["one became leader", "one stopped leading"]
            await anyio.sleep(50)
            assert len(one.terms) == len(two.terms) == 1
            assert server.leases["a"]["spec"]["leaseTransitions"] == 1
            one.end()
            two.end()

    server = played(play)
    spec = server.leases["a"]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 1)
    assert spec["acquireTime"] == spec["renewTime"], "which says that its holder gave it back"
    assert not caplog.records, "nothing of this is a matter of a warning"


def test_who_has_led_leaves_the_lease_to_others_for_a_while_and_does_not_wait_when_it_is_stopped() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            for _ in range(5):
                await until(lambda: len(one.terms) > len(one.ended), 5)
                one.over.set()
                await until(lambda: len(one.terms) == len(one.ended), 1)
            gaps = [begun - ended for begun, ended in zip(one.terms[1:], one.ended, strict=False)]
            assert all(2 <= gap <= 4.2 for gap in gaps), gaps
            await anyio.sleep(0.5)
            assert server.requests.count("PUT a") == 2 * 5, "a claim and a release each"
            stopped = clock.elapsed()
            one.elector.stop()
        assert clock.elapsed() == stopped

    played(play)


@pytest.mark.parametrize("trouble", ["cut", 500, 409])
def test_a_leader_whose_writes_fail_stops_at_its_deadline_and_another_begins_when_the_lease_has_run_out(
    trouble: str | int, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two = Process("one", server, clock), Process("two", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            tasks.start_soon(two.elector.run, two.work)
            await until(lambda: one.terms, 1)
            await anyio.sleep(20)
            before = renewed(server)
            server.fault = lambda request: (
                trouble if request.method == "PUT" and clock.elapsed() < before + 14 else None
            )
            await until(lambda: one.ended)
            assert one.ended[0] == pytest.approx(before + 10, abs=1e-3)
            assert not one.elector.leading
            one.elector.stop()
            await until(lambda: two.terms)
            assert [change for change, _ in one.told] == [TAKEN, LOST]
            assert one.notes[1].startswith("one stopped leading: it was not renewed for 10 s")
            assert before + 15 <= two.terms[0] < before + 15 + 2 * 2.2
            two.end()

    played(play)
    assert [record.message for record in caplog.records if "is lost: it was not renewed" in record.message]


def test_a_leader_whose_lease_names_somebody_else_ends_its_work_at_the_next_renewal_and_waits_as_all_do() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            server.hand_to("somebody")
            await until(lambda: one.ended, 2.3)
            assert one.told == [(TAKEN, "one"), (LOST, "somebody")]
            assert one.notes[1] == "one stopped leading: it names somebody now"
            assert server.holders() == {"a": "somebody"}, "what is not its own, it does not give back"
            await until(lambda: len(one.terms) == 2)
            assert one.terms[1] - one.ended[0] >= 15
            assert one.told[2:] == [(TAKEN, "one")]
            one.end()

    played(play)


@pytest.mark.parametrize("trouble", ["somebody else has it", "no renewal is answered"])
def test_a_lease_that_is_lost_after_the_work_while_the_last_events_are_sent_has_ended_in_order_and_only_so(
    trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            one.ending_takes = 60
            one.over.set()
            await until(lambda: one.ended, 0.1)
            if trouble == "somebody else has it":
                server.hand_to("somebody")
            else:
                server.fail("PUT", "cut")
            await until(lambda: not one.elector.leading, 10.1)
            assert one.elector.overdue == 0, "no work goes on"
            await anyio.sleep(5)
            assert one.told == [(TAKEN, "one"), (GIVEN_BACK, "one")], "the rest of the Events is not waited for"
            one.end()

    played(play)
    assert "is lost" not in " ".join(record.message for record in caplog.records if record.levelname != "INFO")


def test_a_loss_that_is_found_twice_is_told_once_and_nothing_of_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            server.hand_to("somebody")
            server.fail("GET", "late")  # so that the look at who has it ends after the deadline
            await until(lambda: one.told[1:] == [(LOST, "somebody")], 2.3 + LATE)
            await anyio.sleep(3 * OVERDUE)
            one.end()

    played(play)
    assert len([each for each in caplog.messages if "is lost" in each]) == 1
    assert caplog.messages[-1].endswith("all leader work has ended")


def test_work_that_fails_when_its_lease_is_lost_is_told_as_lost_too() -> None:
    async def fail_at_the_end() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("broken")

    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hand_over, server)
            with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
                await one.elector.run(fail_at_the_end)
        assert one.told == [(TAKEN, "one"), (LOST, "somebody")]

    async def hand_over(server: LeaseServer) -> None:
        await until(server.holders, 1)
        server.hand_to("somebody")

    played(play)


def test_one_that_was_deposed_and_stands_back_does_not_lead_for_the_rest_of_its_time() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            server.hand_to("somebody")
            await until(lambda: one.ended, 2.3)
            await anyio.sleep(4.5)
            one.elector.stand_back()
            await anyio.sleep(60)
            assert len(one.terms) == 1
            one.end()

    played(play)


def test_a_renewal_that_meets_the_write_of_somebody_else_is_repeated_at_once() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        async with leading(server, clock) as (one, _):
            server.label(team="red")
            server.requests.clear()
            await anyio.sleep(2.3)
            assert server.requests == ["PUT a", "GET a", "PUT a"]
            assert server.leases["a"]["metadata"]["labels"] == {"team": "red"}
            assert one.elector.problem == ""
            one.end()

    played(play)


class Sleeper(VirtualClock):
    """The clock of a machine that was asleep for a while, which timers do not count."""

    asleep = 0.0

    def elapsed(self) -> float:
        return self.monotonic() + self.asleep


def test_a_leader_whose_machine_was_asleep_has_lost_its_lease_when_it_wakes() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        assert isinstance(clock, Sleeper)
        async with leading(server, clock) as (one, _):
            server.requests.clear()
            clock.asleep = 60
            assert not one.elector.leading, "no write passes from the first moment on"
            await until(lambda: one.ended, 2.3)
            await until(lambda: one.told[1:] == [(LOST, "one")], 0.2)
            assert (server.requests, server.holders()) == (["PUT a"], {}), "it is given back, and not renewed"
            assert one.notes[1] == "one stopped leading: it was not renewed for 10 s"
            one.end()

    played(play, clock=Sleeper())


def test_a_leader_whose_lease_is_deleted_makes_it_anew_and_goes_on() -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two = Process("one", server, clock), Process("two", server, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 1)
            tasks.start_soon(two.elector.run, two.work)
            await anyio.sleep(10)
            server.delete("a")
            await until(lambda: server.holders() == {"a": "one"}, 3)
            await anyio.sleep(60)
            assert (one.told, one.ended, two.terms) == ([(TAKEN, "one")], [], [])
            one.end()
            two.end()

    played(play)


def test_work_that_does_not_heed_its_cancellation_is_told_of_again_and_again_until_it_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one = Process("one", server, clock)
        one.stubborn = 3.5 * OVERDUE
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.elector.run, one.work)
            await until(lambda: one.terms, 1)
            assert one.elector.overdue == 0
            server.hand_to("somebody")
            await until(lambda: not one.elector.leading, 3)
            lost = clock.elapsed()
            await anyio.sleep(OVERDUE)
            assert one.elector.overdue == pytest.approx(clock.elapsed() - lost, abs=0.1)
            await until(lambda: one.ended)
            await anyio.sleep(3 * OVERDUE)
            assert one.elector.overdue == 0
            assert one.told[:2] == [(TAKEN, "one"), (LOST, "somebody")], "it is no orderly end"
            one.stubborn = 0
            one.end()

    played(play)
    told = [record.args for record in caplog.records if "leader work goes on" in record.message]
    assert [round(args[1]) for args in told if isinstance(args, tuple)] == [5, 10, 15]  # type: ignore[call-overload]
    assert caplog.messages[-1].endswith("all leader work has ended")


def test_work_that_fails_or_is_cancelled_gives_the_lease_back_and_is_no_lost_one() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async def play(server: LeaseServer, clock: VirtualClock) -> None:
        one, two = Process("one", server, clock), Process("two", server, clock)
        with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
            await one.elector.run(fail)
        assert one.told == [(TAKEN, "one")]
        assert server.holders() == {}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(two.elector.run, two.work)
            await until(lambda: two.terms, 1)
            tasks.cancel_scope.cancel()
        assert two.told == [(TAKEN, "two")]
        assert server.holders() == {}

    played(play)
