from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
import pytest

from kopylite.boundary import ActiveCall
from kopylite.client import Client
from kopylite.controller import Controller, ControllerSpec, Source
from kopylite.controller.gate import HEAD_START
from kopylite.controller.reasons import MORE
from kopylite.errors import ConnectionFailed, UsageError
from kopylite.objects import Kind, Shard
from kopylite.reconcile import Context, Environment, Request, Result, SyncContext
from kopylite.reconcile.chains import ChainLink, ChangeReason, Version
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import Enqueue

if TYPE_CHECKING:
    from kopylite.client import Transport

WIDGET = Kind("example.com/v1", "Widget")
A, B = Request("default", "a"), Request("default", "b")


class FakeSource:
    """Enqueues its keys when it starts, and is synced after some seconds; then it may fail."""

    def __init__(self, *requests: Request, synced_after: float = 0.0, fails: bool = False, namespace: str = "") -> None:
        self.name = "Widget.example.com/v1"
        self.namespace = namespace
        self.requests = requests
        self.synced_after = synced_after
        self.fails = fails
        self.running = False
        self._synced = anyio.Event()

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self, enqueue: Enqueue) -> None:
        self.running = True
        try:
            for request in self.requests:
                enqueue(request, "Widget created", -100)
            await anyio.sleep(self.synced_after)
            if self.fails:
                raise RuntimeError("source bug")
            self._synced.set()
            await anyio.sleep_forever()
        finally:
            self.running = False


class World:
    def __init__(self, *sources: Source, lasts: float = 1.0, workers: int = 1) -> None:
        self.clock = VirtualClock()
        self.lasts = lasts
        self.begun: list[tuple[float, Request]] = []
        self.ended: list[tuple[float, Request]] = []
        self.controller = Controller(
            ControllerSpec(name="widget", kind=WIDGET, reconcile=self.reconcile),
            Environment("widget", cast("Client", None), clock=self.clock),
            sources=sources,
            workers=workers,
        )

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        self.begun.append((self.clock.monotonic(), request))
        await self.clock.sleep(self.lasts)
        self.ended.append((self.clock.monotonic(), request))
        return None


def test_no_reconcile_begins_before_every_source_is_synced() -> None:
    world = World(FakeSource(A), FakeSource(B, synced_after=7.0))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(5.0)
            assert not world.controller.synced
            assert world.controller.statistics().waiting_for == ("Widget.example.com/v1",)
            await anyio.sleep(10.0)
            assert world.controller.synced
            assert await world.controller.drain(1.0)

    world.clock.run(main)
    assert world.begun == [(7.0, A), (8.0, B)]


def test_a_namespace_whose_sources_are_not_synced_holds_no_other_up_and_joins_when_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fine, bad, cluster = Request("fine", "a"), Request("bad", "b"), Request("", "c")
    world = World(
        FakeSource(fine, namespace="fine"),
        FakeSource(bad, namespace="bad"),  # its own kind is there, and what it owns is not
        FakeSource(namespace="bad", synced_after=70.0),
        FakeSource(cluster),
    )

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(60.0)
            assert not world.controller.synced
            assert world.controller.statistics().waiting_for == ("Widget.example.com/v1",)
            world.controller.enqueue(bad, "again", 5)
            await anyio.sleep(30.0)
            assert await world.controller.drain(1.0)

    with caplog.at_level(logging.INFO):
        world.clock.run(main)
    assert {request for when, request in world.begun if when <= HEAD_START + 1.0} == {fine, cluster}
    assert (70.0, bad) in world.begun
    assert len(world.begun) == 3
    assert [r.getMessage() for r in caplog.records] == [
        "controller widget begins, workers: 1",
        "controller widget does not work in namespace bad yet: not everything that it watches there is in sync",
        "controller widget begins in namespace bad",
    ]


def test_what_every_key_needs_is_waited_for_without_end() -> None:
    world = World(FakeSource(Request("fine", "a"), namespace="fine"), FakeSource(synced_after=1000.0))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(999.0)
            assert world.begun == []
            await anyio.sleep(3.0)
            assert await world.controller.drain(1.0)

    world.clock.run(main)
    assert [when for when, _ in world.begun] == [1000.0]


