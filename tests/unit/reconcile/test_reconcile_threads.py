"""Threads and the way back into the event loop; in real time, since virtual time does not know of threads."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite.client import Client, LiveClient
from kopylite.client.synchronous import SyncClient, SyncLiveClient
from kopylite.controller import Controller, ControllerSpec
from kopylite.errors import NotFound, TerminalError, UsageError
from kopylite.objects import Kind
from kopylite.observers import ReconcileObserver
from kopylite.reconcile import Environment, Request, Result, Retry, SyncContext, run_in_thread, running_fields
from kopylite.reconcile.threads import Calls, Threads
from tests.operators import eventually

WIDGET = Kind("example.com/v1", "Widget")
A, B = Request("default", "a"), Request("default", "b")
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


class Notes(ReconcileObserver):
    def __init__(self) -> None:
        self.results: list[str] = []

    def finished(self, result: str, seconds: float) -> None:
        self.results.append(result)


class FakeClient:
    """What a thread asks for, in the event loop."""

    def __init__(self) -> None:
        self.live = self
        self.asked: list[tuple[str, str, int]] = []
        self.hangs = False
        self.cancelled = False

    def get(self, kind: Kind, key: Request, *, namespace: str = "") -> Awaitable[str]:
        self.asked.append((key.name, str(running_fields().get("name")), threading.get_ident()))
        if key.name == "missing":  # as kopylite's own client raises it: without a line of this file
            missing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            missing.set_exception(NotFound("there is none"))
            return missing
        return self._get(key)

    async def _get(self, key: Request) -> str:
        if self.hangs:
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled = True
        await anyio.lowlevel.checkpoint()
        return f"{key.name}, stored"


class World:
    """A controller whose reconcile is a plain def."""

    def __init__(self, reconcile: Callable[..., Any], **options: Any) -> None:
        self.notes, self.client = Notes(), FakeClient()
        self.controller = Controller(
            ControllerSpec(name="widget", kind=WIDGET, reconcile=reconcile, **options),
            Environment("widget", cast("Client", self.client)),
            observer=self.notes,
        )

    async def play(self, *requests: Request, until: Callable[[], bool], grace: float = 10.0) -> bool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.controller.run)
            for request in requests:
                self.controller.enqueue(request, "created")
            await eventually(until, "it was reached")
            with anyio.fail_after(20):
                return await self.controller.drain(grace)
        raise AssertionError


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("kopylite-widget"):
            thread.join(5)
            assert not thread.is_alive()


async def test_a_plain_def_reads_through_the_event_loop_as_part_of_its_run() -> None:
    found: list[Any] = []

    def reconcile(ctx: SyncContext, request: Request) -> None:
        found.append((ctx.client.get(WIDGET, request), ctx.client.live.get(WIDGET, request), threading.get_ident()))

    world = World(reconcile, threads=2)
    assert await world.play(A, until=lambda: world.notes.results == ["success"])
    ((first, second, thread),) = found
    assert (first, second) == ("a, stored", "a, stored")
    assert thread != threading.get_ident()
    assert world.client.asked == [("a", "a", threading.get_ident())] * 2


async def test_as_many_run_at_a_time_as_there_are_threads_and_one_key_never_twice() -> None:
    at_work: list[str] = []
    most: list[int] = []
    go = threading.Barrier(2, timeout=20)

    def reconcile(ctx: SyncContext, request: Request) -> None:
        assert request.name not in at_work
        at_work.append(request.name)
        most.append(len(at_work))
        go.wait()
        at_work.remove(request.name)

    world = World(reconcile, threads=2)
    assert world.controller.statistics().workers == 2
    assert await world.play(
        A, B, Request("x", "c"), Request("x", "d"), until=lambda: world.notes.results == ["success"] * 4
    )
    assert max(most) == 2


@pytest.mark.parametrize(
    ("error", "result", "words"),
    [
        (TerminalError("never"), "error", "terminal error, waiting for the next event: TerminalError: never"),
        (Retry("not there yet", after=100), "requeue_after", "not there yet"),
        (ZeroDivisionError("a defect"), "error", "ZeroDivisionError: a defect"),
        (StopIteration(), "error", "StopIteration"),
        (SystemExit(3), "error", "SystemExit"),
    ],
)
async def test_what_a_thread_raises_means_what_it_means_in_an_async_run(
    error: BaseException, result: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    def reconcile(ctx: SyncContext, request: Request) -> None:
        raise error

    world = World(reconcile, threads=1)
    with caplog.at_level(logging.INFO):
        await world.play(A, until=lambda: result in world.notes.results)
    assert words in caplog.text


async def test_a_failure_of_a_call_is_raised_in_the_thread_and_told_with_the_users_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caught: list[str] = []

    def reconcile(ctx: SyncContext, request: Request) -> None:
        try:
            ctx.client.get(WIDGET, Request("", "missing"))
        except NotFound as error:
            caught.append(str(error))
        ctx.client.get(WIDGET, Request("", "missing"))

    world = World(reconcile, threads=1)
    await world.play(A, until=lambda: "error" in world.notes.results)
    assert "there is none" in caught[0]
    assert f"at {__file__}:" in caplog.text
    assert "in reconcile" in caplog.text


async def test_results_come_back_and_context_variables_end_with_their_run() -> None:
    seen: list[tuple[str, object]] = []

    def reconcile(ctx: SyncContext, request: Request) -> Result | None:
        seen.append((TENANT.get(), running_fields()["name"]))
        TENANT.set(request.name)
        return Result(requeue_after=1000)

    world = World(reconcile, threads=1)
    await world.play(A, B, until=lambda: world.notes.results == ["requeue_after"] * 2)
    assert seen == [("nobody", "a"), ("nobody", "b")]


async def test_a_timeout_cancels_the_call_in_progress_and_each_later_one(caplog: pytest.LogCaptureFixture) -> None:
    raised: list[type[BaseException]] = []

    def reconcile(ctx: SyncContext, request: Request) -> None:
        for _ in range(2):
            try:
                ctx.client.get(WIDGET, request)
            except BaseException as error:
                raised.append(type(error))
        raise ValueError("its own last words")

    world = World(reconcile, threads=1, timeout=0.1, max_retries=0)
    world.client.hangs = True
    await world.play(A, until=lambda: world.notes.results == ["error"])
    assert world.client.cancelled
    assert raised == [asyncio.CancelledError, asyncio.CancelledError]
    assert "cancelled after" in caplog.text


async def test_a_timeout_in_a_thread_says_so_at_once_and_the_key_waits_for_the_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    finish, runs = threading.Event(), list[str]()
    later: list[str] = []

    def slow_call() -> str:
        runs.append("run")
        finish.wait(20)
        return f"run {len(runs)}"

    async def reconcile(ctx: Any, request: Request) -> None:
        later.append(await run_in_thread(slow_call))

    world = World(reconcile, workers=2, timeout=0.1, max_retries=0)

    def told() -> bool:
        if "its timeout of 0.1 s is over, but slow_call is at work in a thread" not in caplog.text:
            return False
        if not finish.is_set():
            world.controller.enqueue(A, "changed")  # waits for the thread
            assert (runs, world.notes.results) == (["run"], [])
            finish.set()
        return "error" in world.notes.results

    await world.play(A, until=told)
    assert "run 1" not in later  # it ended at the await in which the timeout had passed


@pytest.mark.parametrize("sync", [False, True])
async def test_the_end_of_the_grace_period_waits_for_no_thread(sync: bool, caplog: pytest.LogCaptureFixture) -> None:
    finish, begun, after = threading.Event(), threading.Event(), list[type[BaseException]]()

    def blocking(ctx: Any = None, request: Any = None) -> None:
        begun.set()
        finish.wait(20)
        if sync:
            try:
                ctx.client.get(WIDGET, request)
            except BaseException as error:
                after.append(type(error))

    async def reconcile(ctx: Any, request: Request) -> None:
        await run_in_thread(blocking)

    world = World(blocking if sync else reconcile, **({"threads": 1} if sync else {"workers": 1}))
    assert await world.play(A, until=begun.is_set, grace=0.05) is False
    assert "blocking runs on in a thread until the process ends" in caplog.text
    finish.set()
    if sync:  # nobody carries out its calls any more, and none waits for ever
        await eventually(lambda: after == [asyncio.CancelledError], "the thread was told")


async def test_map_functions_in_threads_hold_up_no_end_either() -> None:
    finish, begun = threading.Event(), threading.Event()

    class Source:
        name, namespace, synced = "Widget", "", True

        async def wait_synced(self) -> None: ...

        async def run(self, enqueue: Any) -> None:
            def hold() -> None:
                begun.set()
                finish.wait(20)

            await run_in_thread(hold)

    async def reconcile(ctx: Any, request: Request) -> None: ...

    controller = Controller(
        ControllerSpec(name="widget", kind=WIDGET, reconcile=reconcile),
        Environment("widget", cast("Client", FakeClient())),
        sources=[Source()],
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(controller.run)
        await eventually(begun.is_set, "it was called")
        with anyio.fail_after(20):
            assert await controller.drain(0.05) is False
    finish.set()


async def test_a_synchronous_call_in_the_event_loop_is_refused_instead_of_waiting_for_itself() -> None:
    errors: list[str] = []

    def reconcile(ctx: SyncContext, request: Request) -> None:
        async def mutate() -> None:
            ctx.client.get(WIDGET, request)

        try:
            ctx.call(mutate)
        except UsageError as error:
            errors.append(str(error))

    world = World(reconcile, threads=1)
    await world.play(A, until=lambda: world.notes.results == ["success"])
    assert "would wait for itself" in errors[0]


async def test_a_thread_of_a_loop_that_ended_is_told_and_ends() -> None:
    """The loop is closed while a thread is at work in it: its next call fails, and so does nothing else."""
    begun, finish, ended = threading.Event(), threading.Event(), list[type[BaseException]]()

    def blocking(calls: Calls) -> None:
        begun.set()
        finish.wait(20)
        try:
            calls.call(anyio.sleep, 0)
        except BaseException as error:
            ended.append(type(error))

    async def inside() -> None:
        threads, calls = Threads("widget"), Calls()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: threads.run(lambda: blocking(calls), "blocking", calls=calls))
            await anyio.to_thread.run_sync(begun.wait)
            threads.abandon()
            tasks.cancel_scope.cancel()
        threads.close()

    await anyio.to_thread.run_sync(lambda: asyncio.run(inside()))
    finish.set()
    await eventually(lambda: ended == [asyncio.CancelledError], "the thread was told")


async def test_the_threads_are_used_again() -> None:
    threads = Threads("widget")
    names = [await threads.run(lambda: threading.current_thread().name, "name") for _ in range(3)]
    assert names == ["kopylite-widget-1"] * 3
    threads.close()


async def for_ever(ctx: Any, request: Request) -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(600)


async def for_ever_whatever_comes(ctx: Any, request: Request) -> None:
    while True:
        with suppress(BaseException):
            await asyncio.sleep(600)


async def for_ever_in_a_shield(ctx: Any, request: Request) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()


@pytest.mark.parametrize("reconcile", [for_ever, for_ever_whatever_comes, for_ever_in_a_shield])
@pytest.mark.leaves("a run that nothing ends is what it is about")
async def test_a_run_that_swallows_its_cancellation_is_named_and_left(
    reconcile: Callable[..., Awaitable[None]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kopylite.controller.controller.CLEANUP_SECONDS", 0.1)
    world = World(reconcile, workers=1)
    assert await world.play(A, until=lambda: bool(world.controller.active_runs()), grace=0.05) is False
    assert "does not heed its cancellation: reconcile of default/a" in caplog.text


@pytest.mark.parametrize(("twin", "of"), [(SyncLiveClient, LiveClient), (SyncClient, Client)])
def test_the_synchronous_client_has_each_method_with_its_arguments(twin: type, of: type) -> None:
    for name, method in inspect.getmembers(of, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            mine = inspect.signature(getattr(twin, name)).parameters
            free = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in mine.values())
            theirs = inspect.signature(method).parameters
            assert free or list(mine) == list(theirs), name
            assert not inspect.iscoroutinefunction(inspect.unwrap(getattr(twin, name), stop=lambda f: True)), name
