"""What an App does before, beside and after its reconciles, by whole runs of a Manager on both event loops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from prometheus_client import Counter, Gauge

from kopylite import App, Context, Kind, Manager, Options, RegistrationError, Request
from kopylite.errors import LifecycleError, UsageError
from kopylite.lifecycle import hosted, lifespans
from tests.operators import eventually
from tests.tinyserver import TinyServer, tiny_server

Thing = Kind("example.com/v1", "Thing", plural="things", namespaced=True)
QUIET = Options(metrics_address="off", health_address="off", grace_period=5.0, connect_timeout=5.0)
SERVED = Options(metrics_address=":0", health_address=":0", grace_period=5.0)


@dataclass
class Pool:
    name: str
    open: bool = True


@pytest.fixture
async def server() -> AsyncIterator[TinyServer]:
    async with tiny_server() as server:
        yield server


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


def made(said: list[str]) -> App:
    """With a controller that says when it works, and by what."""
    app = App("test")

    @app.reconciler(Thing)
    async def reconcile(ctx: Context, request: Request) -> None:
        said.append(f"reconcile by {ctx.state[Pool].name}" if Pool in ctx.state else "reconcile")

    return app


async def run_until(app: App, server: TinyServer, done: Any, what: str, options: Options = QUIET) -> None:
    """Run it until something is true, and stop it."""
    manager = Manager(app, server.config, options)
    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await eventually(done, what)
            manager.stop()


async def test_hooks_go_in_order_around_all_work_and_in_reverse_at_the_end(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    app = made(said)

    @app.on_start
    async def first(ctx: Context) -> None:
        assert await ctx.client.live.find(Thing, Request("default", "a")) is not None  # the client works, and
        assert said == []  # nothing else does
        said.append("first")

    @app.lifespan
    async def pool(ctx: Context) -> AsyncIterator[Pool]:
        said.append("opens")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield Pool("p")
            tasks.cancel_scope.cancel()
        said.append("closes")

    @app.lifespan
    @asynccontextmanager
    async def by_a_manager(ctx: Context) -> AsyncIterator[None]:
        said.append(f"uses {ctx.state[Pool].name}")
        yield
        said.append("used")

    @app.on_stop(timeout=3)
    async def last(ctx: Context) -> None:
        assert await ctx.client.live.find(Thing, Request("default", "a")) is not None
        said.append("last")

    await run_until(app, server, lambda: "reconcile by p" in said, "it reconciles")
    assert said == ["first", "opens", "uses p", "reconcile by p", "last", "used", "closes"]


async def test_a_start_that_fails_names_itself_and_ends_what_has_begun(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    app = made(said)

    @app.lifespan
    async def pool(ctx: Context) -> AsyncIterator[None]:
        yield
        said.append("closed")

    @app.on_start
    async def migrate(ctx: Context) -> None:
        raise ValueError("no such table")

    @app.on_start
    async def never(ctx: Context) -> None:
        said.append("never")

    manager = Manager(app, server.config, QUIET)
    with pytest.raises(LifecycleError, match="on_start 'migrate' failed: ValueError: no such table") as caught:
        await manager.run()
    assert isinstance(caught.value.__cause__, ValueError)
    assert said == ["closed"]


async def test_a_start_that_takes_too_long_names_itself_and_its_limit(server: TinyServer) -> None:
    app = made([])

    @app.on_start(timeout=0.1)
    async def connect(ctx: Context) -> None:
        await anyio.sleep_forever()

    with pytest.raises(LifecycleError, match=r"on_start 'connect' did not end within 0\.1 s"):
        await Manager(app, server.config, QUIET).run()


async def test_a_stop_during_a_start_ends_in_order(server: TinyServer) -> None:
    said: list[str] = []
    app = made(said)

    @app.on_start
    async def waits(ctx: Context) -> None:
        said.append("waits")
        try:
            await anyio.sleep_forever()
        finally:
            said.append("cancelled")

    await run_until(app, server, lambda: "waits" in said, "it waits")
    assert said == ["waits", "cancelled"]


async def test_an_end_that_hangs_or_fails_is_named_and_hinders_no_other(
    server: TinyServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (hosted, lifespans):
        monkeypatch.setattr(module, "CLEANUP_SECONDS", 0.2)
    server.put("a")
    said: list[str] = []
    app = made(said)

    @app.on_stop
    async def closes(ctx: Context) -> None:
        said.append("closes")

    @app.on_stop
    async def fails(ctx: Context) -> None:
        raise OSError("gone")

    @app.on_stop(timeout=0.1)
    async def hangs(ctx: Context) -> None:
        await anyio.sleep_forever()

    @app.lifespan(stop_timeout=0.1)
    async def deaf(ctx: Context) -> AsyncIterator[None]:
        yield
        while True:
            try:
                await anyio.sleep(1000)
            except BaseException:
                said.append("deaf")

    await run_until(app, server, lambda: "reconcile" in said, "it reconciles")
    assert said[-1] == "closes"
    assert "on_stop 'fails' failed at the end: OSError: gone" in caplog.text
    assert "on_stop 'hangs' did not end within 0.1 s" in caplog.text
    assert "lifespan 'deaf' does not heed its cancellation" in caplog.text


async def test_a_cancelled_run_has_its_end_all_the_same(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    app = made(said)

    @app.on_stop
    async def closes(ctx: Context) -> None:
        await anyio.lowlevel.checkpoint()
        said.append("closes")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Manager(app, server.config, QUIET).run)
        await eventually(lambda: "reconcile" in said, "it reconciles")
        tasks.cancel_scope.cancel()
    assert said[-1] == "closes"


async def test_a_lifespan_whose_task_group_breaks_ends_the_run_in_order(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    app = made(said)
    broken = anyio.Event()

    @app.lifespan
    async def feed(ctx: Context) -> AsyncIterator[None]:
        async def read() -> None:
            await broken.wait()
            raise ConnectionError("the feed is gone")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            yield

    @app.on_stop
    async def last(ctx: Context) -> None:
        said.append("last")

    manager = Manager(app, server.config, QUIET)

    async def break_it() -> None:
        await eventually(lambda: "reconcile" in said, "it reconciles")
        broken.set()

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(break_it)
            with pytest.raises(LifecycleError, match=r"lifespan 'feed' failed: .*the feed is gone"):
                await manager.run()
    assert said[-1] == "last"


async def test_tasks_run_beside_the_reconciles_and_are_cancelled_after_them(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    app = made(said)

    @app.lifespan
    async def pool(ctx: Context) -> AsyncIterator[Pool]:
        yield Pool("p")
        said.append("closed")

    @app.task
    async def polls(ctx: Context) -> None:
        said.append(f"polls by {ctx.state[Pool].name}, {ctx.controller}")
        try:
            await anyio.sleep_forever()
        finally:
            said.append("polls no more")

    await run_until(app, server, lambda: len(said) >= 2, "both work")
    assert sorted(said[:2]) == ["polls by p, polls", "reconcile by p"]
    assert said[2:] == ["polls no more", "closed"]


async def test_a_task_that_fails_is_begun_again_told_of_and_counted(
    server: TinyServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, runs = made([]), []

    @app.task(name="poller")
    async def polls(ctx: Context) -> None:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError("no answer")

    monkeypatch.setattr("kopylite.lifecycle.taskforce.RESTART.__class__.delay", lambda *args: 0.01)
    manager = Manager(app, server.config, QUIET)
    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await eventually(lambda: "task poller is done" in caplog.text, "it is done")
            text = manager.metrics.exposition()[0].decode()
            manager.stop()
    assert len(runs) == 3
    assert "task poller failed on its run: RuntimeError: no answer" in caplog.text
    assert 'kopylite_calls_total{call="task",controller="",function="poller",result="error"} 2.0' in text
    assert 'kopylite_calls_total{call="task",controller="",function="poller",result="success"} 1.0' in text
    assert 'kopylite_task_running{task="poller"} 0.0' in text


async def test_a_fatal_task_ends_the_run_in_order_and_with_its_name(server: TinyServer) -> None:
    said: list[str] = []
    app = made(said)

    @app.task(fatal=True)
    async def polls(ctx: Context) -> None:
        raise RuntimeError("no answer")

    @app.on_stop
    async def closes(ctx: Context) -> None:
        said.append("closes")

    with pytest.raises(LifecycleError, match="task 'polls' failed, and is declared as fatal: RuntimeError: no answer"):
        await Manager(app, server.config, QUIET).run()
    assert said == ["closes"]


async def test_an_app_may_have_tasks_alone_and_deaf_ones_are_left(
    server: TinyServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted, "CLEANUP_SECONDS", 0.2)
    app, began = App("alone"), []

    @app.task
    async def deaf(ctx: Context) -> None:
        began.append(1)
        while True:
            try:
                await anyio.sleep(1000)
            except asyncio.CancelledError:
                began.append(2)

    await run_until(app, server, lambda: began, "it runs")
    assert "left where it is, since it does not heed its cancellation: task deaf" in caplog.text


async def test_checks_of_the_app_are_asked_by_name_and_within_their_limits(server: TinyServer) -> None:
    server.put("a")
    app = made([])
    wrong: dict[str, Any] = {}

    @app.on_start
    async def opens(ctx: Context) -> None:
        ctx.state[Pool] = Pool("p")

    @app.health("database")
    async def database(ctx: Context) -> str | None:
        assert ctx.state[Pool].open
        if wrong.get("raises"):
            raise OSError("gone")
        return str(wrong["text"]) if "text" in wrong else None

    @app.ready("feed", timeout=0.2)
    async def feed(ctx: Context) -> bool:
        if wrong.get("hangs"):
            await anyio.sleep_forever()
        return "no" not in wrong

    @app.ready("plain")
    def plain(ctx: Context) -> None: ...

    manager = Manager(app, server.config, SERVED)

    async def get(path: str) -> tuple[int, str]:
        address = manager.addresses["/" + path.split("/")[1].split("?")[0]]
        async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as response:
            return response.status, await response.text()

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_synced()
            assert "[+]database ok" in (await get("/healthz?verbose"))[1]
            assert "[+]feed ok\n" in (await get("/readyz?verbose"))[1]
            assert "[+]plain ok\n" in (await get("/readyz?verbose"))[1]
            wrong["text"] = "no connection"
            assert await get("/healthz/database") == (500, "database failed: no connection")
            assert (await get("/healthz"))[0] == 500
            assert (await get("/healthz?exclude=database")) == (200, "ok")
            assert (await get("/readyz"))[0] == 200
            wrong["raises"] = True
            assert await get("/healthz/database") == (500, "database failed: OSError: gone")
            wrong["no"] = True
            assert await get("/readyz/feed") == (500, "feed failed: it says no")
            wrong["hangs"] = True
            assert await get("/readyz/feed") == (500, "feed failed: TimeoutError: cancelled after 0.2 s")
            manager.stop()


async def test_metrics_of_the_app_are_shown_beside_the_others_and_removed_at_the_end(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    app = made(said)
    builds = app.metrics.register(Counter("myapp_builds", "Builds", ["result"], registry=None))
    builds.labels("good").inc(2)
    manager = Manager(app, server.config, QUIET)
    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_synced()
            assert 'myapp_builds_total{result="good"} 2.0' in manager.metrics.exposition()[0].decode()
            manager.stop()
    assert "myapp_builds" not in manager.metrics.exposition()[0].decode()
    await run_until(app, server, lambda: said, "it reconciles a second time")


@pytest.mark.parametrize("name", ["workqueue_depth", "kopylite_task_running", "python_info"])
def test_a_name_of_a_metric_that_is_taken_is_refused(name: str) -> None:
    app = made([])
    app.metrics.register(Gauge(name, "", registry=None))
    with pytest.raises(RegistrationError, match=f"(?s)app.metrics: .*{name}.*begin yours with the name of the app"):
        Manager(app, TinyServer().config)


def test_two_metrics_of_one_name_are_refused() -> None:
    app = made([])
    for _ in range(2):
        app.metrics.register(Gauge("myapp_depth", "", registry=None))
    with pytest.raises(RegistrationError, match="myapp_depth"):
        Manager(app, TinyServer().config)


async def test_a_missing_thing_of_the_state_says_where_to_put_it(server: TinyServer) -> None:
    app = made([])

    @app.on_start
    async def uses(ctx: Context) -> None:
        ctx.state[Pool].open = False

    with pytest.raises(LifecycleError, match=r"ctx\.state has no Pool: it is empty\. Put it there") as caught:
        await Manager(app, server.config, QUIET).run()
    assert isinstance(caught.value.__cause__, UsageError)


async def test_included_apps_bring_all_of_it(server: TinyServer) -> None:
    server.put("a")
    said: list[str] = []
    part = made(said)

    @part.on_start
    async def opens(ctx: Context) -> None:
        ctx.state[Pool] = Pool("part")

    @part.task
    async def works(ctx: Context) -> None:
        said.append("works")

    @part.health("part")
    async def check(ctx: Context) -> None: ...

    part.metrics.register(Gauge("part_depth", "", registry=None))
    app = App("whole")
    app.include(part)
    await run_until(app, server, lambda: len(said) >= 2, "both work")
    assert sorted(said) == ["reconcile by part", "works"]
    assert [spec.name for spec in app.life.checks] == ["part"]
    assert len(app.life.collectors) == 1
    with pytest.raises(RegistrationError, match="has a controller"):
        app.include(part)
    other = App("other")
    other.task(works)
    with pytest.raises(
        RegistrationError, match=r"app 'whole' has a task 'works' already.*@app\.task\(name='works-2'\)"
    ):
        app.include(other)
    with pytest.raises(RegistrationError, match="both have a task 'works'"):
        Manager([app, other], server.config, replace(QUIET))


async def test_a_manager_lives_in_the_lifespan_of_another_app(server: TinyServer) -> None:
    """As in docs/how-to/embed.md: a web framework's lifespan is an async context manager, entered in its event loop."""
    server.put("a")
    said: list[str] = []
    manager = Manager(made(said), server.config, QUIET)

    @asynccontextmanager
    async def lifespan(web: object) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_synced()
            yield
            manager.stop()

    with anyio.fail_after(40):
        async with lifespan(None):
            await eventually(lambda: said, "it reconciles while the web app serves")
    assert said == ["reconcile"]