def test_stop_ends_the_sources_lets_runs_finish_and_then_run_returns() -> None:
    source = FakeSource(A, B)
    world = World(source, lasts=10.0)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(1.0)
            assert source.running
            world.controller.stop()
            await anyio.sleep(1.0)
            assert not source.running
            world.controller.enqueue(B, "too late")
        assert world.clock.monotonic() == 10.0

    world.clock.run(main)
    assert world.ended == [(10.0, A)]


def test_stop_while_it_waits_for_its_sources_ends_it_at_once() -> None:
    world = World(FakeSource(A, synced_after=1000.0))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(1.0)
            assert await world.controller.drain(30.0)
        assert world.clock.monotonic() == 1.0

    world.clock.run(main)
    assert not world.begun


def test_drain_cancels_and_names_what_is_not_done_after_the_grace_period(caplog: pytest.LogCaptureFixture) -> None:
    world = World(FakeSource(A), lasts=1000.0)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(1.0)
            assert not await world.controller.drain(30.0)
        assert world.clock.monotonic() == 31.0

    world.clock.run(main)
    assert not world.ended
    warning = next(record for record in caplog.records if record.levelno == logging.WARNING)
    assert "after 31.0 s" in warning.getMessage()
    assert warning.fields["name"] == "a"  # type: ignore[attr-defined]


def test_drain_of_a_controller_that_never_ran_returns_and_run_after_it_does_nothing() -> None:
    world = World(FakeSource(A))

    async def main() -> None:
        assert await world.controller.drain(30.0)
        await world.controller.run()

    world.clock.run(main)
    assert not world.begun


def test_a_controller_runs_once() -> None:
    world = World(FakeSource())

    async def main() -> None:
        world.controller.stop()
        await world.controller.run()
        with pytest.raises(UsageError, match="started before"):
            await world.controller.run()

    world.clock.run(main)


def test_a_source_that_fails_takes_the_controller_down_rather_than_leaving_a_zombie() -> None:
    world = World(FakeSource(A, synced_after=1.0, fails=True))
    with pytest.raises(ExceptionGroup) as group:
        world.clock.run(world.controller.run)
    assert group.group_contains(RuntimeError, match="source bug")


def test_cancelling_run_cancels_the_runs_and_leaves_nothing_running() -> None:
    world = World(FakeSource(A), lasts=1000.0)

    async def main() -> None:
        with anyio.move_on_after(5.0):
            await world.controller.run()
        assert world.clock.monotonic() == 5.0
        assert world.controller.active_runs() == []
        assert world.controller.statistics().queue.running == 0

    world.clock.run(main)


def test_what_a_run_wrote_itself_is_no_more_urgent_than_it_was() -> None:
    """Else the second runs of the first keys of a long list come before the first runs of the others."""
    own, others = Version("uid-a", "7"), Version("uid-a", "8")
    written = {own: ChainLink("widget", A, -100, ())}
    clock, began = VirtualClock(), list[tuple[Request, int]]()
    c, d, e, f = (Request("default", name) for name in "cdef")

    async def reconcile(ctx: Context, request: Request) -> Result | None:
        began.append((request, ctx.priority))
        return None

    for name in ("widget", "other"):
        controller = Controller(
            ControllerSpec(name=name, kind=WIDGET, reconcile=reconcile),
            Environment(name, cast("Client", None), clock=clock, writer=written.get),
        )
        controller.enqueue(c, "Widget created", -100)
        controller.enqueue(A, ChangeReason.of("Widget updated", own))
        controller.enqueue(B, ChangeReason.of("Widget updated", own))
        controller.enqueue(d, ChangeReason.of("Widget updated", others))
        controller.enqueue(e, ChangeReason.of("Widget updated", own), -200)
        controller.enqueue(f, "Widget updated")

        async def main(controller: Controller = controller) -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(controller.run)
                await anyio.sleep(1.0)
                await controller.drain(1.0)

        clock.run(main)
    mine, foreign = dict(began[:6]), dict(began[6:])
    assert mine == {A: -100, B: 0, c: -100, d: 0, e: -200, f: 0}  # for B, it is news
    assert foreign == {A: 0, B: 0, c: -100, d: 0, e: -200, f: 0}  # so it is for another controller


