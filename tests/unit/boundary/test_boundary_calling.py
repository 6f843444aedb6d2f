from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

import anyio
import pytest

from kopylite.boundary import (
    MAP,
    PREDICATE,
    CallFailed,
    Guard,
    cancelled_from_outside,
    ends_process,
    in_fresh_context,
    place_of,
)
from kopylite.testing.clock import VirtualClock

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def about() -> str:
    return "ns/a"


def plain(function: Callable[[], Any], results: list[str] | None = None) -> Guard[[], Any]:
    noted = results if results is not None else []
    return Guard(PREDICATE, function, now=lambda: 0.0, observe=noted.append)


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(3), MemoryError(), asyncio.CancelledError(), Unspeakable(), RecursionError()]
)
def test_whatever_a_plain_function_raises_is_counted_told_and_answered(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def function() -> bool:
        raise error

    results: list[str] = []
    assert plain(function, results).call(about, True) is True
    assert results == ["error"]
    assert f"predicate function failed on ns/a: {type(error).__name__}" in caplog.text
    assert "test_boundary_calling.py" in caplog.text
    assert "the event passes" in caplog.text


def test_a_person_can_still_end_the_program() -> None:
    def function() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plain(function).call(about, True)
    assert ends_process(BaseExceptionGroup("", [ValueError(), BaseExceptionGroup("", [KeyboardInterrupt()])]))
    assert not ends_process(BaseExceptionGroup("", [SystemExit(), asyncio.CancelledError()]))


def test_one_cause_is_told_once_and_then_as_a_number(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()

    def function() -> bool:
        raise ValueError("no")

    guard: Guard[[], bool] = Guard(PREDICATE, function, now=clock.monotonic)
    for _ in range(5):
        guard.call(about, True)
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None
    clock.advance(61.0)
    guard.call(about, True)
    assert len(caplog.records) == 2
    assert "4 times more like this" in caplog.text
    assert not caplog.records[1].exc_info


def run(
    function: Callable[[], Awaitable[Any]], *, timeout: float | None = None, results: list[str] | None = None
) -> tuple[Any, float]:
    """What a guarded call gives, or the error that it fails with, and when."""
    clock = VirtualClock()
    noted = results if results is not None else []
    guard: Guard[[], Any] = Guard(MAP, function, now=clock.monotonic, timeout=timeout, observe=noted.append)
    found: list[Any] = []

    async def main() -> None:
        try:
            found.append(await guard.run("ns/a"))
        except CallFailed as failed:
            found.append(failed.error)
        assert guard.active() == []

    clock.run(main)
    return found[0], clock.monotonic()


async def awaits_what_was_cancelled() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def closes_itself() -> None:
    raise GeneratorExit


def returns_no_awaitable() -> Any:
    return None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (awaits_what_was_cancelled, asyncio.CancelledError),
        (closes_itself, RuntimeError),
        (returns_no_awaitable, TypeError),
    ],
)
def test_a_call_that_ends_in_an_odd_way_has_failed_and_nothing_else_has(
    function: Callable[[], Any], expected: type[BaseException]
) -> None:
    results: list[str] = []
    error, _ = run(function, results=results)
    assert isinstance(error, expected)
    assert results == ["error"]


def test_a_call_that_never_returns_is_cancelled_and_counts_as_overdue() -> None:
    results: list[str] = []
    error, ended = run(anyio.sleep_forever, timeout=5.0, results=results)
    assert isinstance(error, TimeoutError)
    assert (ended, results) == (5.0, ["timeout"])


def test_the_calls_in_progress_say_since_when_they_run() -> None:
    clock = VirtualClock()
    guard: Guard[[], None] = Guard(MAP, anyio.sleep_forever, name="sleep", now=clock.monotonic)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guard.run, "ns/a")
            await anyio.sleep(3.0)
            (call,) = guard.active(longer_than=2.0)
            assert (call.what, call.name, call.subject, call.seconds) == ("map function", "sleep", "ns/a", 3.0)
            assert guard.active(longer_than=4.0) == []
            tasks.cancel_scope.cancel()

    clock.run(main)
    assert guard.active() == []


