"""Operators whose namespaces come and go: on each control plane, as whoever runs them may see it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from kopylite import App, Context, Kind, Request, Result
from kopylite.client import Client, load_config
from kopylite.errors import Forbidden, NotFound, RequestTimeout
from kopylite.manager import Manager, Options
from kopylite.objects import Unstructured
from kopylite.testing import Cluster, EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP, SECRET, NAMESPACE = Kind("v1", "ConfigMap"), Kind("v1", "Secret"), Kind("v1", "Namespace")
RBAC = "rbac.authorization.k8s.io/v1"
FINALIZER = "example.com/held"
# The event loop makes no difference here, and control planes cost time.
pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])

MANY, FLAPS = 60, 30


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


class Teams:
    """Namespaces of a test of its own; `client` has every right."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.prefix = f"t{uuid.uuid4().hex[:8]}"
        self.made: list[str] = []

    def name(self, team: str) -> str:
        return f"{self.prefix}-{team}"

    async def make(self, team: str, **labels: str) -> str:
        name = self.name(team)
        metadata = {"name": name, "labels": labels}
        await self.client.create(Unstructured(apiVersion="v1", kind="Namespace", metadata=metadata))
        self.made.append(name)
        return name

    async def label(self, team: str, **labels: str | None) -> None:
        await self.client.patch(NAMESPACE, self.name(team), patch={"metadata": {"labels": labels}})

    async def put(self, team: str, name: str = "a", *, finalizers: tuple[str, ...] = ()) -> None:
        metadata = {"name": name, "namespace": self.name(team), "finalizers": [*finalizers]}
        await self.client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))

    async def delete(self, team: str) -> None:
        await self.client.delete(NAMESPACE, self.name(team))


@pytest.fixture
async def teams(client: Client) -> AsyncIterator[Teams]:
    teams = Teams(client)
    yield teams
    for name in teams.made:
        for each in await client.live.list(CONFIG_MAP, namespace=name):
            if each.finalizers:
                await client.live.patch(CONFIG_MAP, each, {"metadata": {"finalizers": None}})
        with suppress(NotFound):
            await client.delete(NAMESPACE, name)


class Noted:
    """An App that notes which ConfigMaps it reconciled, as TEAM/NAME, but for the one that each namespace has."""

    def __init__(self, teams: Teams) -> None:
        self.app = App("noted")
        self.seen: list[str] = []
        self._teams = teams
        self.app.reconciler(CONFIG_MAP, owns=[SECRET])(self.reconcile)

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        if request.name == "kube-root-ca.crt":
            return None
        self.seen.append(f"{request.namespace.removeprefix(self._teams.prefix + '-')}/{request.name}")
        found = await ctx.client.find(CONFIG_MAP, request)
        if found is not None and found.deletion_timestamp:
            await ctx.client.remove_finalizer(found, FINALIZER)
        return Result(requeue_after=0.05) if request.name == "again" else None

    async def until(self, *names: str) -> None:
        await eventually(lambda: set(names) <= {*self.seen}, f"{names} were reconciled")


def watched(manager: Manager) -> set[str]:
    return {informer.scope.namespace for informer in manager._informers()} - {""}


async def test_namespaces_that_fit_a_glob_are_followed_as_they_come_and_go(cluster: Cluster, teams: Teams) -> None:
    await teams.make("a")
    await teams.make("other")
    await teams.put("a")
    await teams.put("other")
    noted = Noted(teams)
    async with cluster.running(noted.app, namespaces=[f"{teams.prefix}-[a-z]", teams.name("fixed")]) as manager:
        await noted.until("a/a")
        for team in ("b", "fixed"):
            await teams.make(team)
            await teams.put(team, "held", finalizers=(FINALIZER,))
        await noted.until("b/held", "fixed/held")
        assert watched(manager) == {teams.name(team) for team in ("a", "b", "fixed")}
        await teams.delete("b")

        async def is_gone() -> bool:
            return await teams.client.live.find(NAMESPACE, teams.name("b")) is None

        await eventually(is_gone, "its finalizer was removed while it was Terminating, so it could go", limit=60)
        await eventually(lambda: watched(manager) == {teams.name("a"), teams.name("fixed")}, "it was let go")
        text = manager.metrics.exposition()[0].decode()
        assert teams.name("a") in text
        assert teams.name("b") not in text
        assert {scope.namespace for scope in manager.metrics._informers} == {"", teams.name("a"), teams.name("fixed")}
    assert "other/a" not in noted.seen