@pytest.mark.parametrize("foreign", [False, True])
def test_an_event_that_comes_before_the_answer_to_its_write_is_no_more_urgent_either(foreign: bool) -> None:
    """But what somebody else has done meanwhile is."""
    written: dict[Version, ChainLink] = {}
    clock, began = VirtualClock(), list[tuple[Request, int]]()

    async def reconcile(ctx: Context, request: Request) -> Result | None:
        began.append((request, ctx.priority))
        if request == A and not written:
            own = Version("uid-a", "7")
            controller.enqueue(A, ChangeReason.of("Widget updated", own))
            ctx.step = written[own] = ChainLink("widget", A, ctx.priority, ())
            if foreign:
                controller.enqueue(A, ChangeReason.of("Widget updated", Version("uid-a", "8")))
        return None

    controller = Controller(
        ControllerSpec(name="widget", kind=WIDGET, reconcile=reconcile),
        Environment("widget", cast("Client", None), clock=clock, writer=written.get),
    )

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(controller.run)
            for request in (A, B):
                controller.enqueue(request, "Widget created", -100)
            await anyio.sleep(1.0)
            await controller.drain(1.0)

    clock.run(main)
    assert began == ([(A, -100), (A, 0), (B, -100)] if foreign else [(A, -100), (B, -100), (A, -100)])


def test_active_runs_tell_what_is_stuck_since_when_and_why() -> None:
    world = World(lasts=1000.0, workers=2)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            world.controller.enqueue(A, "changed")
            await anyio.sleep(40.0)
            for number in range(20):
                world.controller.enqueue(B, f"pod {number} changed")
            await anyio.sleep(10.0)
            oldest, newest = world.controller.active_runs()
            assert (oldest.request, oldest.seconds, oldest.reasons) == (A, 50.0, ("changed",))
            assert (newest.request, newest.seconds, newest.reasons[-1]) == (B, 10.0, MORE)
            assert world.controller.active_runs(longer_than=30.0) == [oldest]
            assert world.controller.active_runs(longer_than=50.0) == [oldest]
            found = world.controller.statistics()
            assert (found.workers, found.active, found.synced) == (2, 2, True)
            await world.controller.drain(0.0)

    world.clock.run(main)


class Moving(World):
    """A controller that works in some namespaces, which come and go."""

    def __init__(self, *sources: Source, lasts: float = 1.0) -> None:
        super().__init__(*sources, lasts=lasts)
        self.scope = {source.namespace for source in sources}
        self.controller = Controller(
            ControllerSpec(name="widget", kind=WIDGET, reconcile=self.reconcile),
            Environment("widget", cast("Client", None), clock=self.clock),
            sources=sources,
            in_scope=lambda request: request.namespace in self.scope,
        )

    def enter(self, *sources: FakeSource) -> None:
        self.scope.add(sources[0].namespace)
        self.controller.enter(sources[0].namespace, sources)

    def leave(self, *sources: FakeSource) -> None:
        self.scope.discard(sources[0].namespace)
        self.controller.leave(sources[0].namespace, sources)


def test_a_namespace_that_comes_later_is_worked_in_when_it_is_in_sync_and_left_with_all_its_keys() -> None:
    first, late = (
        FakeSource(A, namespace="default"),
        FakeSource(*(Request("late", name) for name in "xyz"), namespace="late", synced_after=5.0),
    )
    world = Moving(first, lasts=2.0)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(10.0)
            world.controller.enqueue(Request("late", "early"), "a map function names it")
            world.enter(late)
            await anyio.sleep(4.0)
            assert world.begun == [(0.0, A)]
            assert world.controller.statistics().waiting_for == ("Widget.example.com/v1",)
            await anyio.sleep(4.0)
            assert [request for _, request in world.begun[1:]] == [Request("late", "x"), Request("late", "y")]
            world.leave(late)
            world.controller.enqueue(Request("late", "z"), "nobody may")
            await anyio.sleep(10.0)
            assert not late.running
            assert [request for _, request in world.ended[1:]] == [Request("late", "x"), Request("late", "y")]
            assert world.controller.sources == (first,)
            queue = world.controller.statistics().queue
            assert (queue.ready, queue.waiting, queue.running) == (0, 0, 0)
            world.enter(again := FakeSource(Request("late", "w"), namespace="late"))
            await anyio.sleep(5.0)
            assert world.begun[-1][1] == Request("late", "w")
            assert again.running
            assert await world.controller.drain(1.0)
            world.enter(FakeSource(namespace="too-late"))
            world.leave(again)

    world.clock.run(main)


