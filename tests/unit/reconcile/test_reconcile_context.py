from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite.reconcile import Context, Environment, Request, run_in_thread, running_fields
from kopylite.reconcile.context import RUNNING
from kopylite.testing.clock import VirtualClock

if TYPE_CHECKING:
    from kopylite.client import Client

REQUEST = Request("default", "a")


def context(**more: Any) -> Context:
    environment = Environment("widget", cast("Client", None), clock=VirtualClock(), **more)
    return Context(environment, REQUEST, ("created", "changed"))


def test_each_log_line_carries_the_fields_of_its_run_and_those_of_the_line(caplog: pytest.LogCaptureFixture) -> None:
    ctx = context()
    ctx.log.warning("made %s", "it", extra={"fields": {"pod": "p"}, "attempt": 2})
    record = caplog.records[0]
    assert record.getMessage() == "made it"
    assert record.name == "kopylite.reconcile"
    assert record.fields == {**ctx.fields(), "pod": "p"}  # type: ignore[attr-defined]
    assert record.attempt == 2  # type: ignore[attr-defined]
    assert ctx.fields() == {
        "controller": "widget",
        "namespace": "default",
        "name": "a",
        "reconcile_id": ctx.reconcile_id,
        "reasons": ("created", "changed"),
    }


def test_the_id_is_made_once_and_differs_between_runs() -> None:
    environment = Environment("widget", cast("Client", None), clock=VirtualClock())
    first, second = Context(environment, REQUEST), Context(environment, REQUEST)
    assert first.reconcile_id == first.reconcile_id != second.reconcile_id
    assert first.log is first.log


def test_plain_loggers_find_the_fields_of_the_run_they_are_called_in() -> None:
    assert running_fields() == {}
    ctx = context()
    token = RUNNING.set(ctx)
    assert running_fields() == ctx.fields()
    RUNNING.reset(token)
    assert running_fields() == {}


def test_a_context_shows_whose_it_is_and_why_it_runs() -> None:
    assert repr(context()) == "<Context of widget default/a: created, changed>"
    nobodys = Context(Environment("widget", cast("Client", None)), Request("", ""))
    assert repr(nobodys) == "<Context of widget: no reasons>"


def test_now_is_the_clock_of_the_environment() -> None:
    assert context().now() == VirtualClock().now()


def test_an_event_without_a_recorder_is_nothing_and_with_one_is_passed_on() -> None:
    class Recorder:
        noted: tuple[Any, ...] = ()

        def event(self, *words: Any, **more: Any) -> None:
            self.noted = (*words, more)

    context().event(REQUEST, "Made", "made it")
    recorder = Recorder()
    context(recorder=recorder).event(REQUEST, "Made", "made it", type="Warning")
    assert recorder.noted == (REQUEST, "Made", "made it", {"type": "Warning", "action": "Reconcile", "related": None})


async def test_a_thread_is_waited_for_even_when_the_run_is_cancelled() -> None:
    begun, finish = threading.Event(), threading.Event()
    ends: list[str] = []

    def blocking(word: str) -> str:
        begun.set()
        finish.wait(10)
        ends.append(word)
        return word

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_thread, blocking, "done")
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
            finish.set()
    assert ends == ["done"]


async def test_the_result_of_the_thread_comes_back() -> None:
    assert await run_in_thread(logging.getLevelName, logging.INFO) == "INFO"