def test_a_cancellation_of_the_task_comes_through() -> None:
    clock = VirtualClock()
    ended: list[str] = []

    async def main() -> None:
        guard: Guard[[], None] = Guard(MAP, anyio.sleep_forever, now=clock.monotonic)
        with anyio.move_on_after(2.0):
            await guard.run("ns/a")
            ended.append("went on")
        ended.append("left")

    clock.run(main)
    assert ended == ["left"]


async def test_context_variables_end_with_the_call_and_its_awaits_share_them() -> None:
    async def function(tenant: str) -> tuple[str, str]:
        before = TENANT.get()
        TENANT.set(tenant)
        await asyncio.sleep(0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep, 0)
        return before, TENANT.get()

    assert await in_fresh_context(function, "x") == ("nobody", "x")
    assert await in_fresh_context(function, "y") == ("nobody", "y")
    assert TENANT.get() == "nobody"


async def test_exceptions_reach_what_is_awaited_inside_of_a_fresh_context() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def function() -> str:
        TENANT.set("x")
        try:
            await future
        except ValueError as error:
            return f"{error} for {TENANT.get()}"
        return "nothing"

    asyncio.get_running_loop().call_soon(future.set_exception, ValueError("no"))
    assert await in_fresh_context(function) == "no for x"


def test_closing_the_coroutine_closes_what_it_awaits() -> None:
    closed: list[str] = []

    async def function() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append("yes")

    async def outer() -> None:
        await in_fresh_context(function)

    coroutine = outer()
    coroutine.send(None)
    coroutine.close()
    assert closed == ["yes"]


async def test_a_stray_cancellation_leaves_no_count_behind() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        assert not cancelled_from_outside()
    assert task.cancelling() == 0


def test_a_failure_that_is_retried_says_when(caplog: pytest.LogCaptureFixture) -> None:
    guard: Guard[[], None] = Guard(MAP, anyio.sleep_forever, name="users_of", now=lambda: 0.0)
    guard.report(CallFailed(ValueError("no")), "ns/a", 1.5)
    assert "map function users_of failed on ns/a: ValueError: no; it is called again in 1.5 s" in caplog.text
    assert caplog.records[0].levelno == logging.ERROR


def raised_in(module: str, filename: str, call: Callable[[], Any]) -> Callable[[], Any]:
    """A function of another file, that calls on."""
    names: dict[str, Any] = {"__name__": module, "call": call}
    exec(compile("def step():\n    return call()\n", filename, "exec"), names)
    return cast("Callable[[], Any]", names["step"])


def parse() -> Any:
    return json.loads("{")


LIBRARY = "/venv/lib/python3/site-packages/http/client.py"
PACKAGE = "/venv/lib/python3/site-packages/shop/operator.py"


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (parse, f"{__file__}:{parse.__code__.co_firstlineno + 1} in parse"),
        (raised_in("kopylite.reconcile.telling", "telling.py", parse), " in parse"),
        (raised_in("shop.operator", PACKAGE, raised_in("http.client", LIBRARY, parse)), " in parse"),
    ],
)
def test_the_place_of_an_error_is_the_users_and_no_librarys(call: Callable[[], Any], place: str) -> None:
    with pytest.raises(ValueError, match="Expecting") as caught:
        call()
    assert place in place_of(caught.value)


def test_an_operator_that_is_a_package_has_a_place_too() -> None:
    call = raised_in("shop.operator", PACKAGE, raised_in("kopylite.client", "c.py", raised_in("http", LIBRARY, parse)))
    with pytest.raises(ValueError, match="Expecting") as caught:
        call()
    error = caught.value
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != PACKAGE:
        trace = trace.tb_next
    assert trace is not None
    assert trace.tb_next is not None
    assert trace.tb_next.tb_next is not None
    trace.tb_next.tb_next.tb_next = None  # without `parse`, which is this file's
    error.__traceback__ = trace
    assert place_of(error) == f"{PACKAGE}:2 in step"
