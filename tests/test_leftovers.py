"""The net itself: each kind of leftover is found and named with the place where it was made."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvloop

from tests.leftovers import Loops, Process

FACTORIES: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}


LeftBy = Callable[..., list[str]]


@pytest.fixture
def left_by(watched_loops: Loops) -> LeftBy:
    """What an event loop of its own leaves."""

    def run(main: Callable[[], Awaitable[object]], factory: str = "asyncio") -> list[str]:
        async def awaited() -> object:
            return await main()

        with asyncio.Runner(loop_factory=FACTORIES[factory]) as runner:
            kept = runner.run(awaited())
        del kept
        return watched_loops.taken()

    return run


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_task_is_named_with_where_it_stands_and_where_it_was_made(left_by: LeftBy, factory: str) -> None:
    async def main() -> object:
        task = asyncio.create_task(asyncio.sleep(3600), name="sleeper")
        await asyncio.sleep(0)
        return task

    found = left_by(main, factory)
    assert len(found) == 2, found
    assert found[0].startswith("task sleeper of sleep at ")
    assert "made at tests/test_leftovers.py:" in found[0]
    assert "timer for" in found[1]


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_timer_is_named_and_one_that_fired_or_was_cancelled_is_not(left_by: LeftBy, factory: str) -> None:
    def late() -> None: ...

    async def main() -> object:
        loop = asyncio.get_running_loop()
        loop.call_later(0, late)
        loop.call_later(3600, print).cancel()
        await asyncio.sleep(0.02)
        return loop.call_later(3600, late)

    (found,) = left_by(main, factory)
    assert "late" in found
    assert "test_leftovers.py" in found


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_waiter_that_somebody_keeps_is_named(left_by: LeftBy, factory: str) -> None:
    kept: list[Any] = []

    async def main() -> None:
        kept.append(asyncio.get_running_loop().create_future())
        asyncio.get_running_loop().create_future()  # nobody has this one

    (found,) = left_by(main, factory)
    assert found.startswith("future that nobody completes, made at tests/test_leftovers.py:")


def test_an_asynchronous_generator_that_is_not_closed_is_named(left_by: LeftBy) -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    kept = []

    async def main() -> None:
        kept.append(numbers())
        await anext(kept[0])

    (found,) = left_by(main)
    assert "numbers at line" in found


def test_a_tidy_loop_leaves_nothing(left_by: LeftBy) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        async with asyncio.timeout(5):
            await asyncio.sleep(0)

    assert left_by(main) == []


def leave_handler() -> Callable[[], None]:
    handler, logger = logging.NullHandler(), logging.getLogger("kopylite.left")
    logger.addHandler(handler)
    return lambda: logger.removeHandler(handler)


def leave_signal() -> Callable[[], object]:
    old = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    return lambda: signal.signal(signal.SIGUSR2, old)


def leave_variable() -> Callable[[], object]:
    os.environ["KOPYLITE_LEFT"] = "x"
    return lambda: os.environ.pop("KOPYLITE_LEFT")


def leave_file() -> Callable[[], None]:
    return tempfile.TemporaryFile().close


def leave_socket() -> Callable[[], None]:
    return socket.socket().close


def leave_thread() -> Callable[[], None]:
    go = threading.Event()
    threading.Thread(target=go.wait, name="left").start()
    return go.set


@pytest.mark.parametrize(
    ("leave", "named"),
    [
        (leave_handler, "handlers of logger kopylite.left"),
        (leave_signal, "handler of SIGUSR2"),
        (leave_variable, "environment variable KOPYLITE_LEFT"),
        (leave_file, "open /"),
        (leave_socket, "open socket:["),
        (leave_thread, "thread left (Event.wait)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_left_in_the_process_is_named(
    leave: Callable[[], Callable[[], None]], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.leftovers.PATIENCE", 0.0)
    before = Process()
    undo = leave()
    try:
        (found,) = before.left()
    finally:
        undo()
    assert found.startswith(named)
    monkeypatch.undo()
    assert before.left() == []


def test_what_a_loop_of_others_opens_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.leftovers.PATIENCE", 0.0)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        before = Process([loop])
        (ours, theirs) = socket.socketpair()
        loop.add_reader(theirs.fileno(), bool)
        try:
            assert [name.partition("[")[0] for name in before.left()] == ["open socket:"]
            ours.close()
            assert before.left() == []
        finally:
            loop.remove_reader(theirs.fileno())
            theirs.close()


def test_a_worker_of_a_loop_of_others_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.leftovers.PATIENCE", 0.0)
    with asyncio.Runner() as runner:
        before, known = Process([runner.get_loop()]), Process()
        runner.run(asyncio.to_thread(bool))
        assert before.left() == []
        assert known.left() == ["thread asyncio_0 (_worker)"]