def test_whatever_a_run_comes_to_whose_namespace_was_left_meanwhile_it_is_not_run_again() -> None:
    left = FakeSource(A, namespace="default")
    world = Moving(left, lasts=3.0)

    async def fails(ctx: Context, request: Request) -> Result | None:
        await world.reconcile(ctx, request)
        raise ValueError("something of a namespace that is gone")

    world.controller = Controller(
        ControllerSpec(name="widget", kind=WIDGET, reconcile=fails, max_retries=5),
        Environment("widget", cast("Client", None), clock=world.clock),
        sources=[left],
        in_scope=lambda request: request.namespace in world.scope,
    )

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(10.0)
            before = len(world.begun)
            assert before > 1, "it fails and is tried again"
            world.leave(left)
            await anyio.sleep(100.0)
            assert len(world.begun) == before
            queue = world.controller.statistics().queue
            assert (queue.ready, queue.waiting, queue.failing) == (0, 0, 0)
            assert await world.controller.drain(1.0)

    world.clock.run(main)


def test_a_namespace_that_is_left_before_it_is_in_sync_leaves_no_key_behind() -> None:
    world = Moving(FakeSource(A, namespace="default"))
    slow = FakeSource(Request("slow", "a"), namespace="slow", synced_after=5.0)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(10.0)
            for _ in range(3):
                world.enter(slow)
                world.leave(slow)
            world.enter(slow)
            await anyio.sleep(2.0)
            world.leave(slow)
            await anyio.sleep(10.0)
            assert not slow.running
            assert [request for _, request in world.begun] == [A]
            assert await world.controller.drain(1.0)

    world.clock.run(main)


def test_the_slowest_run_since_the_last_look_is_named_whether_it_ended_or_not() -> None:
    world = World(lasts=10.0)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            assert world.controller.slowest() == ""
            world.controller.enqueue(A, "changed")
            await anyio.sleep(12.0)
            assert world.controller.slowest() == "default/a, 10.0 s"
            assert world.controller.slowest() == "", "it was told of"
            world.lasts = 3.0
            world.controller.enqueue(A, "changed")
            await anyio.sleep(5.0)
            world.lasts = 100.0
            world.controller.enqueue(B, "changed")
            await anyio.sleep(2.0)
            assert world.controller.slowest() == "default/a, 3.0 s"
            await anyio.sleep(20.0)
            assert world.controller.slowest() == "default/b, 22.0 s", "it goes on"
            await world.controller.drain(0.0)

    world.clock.run(main)


