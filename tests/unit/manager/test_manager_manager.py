from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import anyio
import pytest
from pydantic import BaseModel

from kopylite.app import App
from kopylite.cache import Phase
from kopylite.client import ClientConfig, HttpTransport
from kopylite.controller import channel, periodic, watch
from kopylite.errors import ConnectionFailed, KopyliteError, KubeconfigError, RegistrationError, UsageError
from kopylite.manager import Manager, Options
from kopylite.manager import wiring as wiring_module
from kopylite.objects import CustomResource, Kind, Unstructured
from kopylite.reconcile import Context, Request
from tests.operators import eventually
from tests.tinyserver import TinyServer, tiny_server

pytestmark = pytest.mark.slow  # all of them together

Thing = Kind("example.com/v1", "Thing", plural="things", namespaced=True)
Part = Kind("example.com/v1", "Part", plural="parts", namespaced=True)

QUIET = Options(metrics_address="off", health_address="off", grace_period=5.0, connect_timeout=5.0)
SERVED = Options(metrics_address=":0", health_address=":0", grace_period=5.0)


@pytest.fixture
async def server() -> AsyncIterator[TinyServer]:
    async with tiny_server() as server:
        yield server


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


class Recorded:
    """An App with one controller of Things that notes its requests."""

    def __init__(self, name: str = "test") -> None:
        self.app = App(name)
        self.seen: list[Request] = []
        self.ran = asyncio.Event()
        self.app.reconciler(Thing)(self.reconcile)

    async def reconcile(self, ctx: Context, request: Request) -> None:
        self.seen.append(request)
        self.ran.set()

    async def until(self, *names: str) -> None:
        """Wait until Things of these names were reconciled."""
        with anyio.fail_after(10):
            while not set(names) <= {request.name for request in self.seen}:
                self.ran.clear()
                await self.ran.wait()


