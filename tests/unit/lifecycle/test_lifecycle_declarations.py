from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kopylite import App, Context, RegistrationError
from kopylite.lifecycle.spec import LifePlan


async def fine(ctx: Context) -> None: ...
def plain(ctx: Context) -> None: ...
async def greedy(ctx: Context, more: int) -> None: ...
async def spanning(ctx: Context) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda app: app.task(plain), r"task 'plain' is a plain def.*async def plain\(ctx: Context\)"),
        (lambda app: app.task(greedy), "task 'greedy' cannot be called with one argument"),
        (lambda app: app.task(spanning), "task 'spanning' yields"),
        (lambda app: app.task(name="")(fine), "a task needs a name"),
        (lambda app: app.task(leader="no")(fine), "task 'fine': leader is True or False"),
        (lambda app: app.task(fatal=1)(fine), "task 'fine': fatal is True or False"),
        (lambda app: (app.task(fine), app.task(fine)), r"has a task 'fine' already.*name='fine-2'"),
        (lambda app: app.on_start(plain), "on_start 'plain' is a plain def"),
        (lambda app: app.on_start(timeout=-1)(fine), "on_start 'fine': timeout"),
        (lambda app: app.on_stop(spanning), "on_stop 'spanning' yields"),
        (lambda app: app.on_stop(timeout=0)(fine), "on_stop 'fine': timeout must be above 0"),
        (lambda app: app.lifespan(fine), r"lifespan 'fine' has to be an async function that yields once.*yield State"),
        (lambda app: app.lifespan(stop_timeout=0)(spanning), "lifespan 'spanning': stop_timeout must be above 0"),
        (lambda app: app.health(fine), r"@app\.health is used without a name.*@app\.health\('database'\)"),
        (lambda app: app.ready("a b")(fine), "a check is named by up to 63"),
        (lambda app: app.ready("watch-x")(fine), "kopylite has checks of such names itself"),
        (lambda app: app.health("a")(greedy), "cannot be called with one argument"),
        (lambda app: app.health("a", timeout="1")(fine), "timeout is a number of seconds"),
        (lambda app: (app.health("a")(fine), app.health("a")(fine)), "has a check 'a' already"),
        (lambda app: app.metrics.register(fine), r"app\.metrics\.register takes a metric of prometheus_client"),
    ],
)
def test_what_is_declared_wrongly_is_named_with_the_rule_and_the_way_out(declare: Any, message: str) -> None:
    with pytest.raises(RegistrationError, match=f"(?s){message}"):
        declare(App("test"))


def test_a_declared_function_stays_what_it_is() -> None:
    app = App("test")
    assert app.task(fine) is app.on_start(fine) is app.on_stop(timeout=1)(fine) is app.health("a")(fine) is fine
    assert app.ready("a")(plain) is plain
    assert app.lifespan(spanning) is spanning


def test_a_plan_that_cannot_be_taken_over_whole_is_not_taken_over_at_all() -> None:
    mine, other = App("mine"), App("other")
    mine.health("a")(fine)
    other.task(fine)
    other.health("a")(fine)
    with pytest.raises(RegistrationError, match="has a check 'a' already"):
        mine.life.include("mine", other.life)
    assert mine.life == LifePlan(checks=mine.life.checks)
