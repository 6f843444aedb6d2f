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
def test_a_forgotten_await_is_an_error_of_its_run_with_the_line(
    behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    first, *_ = failures_of(behaviour, caplog)
    line = behaviour.__code__.co_firstlineno + 1  # type: ignore[attr-defined]
    text = f"delete(...) was called without await at {__file__}:{line} in {behaviour.__name__}"  # type: ignore[attr-defined]
    assert text in first.getMessage()
    assert text in TextFormatter().format(first)
    entry = json.loads(JsonFormatter().format(first))
    assert (entry["namespace"], entry["name"], entry["level"]) == ("ns", "a", "error")
    assert text in entry["msg"]


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