class Run:
    """A manager that runs in the background; its result once it ended."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.finished: bool | None = None
        self.ended = asyncio.Event()

    async def run(self) -> None:
        self.finished = await self.manager.run()
        self.ended.set()

    async def stop(self) -> bool | None:
        self.manager.stop()
        with anyio.fail_after(10):
            await self.ended.wait()
        return self.finished


@asynccontextmanager
async def running(app: App, server: TinyServer, options: Options = QUIET) -> AsyncIterator[Run]:
    run = Run(Manager(app, server.config, options))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.run)
        yield run
        if not run.ended.is_set():
            await run.stop()


async def get(run: Run, path: str) -> tuple[int, str]:
    address = run.manager.addresses["/" + path.strip("/").split("/")[0].split("?")[0]]
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as response:
        return response.status, await response.text()


@pytest.mark.parametrize(("workers", "chosen", "expected"), [(4, None, 64), (200, None, 200), (200, 10, 10)])
async def test_there_is_a_connection_for_each_worker(
    server: TinyServer, workers: int, chosen: int | None, expected: int
) -> None:
    made: list[ClientConfig] = []

    class Spy(HttpTransport):
        def __init__(self, config: ClientConfig, **settings: Any) -> None:
            made.append(config)
            super().__init__(config, **settings)

    config = replace(server.config, max_connections=chosen)
    manager = Manager(Recorded().app, config, replace(QUIET, workers=workers), connect=Spy)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(10):
            await manager.wait_synced()
        manager.stop()
    assert [one.max_connections for one in made] == [expected]


async def test_it_reconciles_what_is_there_and_what_comes_and_stops_in_order(server: TinyServer) -> None:
    server.put("a")
    recorded = Recorded()
    async with running(recorded.app, server) as run:
        await recorded.until("a")
        server.put("b", namespace="other")
        await recorded.until("a", "b")
        assert await run.stop() is True
    assert set(recorded.seen) == {Request("default", "a"), Request("other", "b")}


async def test_it_serves_metrics_and_probes_and_says_where(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.put("a")
    recorded = Recorded()
    async with running(recorded.app, server, SERVED) as run:
        with anyio.fail_after(10):
            await run.manager.wait_synced()
        await recorded.until("a")
        assert run.manager.addresses["/metrics"] == run.manager.addresses["/readyz"]
        assert (await get(run, "/healthz"))[0] == 200
        assert "[+]informer-thing.v1.example.com ok" in (await get(run, "/readyz?verbose"))[1]
        assert 'reconcile_total{controller="thing",result="success"} 1.0' in (await get(run, "/metrics"))[1]
        assert f"listening on http://{run.manager.addresses['/metrics']}" in caplog.text


async def test_metrics_and_probes_may_have_an_address_each(server: TinyServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    options = Options(metrics_address=":0", health_address=f":{free}")
    async with running(Recorded().app, server, options) as run:
        with anyio.fail_after(10):
            await run.manager.wait_synced()
        assert run.manager.addresses["/healthz"].port == free != run.manager.addresses["/metrics"].port


async def test_a_stop_lets_running_reconciles_end_with_a_working_client_and_is_not_ready_meanwhile(
    server: TinyServer,
) -> None:
    server.put("slow")
    began, go_on, read = asyncio.Event(), asyncio.Event(), list[str]()
    app = App("test")

    @app.reconciler(Thing)
    async def reconcile(ctx: Context, request: Request) -> None:
        began.set()
        await go_on.wait()
        read.append((await ctx.client.live.get(Thing, request)).name)

    async with running(app, server, SERVED) as run:
        with anyio.fail_after(10):
            await began.wait()
            run.manager.stop()
            assert await get(run, "/readyz/running") == (500, "running failed: stopping")
            assert (await get(run, "/healthz"))[0] == 200
            go_on.set()
            await run.ended.wait()
    assert read == ["slow"]
    assert run.finished is True


async def test_reconciles_that_outlast_the_grace_period_are_cancelled_and_told(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.put("endless")
    began, cancelled = asyncio.Event(), asyncio.Event()
    app = App("test")

    @app.reconciler(Thing)
    async def reconcile(ctx: Context, request: Request) -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    options = Options(metrics_address="off", health_address="off", grace_period=0.1)
    async with running(app, server, options) as run:
        with anyio.fail_after(10):
            await began.wait()
        assert await run.stop() is False
    assert cancelled.is_set()
    assert "end of the grace period" in caplog.text


async def test_a_forbidden_kind_blocks_no_other_controller_and_its_rbac_rule_is_printed(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.forbidden.add("parts")
    server.put("a")
    recorded = Recorded()
    recorded.app.reconciler(Part)(recorded.reconcile)
    async with running(recorded.app, server, SERVED) as run:
        await recorded.until("a")
        status, text = await get(run, "/readyz/informer-part.v1.example.com")
        assert status == 500
        assert "Forbidden" in text
        assert (await get(run, "/readyz/controller-thing"))[0] == 200
        await eventually(lambda: 'resources: ["parts"]' in caplog.text, "the rule was printed")


async def test_a_namespace_that_may_not_be_watched_stops_no_other_and_joins_when_it_may(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.closed.add("forbidden")
    server.put("a", namespace="fine")
    server.put("b", namespace="forbidden")
    recorded = Recorded()
    options = replace(SERVED, namespaces=("fine", "forbidden", "empty"))
    async with running(recorded.app, server, options) as run:
        await recorded.until("a")
        with anyio.fail_after(20):
            await run.manager.wait_synced()
        await eventually(lambda: "does not work in namespace forbidden yet" in caplog.text, "it was told of")
        await eventually(lambda: "in a Role of namespace forbidden" in caplog.text, "the rule was told")
        status, text = await get(run, "/readyz?verbose")
        assert status == 200, "it keeps nothing from being ready"
        assert "thing.v1.example.com:fine" in text
        assert "thing.v1.example.com:forbidden" not in text
        assert 'kopylite_namespaces{state="refused"} 1.0' in (await get(run, "/metrics"))[1]
        assert recorded.seen == [Request("fine", "a")]
        server.closed.clear()
        await recorded.until("b")
        await eventually(lambda: "controller thing begins in namespace forbidden" in caplog.text, "it joined")
        assert "thing.v1.example.com:forbidden" in (await get(run, "/readyz?verbose"))[1]


async def test_where_all_namespaces_are_refused_nothing_is_ready(server: TinyServer) -> None:
    server.closed |= {"one", "two"}
    async with running(Recorded().app, server, replace(SERVED, namespaces=("one", "two"))) as run:
        await eventually(lambda: server.requests.count("GET /apis/example.com/v1/namespaces/two/things"), "it asked")
        for name in ("one", "two"):
            assert "Forbidden" in (await get(run, f"/readyz/informer-thing.v1.example.com:{name}"))[1]
        assert (await get(run, "/readyz"))[0] == 500


async def test_what_stops_many_watches_alike_is_a_few_lines_and_not_one_for_each(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    names = tuple(f"n{number}" for number in range(30))
    server.closed.update(names)
    recorded = Recorded()
    async with running(recorded.app, server, replace(QUIET, namespaces=names)) as run:
        watches = run.manager.metrics.informer_statistics
        await eventually(lambda: "Missing are, in Roles of namespace" in caplog.text, "the rule was told")
        await eventually(lambda: all("Forbidden" in now.problem for now in watches()), "every watch was refused")
        assert len([message for message in caplog.messages if "Forbidden" in message]) == 1
        server.closed.clear()
        with anyio.fail_after(30):
            await run.manager.wait_synced()


async def test_a_namespace_that_does_not_exist_is_told_of(server: TinyServer, caplog: pytest.LogCaptureFixture) -> None:
    server.namespaces = {"fine"}
    recorded = Recorded()
    server.put("a", namespace="fine")
    async with running(recorded.app, server, replace(QUIET, namespaces=("fine", "fnie", "late"))):
        await recorded.until("a")
        await eventually(lambda: "there is no namespace fnie, late: " in caplog.text, "it was told of")


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, "Client sent an HTTP request to an HTTPS server.\n", "speaks TLS: write https:// in the kubeconfig's"),
        (404, "<html>nothing here</html>", "is no Kubernetes API server: its /version answers 404"),
        (302, "", "is no Kubernetes API server"),
    ],
)
async def test_what_is_no_api_server_is_not_said_to_be_connected(
    server: TinyServer, caplog: pytest.LogCaptureFixture, status: int, body: str, words: str
) -> None:
    server.foreign = (status, body)
    with pytest.raises(ConnectionFailed, match=re.escape(words)):
        await Manager(Recorded().app, server.config, replace(QUIET, connect_timeout=0.6)).run()
    assert "connected to" not in caplog.text


async def test_a_cluster_scoped_owner_is_never_taken_for_a_namespaced_one(server: TinyServer) -> None:
    thing, part = Kind("example.com/v1", "Thing"), Kind("example.com/v1", "Part", "parts", namespaced=True)
    server.cluster_scoped.add("things")
    server.discoverable.clear()
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": "u", "controller": True}
    server.put("p", plural="parts", owner=owner)
    server.put("a", namespace="")
    found: list[tuple[Request, bool]] = []
    app = App("test")

    @app.reconciler(thing, owns=[part])
    async def reconcile(ctx: Context, request: Request) -> None:
        found.append((request, await ctx.client.find(thing, request) is not None))

    async with running(app, server) as run:
        watched = "GET /apis/example.com/v1/parts"
        await eventually(lambda: server.requests.count(watched) >= 2, "the parts were listed, and the scope not known")
        server.discoverable.set()
        with anyio.fail_after(20):
            await run.manager.wait_synced()
        server.put("p", plural="parts", owner=owner, number=2)
        await eventually(lambda: len(found) >= 2, "the part's change ran its owner")
    assert set(found) == {(Request("", "a"), True)}


async def test_a_scope_that_is_declared_wrongly_is_told_of_and_does_no_harm(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The CRD was installed by somebody else: its objects are in no namespace, though the class says so."""
    server.cluster_scoped.add("things")
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": "u", "controller": True}
    server.put("p", plural="parts", owner=owner)
    server.put("a", namespace="")
    found: list[tuple[Request, bool]] = []
    app = App("test")

    @app.reconciler(Thing, owns=[Part])
    async def reconcile(ctx: Context, request: Request) -> None:
        found.append((request, await ctx.client.find(Thing, request) is not None))

    async with running(app, server) as run:
        with anyio.fail_after(20):
            await run.manager.wait_synced()
        await eventually(lambda: found, "it was reconciled")
        found.clear()
        server.put("p", plural="parts", owner=owner, number=2)
        await eventually(lambda: found, "the part's change ran its owner")
    assert found == [(Request("", "a"), True)]
    assert "Thing.example.com/v1 is declared as namespaced, and on this server it is cluster-scoped" in caplog.text


