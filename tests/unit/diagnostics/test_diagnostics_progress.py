"""Progress of controllers with a real queue and real workers, in virtual time."""

from __future__ import annotations

import io
import logging
import re
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from kopylite.controller import Controller, ControllerSpec
from kopylite.diagnostics.log import BarHandler
from kopylite.diagnostics.progress import ProgressReport
from kopylite.objects import Kind
from kopylite.reconcile import Context, Environment, Request
from kopylite.testing.clock import VirtualClock

if TYPE_CHECKING:
    from kopylite.client import Client

WIDGET = Kind("example.com/v1", "Widget")


class Shown:
    """A bar that remembers."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def show(self, text: str) -> None:
        self.texts.append(text)


def play(keys: int, seconds: float, *, bar: Shown | None = None, every: float = 0.0) -> None:
    """A controller with two workers works on so many keys of so many seconds; they come at once, or one `every`."""
    clock = VirtualClock()

    async def reconcile(ctx: Context, request: Request) -> None:
        await clock.sleep(seconds if request.name != "0" else 8 * seconds)

    spec = ControllerSpec(name="widget", kind=WIDGET, reconcile=reconcile)
    controller = Controller(spec, Environment("widget", cast("Client", None), clock=clock), workers=2)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(controller.run)
            tasks.start_soon(ProgressReport(lambda: [controller], lambda: bar, clock=clock).run)
            for number in range(keys):
                controller.enqueue(Request("default", str(number)), "created")
                if every:
                    await clock.sleep(every)
            await clock.sleep(200.0)
            tasks.cancel_scope.cancel()

    clock.run(main)


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kopylite.manager"]


def test_a_backlog_has_a_line_every_ten_seconds_and_one_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    play(200, 0.5)
    *told, last = lines(caplog)
    assert len(told) in (4, 5)
    first = told[0]
    assert first.startswith("controller widget: ")
    done, left, _ = (int(word) for word in first.split() if word.isdigit())
    assert done + left == pytest.approx(200, abs=3)  # two run, and one may end when it begins to count
    assert 30 <= done <= 40
    assert " a second, about " in first
    assert "slowest: default/0, 4.0 s" in first
    assert "default/0" not in told[1]  # of the last ten seconds
    assert last.startswith("controller widget has caught up: ")
    assert " keys in 5" in last


def test_a_busy_controller_whose_keys_are_fresh_is_not_behind(caplog: pytest.LogCaptureFixture) -> None:
    play(100, 0.5, every=0.3)
    assert lines(caplog) == []


def test_a_short_start_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    play(20, 0.5)
    assert lines(caplog) == []


def test_one_long_run_is_told_while_keys_wait_for_it(caplog: pytest.LogCaptureFixture) -> None:
    play(5, 40.0)  # the first takes 320 s
    assert "0 keys done, 3 left, 0.0 a second, no run ended lately; slowest: default/0, " in lines(caplog)[0]


def test_a_bar_takes_the_place_of_the_lines_and_goes(caplog: pytest.LogCaptureFixture) -> None:
    bar = Shown()
    play(200, 0.5, bar=bar)
    drawn = [text for text in bar.texts if text]
    assert len(drawn) > 30
    assert drawn[-1].startswith("[#######################")
    assert re.search(r"/(200|19[789]) keys, widget: about ", drawn[0])
    assert bar.texts[-1] == ""
    [line] = lines(caplog)
    assert "has caught up" in line


def test_a_bar_stays_at_the_end_of_the_terminal_below_what_is_logged(monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    handler = BarHandler(stream)
    record = logging.makeLogRecord({"msg": "a line"})
    handler.emit(record)
    handler.show("[##..] 3/6 keys of a long name")
    handler.emit(record)
    handler.show("")
    handler.emit(record)
    cleared = "\r\x1b[2K"
    assert stream.getvalue() == f"a line\n[##..] 3/6 keys of {cleared}a line\n[##..] 3/6 keys of {cleared}a line\n"
