"""How many requests are on their way, and what those are told that wait."""

from __future__ import annotations

import anyio
import pytest

from kopylite.client.lanes import LONGEST_WAIT, NOTICE, REPEAT, Lane
from kopylite.errors import ConnectionFailed
from kopylite.testing.clock import VirtualClock


def test_turns_are_given_in_the_order_of_their_asking_and_never_more_than_there_are() -> None:
    clock, order, now, most = VirtualClock(), list[int](), 0, 0

    async def main() -> None:
        lane = Lane("requests", 2, clock)

        async def ask(number: int) -> None:
            nonlocal now, most
            waited = await lane.enter()
            assert waited == number // 2 * 10.0
            order.append(number)
            now, most = now + 1, max(most, now + 1)
            await anyio.sleep(10)
            now -= 1
            lane.leave()

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(ask, number)

    clock.run(main)
    assert order == [0, 1, 2, 3, 4, 5]
    assert most == 2


def test_who_gets_no_turn_is_told_whose_limit_it_is_and_takes_no_turn_later(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()

    async def main() -> None:
        lane = Lane("requests", 1, clock)
        await lane.enter()
        with pytest.raises(ConnectionFailed, match=r"no turn within 300 s\. All 1 connections .* for requests"):
            await lane.enter()
        assert clock.monotonic() == LONGEST_WAIT
        with anyio.move_on_after(5):
            await lane.enter()
        lane.leave()
        assert await lane.enter() == 0.0, "neither who gave up nor who was cancelled has it"

    clock.run(main)
    assert "max_connections" in caplog.text


def test_a_long_wait_is_one_line_a_minute_however_many_wait(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()

    async def main() -> None:
        lane = Lane("requests", 1, clock)
        await lane.enter()
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(lane.enter)
            await anyio.sleep(NOTICE - 1)
            assert not caplog.records
            await anyio.sleep(2)
            assert [message.split(".")[0] for message in caplog.messages] == [
                "50 requests wait for a connection, one for 5 s"
            ]
            await anyio.sleep(REPEAT)
            tasks.start_soon(lane.enter)
            await anyio.sleep(NOTICE + 1)
            tasks.cancel_scope.cancel()

    clock.run(main)
    assert len(caplog.records) == 2


def test_a_short_wait_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()

    async def main() -> None:
        lane = Lane("requests", 1, clock)
        await lane.enter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lane.enter)
            await anyio.sleep(NOTICE - 1)
            lane.leave()
        await anyio.sleep(60)

    clock.run(main)
    assert not caplog.records