async def test_a_cluster_scoped_kind_is_watched_once_and_not_once_for_each_namespace(server: TinyServer) -> None:
    server.cluster_scoped.add("things")
    server.put("a", namespace="")
    app = App("test")
    seen: list[Request] = []

    @app.reconciler(Kind("example.com/v1", "Thing"))
    async def reconcile(ctx: Context, request: Request) -> None:
        seen.append(request)

    async with running(app, server, replace(QUIET, namespaces=("one", "two"))) as run:
        with anyio.fail_after(20):
            await run.manager.wait_synced()
        await eventually(lambda: seen, "it was reconciled")
        assert [str(now.scope) for now in run.manager.metrics.informer_statistics()] == ["Thing.example.com/v1"]
    assert seen == [Request("", "a")]


async def test_a_manager_runs_once_and_a_second_run_does_the_first_no_harm(server: TinyServer) -> None:
    recorded = Recorded()
    async with running(recorded.app, server, SERVED) as run:
        await recorded_ready(run)
        for _ in range(2):
            with pytest.raises(UsageError, match="make a new one"):
                await run.manager.run()
        server.put("a")
        await recorded.until("a")
        assert (await get(run, "/readyz"))[0] == 200
        assert await run.stop() is True
        with pytest.raises(UsageError, match="make a new one"):
            await run.manager.run()


