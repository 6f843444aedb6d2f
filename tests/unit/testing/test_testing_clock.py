from __future__ import annotations

import asyncio
from datetime import timedelta

import anyio
import pytest

from kopylite.testing.clock import START, Stuck, VirtualClock


def test_it_stands_still_until_it_is_advanced() -> None:
    clock = VirtualClock()
    assert (clock.monotonic(), clock.now()) == (0.0, START)
    clock.advance(90.0)
    assert (clock.monotonic(), clock.now()) == (90.0, START + timedelta(seconds=90))
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1.0)


def test_sleeps_and_timeouts_of_asyncio_and_anyio_take_virtual_time_only() -> None:
    clock = VirtualClock()

    async def main() -> list[float]:
        moments = []
        await asyncio.sleep(3600)
        moments.append(clock.monotonic())
        with anyio.move_on_after(60):
            await anyio.sleep_forever()
        moments.append(clock.monotonic())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        moments.append(asyncio.get_running_loop().time())
        return moments

    assert clock.run(main) == pytest.approx([3600.0, 3660.0, 3665.0])


def test_tasks_wake_in_the_order_of_their_times() -> None:
    clock = VirtualClock()
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(clock.monotonic())

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for seconds in (30.0, 10.0, 20.0, -1.0):
                group.start_soon(sleeper, seconds)

    clock.run(main)
    assert woken == [0.0, 10.0, 20.0, 30.0]


def test_advancing_by_hand_fires_the_timers_that_fall_into_it() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(clock.sleep, 10.0)
            await asyncio.sleep(0)
            clock.advance(15.0)
        assert clock.monotonic() == 15.0

    clock.run(main)


def test_sockets_still_work() -> None:
    clock = VirtualClock()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()
        await writer.wait_closed()

    async def main() -> bytes:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            found = await reader.read()
            writer.close()
            await writer.wait_closed()
            return found

    assert clock.run(main) == b"hello\n"


@pytest.mark.leaves("what is stuck")
def test_a_deadlock_is_an_error_and_not_a_test_that_hangs() -> None:
    with pytest.raises(Stuck, match="no timer is set"):
        VirtualClock().run(asyncio.Event().wait)


def test_random_numbers_and_ids_are_even_and_the_same_each_time() -> None:
    numbers = [VirtualClock().random(), *(clock := VirtualClock(), clock.random())[1:]]
    assert numbers[0] == numbers[1]
    clock = VirtualClock()
    many = sorted(clock.random() for _ in range(1000))
    assert all(abs(number - index / 1000) < 0.01 for index, number in enumerate(many))
    assert VirtualClock().uuid() == VirtualClock().uuid()
    assert clock.uuid() != clock.uuid()


def test_who_waits_until_nearly_the_same_time_as_another_is_not_woken_before_it() -> None:
    clock = VirtualClock()
    early = [0]

    async def wait_until(moment: float) -> None:
        while clock.monotonic() < moment:
            try:
                async with asyncio.timeout_at(moment):
                    await asyncio.Event().wait()
            except TimeoutError:
                early[0] += clock.monotonic() < moment
                assert early[0] < 9

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for moment in (359.9999999999891, 360.0, 360.0, 360.0, 360.0000000001):
                group.start_soon(wait_until, moment)

    clock.run(main)
    assert early == [0]
    assert clock.monotonic() == 360.0000000001