@pytest.mark.parametrize(("count", "shown"), [(5, "ns-0, ns-1, ns-2, ns-3, ns-4 yet"), (7, "ns-4 and 2 more yet")])
def test_many_namespaces_that_are_not_in_sync_are_a_short_line(
    count: int, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(*(FakeSource(namespace=f"ns-{number}", synced_after=100.0) for number in range(count)))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(10.0)
            assert await world.controller.drain(1.0)

    world.clock.run(main)
    [line] = [message for message in caplog.messages if "does not work in" in message]
    assert shown in line


@pytest.mark.leaves("a run that nothing ends is what it is about")
async def test_a_map_function_that_does_not_end_either_is_named_when_a_controller_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kopylite.controller.controller.CLEANUP_SECONDS", 0.05)

    class Stubborn(FakeSource):
        def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
            return [ActiveCall("map function", "users_of", "ConfigMap ns/c", 99.0)]

    began = anyio.Event()

    async def swallows(ctx: Context, request: Request) -> None:
        began.set()
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(600)

    environment = Environment("widget", cast("Client", None))
    spec = ControllerSpec(name="widget", kind=WIDGET, reconcile=swallows)
    controller = Controller(spec, environment, sources=[Stubborn(A)])
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(controller.run)
            await began.wait()
            assert not await controller.drain(0.0)
    assert "reconcile of default/a, map function users_of of ConfigMap ns/c" in caplog.text


def test_a_run_that_is_over_is_told_to_whoever_debugs_with_what_comes_next(caplog: pytest.LogCaptureFixture) -> None:
    again = World()

    async def requeues(ctx: Context, request: Request) -> Result | None:
        return Result(requeue_after=60) if request == A else None

    again.controller = Controller(
        ControllerSpec(name="widget", kind=WIDGET, reconcile=requeues),
        Environment("widget", cast("Client", None), clock=again.clock),
    )

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(again.controller.run)
            for request in (A, B):
                again.controller.enqueue(request, "changed")
            await anyio.sleep(1.0)
            await again.controller.drain(1.0)

    with caplog.at_level(logging.DEBUG, logger="kopylite.controller"):
        again.clock.run(main)
    lines = {r.fields["name"]: r.getMessage() for r in caplog.records if " after 0.000 s" in r.getMessage()}  # type: ignore[attr-defined]
    assert lines["a"].endswith(", next run in 60.000 s")
    assert lines["b"].endswith(" after 0.000 s")


@pytest.mark.parametrize(("shard", "label"), [(None, "widget"), (Shard(1, 4), "widget-shard-1")])
def test_its_label_tells_it_from_the_controllers_of_other_shards(shard: Shard | None, label: str) -> None:
    spec = ControllerSpec(name="widget", kind=WIDGET, reconcile=World().reconcile)
    assert Controller(spec, Environment("widget", cast("Client", None), shard=shard)).label == label


def test_keys_that_failed_without_the_server_run_soon_after_it_answers_again() -> None:
    clock, runs = VirtualClock(), list[float]()

    async def reconcile(ctx: Context, request: Request) -> None:
        runs.append(clock.monotonic())
        if clock.monotonic() < 300:
            raise ConnectionFailed("nobody is there")

    spec = ControllerSpec(name="widget", kind=WIDGET, reconcile=reconcile)
    controller = Controller(spec, Environment("widget", cast("Client", None), clock=clock), sources=[FakeSource(A)])

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(controller.run)
            await anyio.sleep(300.0)
            before = len(runs)
            controller.server_reached()
            await anyio.sleep(2.0)
            assert len(runs) == before + 1
            await controller.drain(1.0)

    clock.run(main)


def test_one_that_was_cancelled_enters_no_namespace() -> None:
    world = World(FakeSource())

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(world.controller.run)
            await anyio.sleep(1.0)
            group.cancel_scope.cancel()
        before = world.controller.sources
        world.controller.enter("late", [FakeSource(A, namespace="late")])
        assert world.controller.sources == before

    world.clock.run(main)


async def test_a_thread_that_outlasts_the_grace_period_is_named_and_left_and_those_at_rest_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began, go_on, rests = threading.Event(), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def reconcile(ctx: SyncContext, request: Request) -> None:
        threads.append(threading.current_thread())
        if request == B:
            rests.set()
            return
        began.set()
        go_on.wait(10)

    spec = ControllerSpec(name="widget", kind=WIDGET, reconcile=reconcile, threads=2)
    nobody_reads = Client(cast("Transport", None))
    controller = Controller(spec, Environment("widget", nobody_reads), sources=[FakeSource(A, B)])
    async with anyio.create_task_group() as group:
        group.start_soon(controller.run)
        for event in (began, rests):
            assert await anyio.to_thread.run_sync(event.wait, 10)
        with anyio.fail_after(5):
            assert not await controller.drain(0.0)
    assert "reconcile runs on in a thread until the process ends" in caplog.text
    go_on.set()
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join, 10)
    assert not any(thread.is_alive() for thread in threads)