async def test_a_manager_that_was_stopped_before_begins_nothing(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    manager = Manager(Recorded().app, server.config, SERVED)
    manager.stop()
    assert await manager.run() is True
    assert "stopped before it ran" in caplog.text
    assert server.requests == []


async def recorded_ready(run: Run) -> None:
    with anyio.fail_after(20):
        await run.manager.wait_synced()


async def test_a_kind_that_appears_later_attaches_by_itself(server: TinyServer) -> None:
    server.served.remove("things")
    server.put("a")
    recorded = Recorded()
    async with running(recorded.app, server) as run:
        await eventually(lambda: any(request.endswith("/things") for request in server.requests), "it was asked for")
        assert not recorded.seen
        server.served.add("things")
        with anyio.fail_after(20):
            await run.manager.wait_synced()
        await recorded.until("a")


async def test_a_map_function_is_not_called_before_the_caches_of_its_controller_are_complete(
    server: TinyServer,
) -> None:
    server.served.remove("things")
    server.put("a", part="p")
    server.put("p", plural="parts")
    found: list[list[str]] = []
    app = App("test")

    async def users_of(part: Unstructured, ctx: Context) -> list[Request]:
        users = await ctx.client.list(Thing, namespace=part.namespace, index={"spec.part": part.name})
        found.append([user.name for user in users])
        return [Request.of(user) for user in users]

    @app.reconciler(Thing, watches=[watch(Part, map=users_of)])
    async def reconcile(ctx: Context, request: Request) -> None:
        return None

    async with running(app, server) as run:
        read = run.manager.metrics
        await eventually(
            lambda: any(now.phase is Phase.WATCHING for now in read.informer_statistics()), "Parts were watched"
        )
        server.served.add("things")
        await eventually(lambda: found, "the map function was called")
    assert found == [["a"]]


class PartSpec(BaseModel):
    number: int = 0


class TypedPart(CustomResource[PartSpec, None], group="example.com", version="v1", kind="Part"):
    pass


async def test_an_object_that_a_map_function_cannot_be_given_is_told_of_and_blocks_no_other(
    server: TinyServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.put("bad", plural="parts", number="one")
    server.put("good", plural="parts", number=1)
    mapped: list[str] = []
    app = App("test")

    async def users_of(part: TypedPart, ctx: Context) -> list[Request]:
        mapped.append(part.name)
        return [Request.of(part)]

    @app.reconciler(Thing, watches=[watch(TypedPart, map=users_of)])
    async def reconcile(ctx: Context, request: Request) -> None:
        return None

    async with running(app, server) as run:
        await eventually(lambda: mapped == ["good"], "the good one was mapped")
        problem = "left out: Part default/bad does not fit its model: spec.number: Input should be a valid integer"
        await eventually(lambda: problem in caplog.messages, "the bad one was told of")
        assert run.manager.metrics.skipped == 1
        server.put("bad", plural="parts", number=2)
        await eventually(lambda: mapped == ["good", "bad"], "the mended one was mapped")
    assert "map function" not in caplog.text, "no retries"


async def test_controllers_wait_for_kinds_that_are_only_read_but_not_for_ever(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring_module, "GATE_SECONDS", 0.3)
    server.served.remove("parts")
    server.put("a")
    recorded = Recorded()
    recorded.app.cache(Part)
    async with running(recorded.app, server, SERVED) as run:
        await recorded.until("a")
        assert (await get(run, "/readyz/informer-part.v1.example.com"))[0] == 500


async def test_only_the_asked_for_namespaces_are_watched(server: TinyServer) -> None:
    server.put("a", namespace="one")
    server.put("b", namespace="two")
    server.put("c", namespace="three")
    recorded = Recorded()
    options = Options(namespaces=("one", "two"), metrics_address="off", health_address="off")
    async with running(recorded.app, server, options):
        await recorded.until("a", "b")
    assert not any(request == "GET /apis/example.com/v1/things" for request in server.requests)
    assert {request.name for request in recorded.seen} == {"a", "b"}


async def test_an_unreachable_server_is_tried_until_the_limit_and_each_try_is_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with tiny_server() as gone:
        config = gone.config
    options = Options(metrics_address="off", health_address="off", connect_timeout=2.0)
    with pytest.raises(ConnectionFailed, match=r"gave up after \d s.*the test"):
        await Manager(Recorded().app, config, options).run()
    assert caplog.text.count("trying again") >= 2


async def test_a_server_that_comes_up_late_is_found(server: TinyServer) -> None:
    server.answer = 503
    server.put("a")
    recorded = Recorded()
    async with running(recorded.app, server):
        await eventually(lambda: server.requests, "it tried")
        server.answer = None
        await recorded.until("a")


async def test_refused_credentials_are_a_fault_of_the_kubeconfig(server: TinyServer) -> None:
    server.answer = 401
    options = Options(metrics_address="off", health_address="off", connect_timeout=0.1)
    with pytest.raises(KubeconfigError, match="refuses the credentials"):
        await Manager(Recorded().app, server.config, options).run()


async def test_a_stop_while_the_server_is_not_reached_ends_at_once(server: TinyServer) -> None:
    server.answer = 503
    async with running(Recorded().app, server) as run:
        await eventually(lambda: server.requests, "it tried")
        assert await run.stop() is True


async def test_several_managers_in_one_process_share_nothing(server: TinyServer) -> None:
    server.put("a")
    first, second = Recorded("first"), Recorded("second")
    async with running(first.app, server, SERVED) as one, running(second.app, server, SERVED) as two:
        await first.until("a")
        await second.until("a")
        for run in (one, two):
            assert 'reconcile_total{controller="thing",result="success"} 1.0' in (await get(run, "/metrics"))[1]
        assert await one.stop() is True
        server.put("b")
        await second.until("a", "b")
    assert [request.name for request in first.seen] == ["a"]


async def test_a_part_that_fails_ends_the_run_with_its_error(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, now: float) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("kopylite.diagnostics.WaitingReport.look", broken)
    with anyio.fail_after(10), pytest.raises(ExceptionGroup) as caught:
        await Manager(Recorded().app, server.config, QUIET).run()
    assert caught.group_contains(ZeroDivisionError)


async def test_a_part_that_ends_by_itself_ends_the_run(server: TinyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends(self: object) -> None:
        return None

    monkeypatch.setattr("kopylite.diagnostics.WaitingReport.run", ends)
    with anyio.fail_after(10), pytest.raises(ExceptionGroup) as caught:
        await Manager(Recorded().app, server.config, QUIET).run()
    assert caught.group_contains(RuntimeError, match="the waiting report ended by itself")


async def test_a_taken_port_fails_before_anything_else(server: TinyServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = Options(metrics_address=f":{port}", health_address="off")
        with pytest.raises(UsageError, match=f"--metrics-address: cannot listen on 127.0.0.1:{port} for /metrics"):
            await Manager(Recorded().app, server.config, options).run()
        both = Options(metrics_address=f":{port}", health_address=f":{port}")
        with pytest.raises(UsageError, match="--metrics-address and --health-address: cannot listen"):
            await Manager(Recorded().app, server.config, both).run()
    assert server.requests == []


async def test_who_waits_for_a_manager_that_fails_is_told_why(server: TinyServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = Options(metrics_address=f":{taken.getsockname()[1]}", health_address="off")
        manager = Manager(Recorded().app, server.config, options)

        async def run() -> None:
            with pytest.raises(UsageError):
                await manager.run()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            with anyio.fail_after(20), pytest.raises(KopyliteError, match="in sync: UsageError: --metrics") as raised:
                await manager.wait_synced()
    assert isinstance(raised.value.__cause__, UsageError)
    with anyio.fail_after(20), pytest.raises(KopyliteError, match="ended before"):
        await manager.wait_synced()


async def test_who_waits_for_a_manager_that_is_stopped_is_told_so(server: TinyServer) -> None:
    server.served.remove("things")
    manager = Manager(Recorded().app, server.config, QUIET)

    async def stop_when_it_waits() -> None:
        await eventually(lambda: any("Thing" in text for text in manager.waiting()), "it says what it waits for")
        manager.stop()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        tasks.start_soon(stop_when_it_waits)
        with anyio.fail_after(20), pytest.raises(KopyliteError, match="in sync: it was stopped"):
            await manager.wait_synced()


def test_an_app_without_controllers_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"'empty' has no controllers.*@app\.reconciler"):
        Manager(App("empty"), TinyServer().config)


def test_a_wrong_address_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="8080"):
        Manager(Recorded().app, TinyServer().config, Options(metrics_address="8080"))


@pytest.mark.parametrize("options", [{"workers": 0}, {"namespaces": ("",)}, {"namespaces": "shop"}])
def test_options_are_checked_when_they_are_made(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Options(**options)  # type: ignore[arg-type]


async def test_timers_and_channels_bring_keys_too(server: TinyServer) -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []
    both = asyncio.Event()

    async def every_tick(ctx: Context) -> list[Request]:
        return [Request.of(thing) for thing in await ctx.client.list(Thing)]

    async def messages(ctx: Context) -> AsyncIterator[Request]:
        yield Request("default", "announced")

    async def reconcile(ctx: Context, request: Request) -> None:
        seen.append((request.name, ctx.reasons))
        if {("a", ("every_tick",)), ("announced", ("announced by messages",))} <= set(seen):
            both.set()

    app = App("test")
    app.reconciler(Thing, sources=[periodic(every_tick, every=0.05), channel(messages)])(reconcile)
    server.put("a")
    async with running(app, server):
        with anyio.fail_after(10):
            await both.wait()
