from __future__ import annotations

import threading
from typing import cast

import anyio

from kopylite.client import Client
from kopylite.clock import SYSTEM_CLOCK
from kopylite.lifecycle.healthchecks import HealthChecks
from kopylite.lifecycle.spec import CheckFunction, CheckSpec
from kopylite.reconcile import Context, Environment, Request


def checks_of(function: CheckFunction, timeout: float = 5.0) -> HealthChecks:
    context = Context(Environment("test", cast("Client", None)), Request("", ""))
    return HealthChecks(
        [CheckSpec(endpoint="ready", name="a", function=function, timeout=timeout)], lambda spec: context, SYSTEM_CLOCK
    )


async def test_a_blocked_check_keeps_its_limit_and_gets_no_second_thread() -> None:
    release, calls = threading.Event(), []

    def blocks(ctx: Context) -> None:
        calls.append(1)
        release.wait(30)

    checks = checks_of(blocks, 0.1)
    try:
        assert await checks.ask("ready", ["a"]) == {"a": "TimeoutError: cancelled after 0.1 s"}
        assert "its thread has been at work" in str((await checks.ask("ready", ["a"]))["a"])
        assert len(calls) == 1
    finally:
        release.set()
        checks.close()


async def test_who_asks_meanwhile_gets_the_same_answer_from_one_call() -> None:
    answers: list[dict[str, str | None]] = []
    go, calls = anyio.Event(), []

    async def slow(ctx: Context) -> str:
        calls.append(1)
        await go.wait()
        return "no"

    checks = checks_of(slow)

    async def ask() -> None:
        answers.append(await checks.ask("ready", ["a"]))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert answers == [{"a": "no"}] * 5
    assert len(calls) == 1


async def test_what_is_no_answer_is_no_success() -> None:
    async def answered(answer: object) -> str | None:
        async def check(ctx: Context) -> str:
            return cast("str", answer)

        return (await checks_of(check).ask("ready", ["a"]))["a"]

    assert await answered(0) == "it returned 0; a check returns None, True, False or a text"
    assert await answered("")
    assert await answered(False) == "it says no"
    assert await answered(None) is None
    assert await checks_of(nothing).ask("health", ["a"]) == {}
    assert await checks_of(nothing).ask("ready", []) == {}


def nothing(ctx: Context) -> None: ...