async def test_a_namespace_that_loses_its_label_is_left_with_its_keys(cluster: Cluster, teams: Teams) -> None:
    await teams.make("a", tier=teams.prefix)
    await teams.make("b")
    noted, app = Noted(teams), App("held")
    running, go_on, lists = anyio.Event(), anyio.Event(), list[int]()

    @app.reconciler(CONFIG_MAP, name="held")
    async def reconcile(ctx: Context, request: Request) -> None:
        if request.name == "held":
            running.set()
            await go_on.wait()
            lists.append(len(await ctx.client.list(CONFIG_MAP)))
            raise ValueError("this would be run again")

    noted.app.include(app)
    selector = {"tier": teams.prefix}
    async with cluster.running(noted.app, namespaces_labelled=selector) as manager:
        for name in ("again", "held"):
            await teams.put("a", name)
            await teams.put("b", name)
        await eventually(lambda: noted.seen.count("a/again") > 2, "it runs again and again")
        with anyio.fail_after(10):
            await running.wait()
        await teams.label("a", tier=None)
        await eventually(lambda: not watched(manager), "it was let go")
        runs = len(noted.seen)
        go_on.set()
        held = next(one for one in manager.controllers if one.name == "held")
        await eventually(lambda: held.runs, "the run that had begun has ended")
        await eventually(lambda: lists, "its list was answered")
        assert lists == [0], "no namespace is in scope"
        await anyio.sleep(0.3)  # five rounds of what would go on
        assert len(noted.seen) <= runs + 1, "at most the run that had begun"
        for controller in manager.controllers:
            now = controller.statistics().queue
            assert (now.ready, now.waiting, now.failing, now.running) == (0, 0, 0, 0)
            controller.enqueue(Request(teams.name("a"), "again"), "somebody asks for it all the same")
            assert controller.statistics().queue.ready == 0
        await teams.label("a", tier=teams.prefix)
        await teams.label("b", tier=teams.prefix)
        runs = noted.seen.count("a/again")
        await noted.until("b/again", "b/held")
        await eventually(lambda: noted.seen.count("a/again") > runs, "it is back")


async def allow(client: Client, name: str, user: str, namespace: str, *rules: tuple[str, str]) -> None:
    """Let a user do something with some resources, in one namespace or ("") all; as "verbs", "resources"."""
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    wire = [{"apiGroups": [""], "verbs": verbs.split(), "resources": what.split()} for verbs, what in rules]
    await client.create(Unstructured(apiVersion=RBAC, kind=kind, metadata=metadata, rules=wire))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    await client.create(
        Unstructured(apiVersion=RBAC, kind=f"{kind}Binding", metadata=metadata, roleRef=reference, subjects=[subject])
    )


@asynccontextmanager
async def managed(app: App, cluster: Cluster, user: str, options: Options) -> AsyncIterator[Manager]:
    manager = Manager(app, load_config(str(cluster.user_kubeconfig(user))), options)  # type: ignore[attr-defined]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        yield manager
        manager.stop()


async def test_what_is_refused_is_named_with_its_rule_and_joins_when_it_is_allowed(
    cluster: Cluster, teams: Teams, caplog: pytest.LogCaptureFixture
) -> None:
    user = teams.prefix
    for team in ("a", "b", "fixed"):
        await teams.make(team)
        await teams.put(team)
    everything = ("get list watch", "configmaps secrets")
    for team in ("a", "fixed"):
        await allow(teams.client, user, user, teams.name(team), everything)
    noted, errors = Noted(teams), list[str]()
    asks = App("asks")

    @asks.reconciler(SECRET, name="asks")
    async def ask(ctx: Context, request: Request) -> None:
        try:
            await ctx.client.list(CONFIG_MAP)
        except (RequestTimeout, Forbidden) as error:
            errors.append(str(error))

    noted.app.include(asks)
    options = Options(
        metrics_address="off", health_address="off", namespaces=(f"{teams.prefix}-[a-z]", teams.name("fixed"))
    )
    async with managed(noted.app, cluster, user, options) as manager:
        await noted.until("fixed/a")
        await eventually(lambda: 'resources: ["namespaces"]' in caplog.text, "the rule was told")
        assert "in a ClusterRole, bound to" in caplog.text
        assert any("Namespace" in reason for reason in manager.waiting())
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": teams.name("fixed")}}
        await teams.client.create(secret)
        await eventually(lambda: errors, "a list over the whole scope is no list of a part of it")
        assert "is not known yet: 403 Forbidden" in errors[0]
        await allow(teams.client, user, user, "", ("list watch", "namespaces"))
        await noted.until("a/a")
        await eventually(lambda: f"Role of namespace {teams.name('b')}" in caplog.text, "the refused one is named")
        with anyio.fail_after(20):
            await manager.wait_synced()
        assert manager._parts is not None
        assert manager._parts.namespaces.counts() == {"working": 2, "refused": 1, "starting": 0}
        assert caplog.text.count(f"Role of namespace {teams.name('b')}") == 1
        await allow(teams.client, user, user, teams.name("b"), everything)
        await noted.until("b/a")
        await eventually(lambda: manager._parts.namespaces.counts()["working"] == 3, "it has joined")  # type: ignore[union-attr]


async def test_many_at_once_are_taken_up_and_one_that_flaps_costs_a_few_lists() -> None:
    app, seen = App("many"), set[str]()

    @app.reconciler(CONFIG_MAP)
    async def reconcile(ctx: Context, request: Request) -> None:
        seen.add(f"{request.namespace}/{request.name}")

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        teams = Teams(client)
        names = [teams.name(f"n{number}") for number in range(MANY)]
        async with cluster.running(app, namespaces_labelled="tier=prod") as manager:
            for number in range(MANY):
                await teams.make(f"n{number}", tier="prod")
                await teams.put(f"n{number}")
            await eventually(lambda: seen == {f"{name}/a" for name in names}, "all were taken up", limit=60)
            before = sum(manager.metrics.client.requests.values())
            for _ in range(FLAPS):
                await teams.label("n0", tier=None)
                await teams.label("n0", tier="prod")
            assert sum(manager.metrics.client.requests.values()) - before < FLAPS, "not a list for each flap"
            await teams.put("n0", "late")
            await eventually(lambda: f"{names[0]}/late" in seen, "it is followed again", limit=60)
            assert watched(manager) == {*names}
