from __future__ import annotations

import gc
import json
import logging
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite.controller import Controller, ControllerSpec
from kopylite.diagnostics import JsonFormatter, TextFormatter, forgotten_awaits
from kopylite.objects import Kind
from kopylite.reconcile import Context, Environment, Request
from kopylite.testing.clock import VirtualClock

if TYPE_CHECKING:
    from kopylite.client import Client


async def delete(name: str) -> None:
    await anyio.lowlevel.checkpoint()


async def throws_it_away(ctx: Context, request: Request) -> None:
    delete("a")  # type: ignore[unused-coroutine]


async def keeps_it_to_the_end(ctx: Context, request: Request) -> None:
    answer = delete("a")  # noqa: F841
    await anyio.lowlevel.checkpoint()


async def awaits_it(ctx: Context, request: Request) -> None:
    await delete("a")


Behaviour = Callable[[Context, Request], Awaitable[None]]


def failures_of(behaviour: Behaviour, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The error lines of two runs of a key."""
    clock = VirtualClock()
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=behaviour)
    controller = Controller(spec, Environment("widget", cast("Client", None), clock=clock))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(controller.run)
            for _ in range(2):
                controller.enqueue(Request("ns", "a"), "created")
                await anyio.sleep(0.001)
            await controller.drain(10)

    with forgotten_awaits():
        clock.run(main)
    return [record for record in caplog.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize("behaviour", [throws_it_away, keeps_it_to_the_end])
def test_a_forgotten_await_is_an_error_of_its_run_and_its_line_is_known_the_second_time(
    behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, *_ = failures_of(behaviour, caplog)
    assert "delete(...) was called without await" in first.getMessage()
    line = behaviour.__code__.co_firstlineno + 1
    text = f"delete(...) was called without await at {__file__}:{line} in {behaviour.__name__}, so"
    assert text in second.getMessage()
    assert text in TextFormatter().format(second)
    for record in (first, second):
        entry = json.loads(JsonFormatter().format(record))
        assert (entry["namespace"], entry["name"], entry["level"]) == ("ns", "a", "error")
    assert text in entry["msg"]


def test_the_first_one_has_the_line_too_if_it_is_thrown_away_there(caplog: pytest.LogCaptureFixture) -> None:
    first, *_ = failures_of(throws_it_away, caplog)
    line = throws_it_away.__code__.co_firstlineno + 1
    assert f"was called without await at {__file__}:{line} in throws_it_away or before, so" in first.getMessage()


def test_the_first_one_names_no_line_of_the_runtime(caplog: pytest.LogCaptureFixture) -> None:
    first, *_ = failures_of(keeps_it_to_the_end, caplog)
    assert "delete(...) was called without await (where, is told the next time), so" in first.getMessage()


def test_where_coroutines_are_made_is_not_kept_before_one_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    before = sys.get_coroutine_origin_tracking_depth()
    with forgotten_awaits():
        assert sys.get_coroutine_origin_tracking_depth() == before
        delete("a")  # type: ignore[unused-coroutine]
        assert sys.get_coroutine_origin_tracking_depth() == max(before, 1)
    assert sys.get_coroutine_origin_tracking_depth() == before


def test_what_is_awaited_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    assert failures_of(awaits_it, caplog) == []


def test_outside_of_a_run_and_of_the_garbage_collector_it_is_a_line_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with forgotten_awaits():
        delete("a")  # type: ignore[unused-coroutine]
        circle: list[object] = [delete("b")]
        circle.append(circle)
        del circle
        gc.collect()
    assert caplog.text.count("delete(...) was called without await at ") == 2


def test_of_one_that_the_garbage_collector_finds_first_no_line_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with forgotten_awaits():
        circle: list[object] = [delete("b")]
        circle.append(circle)
        del circle
        gc.collect()
    assert "delete(...) was called without await (where, is told the next time)" in caplog.text


def test_the_process_is_left_as_it_was(recwarn: pytest.WarningsRecorder) -> None:
    before = (warnings.showwarning, [*warnings.filters], sys.get_coroutine_origin_tracking_depth(), [*gc.callbacks])
    with forgotten_awaits(), forgotten_awaits():
        warnings.warn("another warning", UserWarning, stacklevel=1)
    assert before == (
        warnings.showwarning,
        [*warnings.filters],
        sys.get_coroutine_origin_tracking_depth(),
        [*gc.callbacks],
    )
