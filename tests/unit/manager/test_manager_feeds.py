from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from kopylite import App, Context, Kind, Request, Unstructured, watch
from kopylite.client import Client, load_config
from kopylite.leaderelection import LEASE
from kopylite.manager import Manager, Options
from kopylite.objects import ObjectKey
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

# The event loop makes no difference here, and control planes cost time.
pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])

CONFIG_MAP, SECRET, SERVICE_ACCOUNT = Kind("v1", "ConfigMap"), Kind("v1", "Secret"), Kind("v1", "ServiceAccount")
NAMESPACE = Kind("v1", "Namespace")
OPTIONS = Options(
    metrics_address="off", health_address="off", grace_period=5.0,
    lease_duration=2, renew_deadline=1, retry_period=0.2,
)  # fmt: skip


@pytest.fixture(autouse=True)
async def nothing_there(embedded_cluster: EmbeddedCluster) -> AsyncIterator[None]:
    yield
    async with embedded_cluster.client() as client:
        for each in await client.live.list(NAMESPACE):
            if each.name.startswith(("standby-", "parts-", "feeds-")):
                await client.delete(each)

        async def gone() -> bool:
            return not any(
                n.name.startswith(("standby-", "parts-", "feeds-")) for n in await client.live.list(NAMESPACE)
            )

        await eventually(gone, "nothing is left for the next event loop")


class Seen:
    """An App that knows ConfigMaps, what they own, Secrets that are mapped to them, and ServiceAccounts."""

    def __init__(self, name: str, **options: int) -> None:
        self.name = name
        self.app = App(name, **options)  # type: ignore[arg-type]
        self.runs: list[str] = []
        self.mapped: list[str] = []
        self.app.cache(SERVICE_ACCOUNT)
        self.app.reconciler(CONFIG_MAP, labels=f"of={name}", watches=[watch(SECRET, map=self.users)])(self.reconcile)

    async def users(self, secret: Unstructured, ctx: Context) -> list[Request]:
        self.mapped.append(secret.namespace)
        return [Request(secret.namespace, secret.name), Request("elsewhere", "a")]

    async def reconcile(self, ctx: Context, request: Request) -> None:
        self.runs.append(f"{request.namespace}/{request.name}")

    async def make(self, client: Client, namespace: str, *objects: str) -> None:
        if await client.live.find(NAMESPACE, namespace) is None:
            await client.create(Unstructured(apiVersion="v1", kind="Namespace", metadata={"name": namespace}))
            metadata = {"name": "s", "namespace": namespace}
            await client.create(Unstructured(apiVersion="v1", kind="Secret", metadata=metadata))
        for name in objects:
            labelled = {"name": name, "namespace": namespace, "labels": {"of": self.name}}
            await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=labelled))


@asynccontextmanager
async def managed(
    app: App, cluster: EmbeddedCluster, namespaces: str, options: Options = OPTIONS
) -> AsyncIterator[tuple[Manager, Client]]:
    options = replace(options, namespaces=(namespaces,))
    manager = Manager(app, load_config(str(cluster.kubeconfig)), options)
    async with anyio.create_task_group() as tasks, cluster.client() as client:
        tasks.start_soon(manager.run)
        yield manager, client
        manager.stop()


def scopes(manager: Manager, namespace: str) -> list[str]:
    """What is watched in a namespace, and how many hear of it."""
    now = manager.metrics.informer_statistics()
    return sorted(f"{one.scope.kind.kind} {one.handlers}" for one in now if one.scope.namespace == namespace)


async def test_a_standby_follows_the_scope_and_its_terms_leave_nothing_behind(
    embedded_cluster: EmbeddedCluster,
) -> None:
    seen = Seen("standby", leader_election=True)
    async with managed(seen.app, embedded_cluster, "standby-*") as (manager, client):
        await seen.make(client, "standby-a", "a")
        await eventually(lambda: "standby-a/a" in seen.runs, "it leads and works")
        await eventually(lambda: "standby-a/s" in seen.runs, "what is mapped there is run")
        at_work = scopes(manager, "standby-a")
        assert [one.partition(" ")[0] for one in at_work] == ["ConfigMap", "Secret", "ServiceAccount"]
        lease = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 4}}
        await client.live.patch(LEASE, ObjectKey("default", "standby"), lease)
        await eventually(lambda: not manager.controllers, "somebody else leads")
        await seen.make(client, "standby-b", "b")
        await eventually(lambda: len(scopes(manager, "standby-b")) == 3, "a standby is warm there, too")
        assert "standby-b/b" not in seen.runs
        await eventually(lambda: "standby-b/b" in seen.runs, "it leads again")
        await eventually(lambda: "standby-b/s" in seen.runs, "what is mapped there is run")
        assert not any(run.startswith("elsewhere/") for run in seen.runs), "that is not in scope"
        await eventually(lambda: scopes(manager, "standby-a") == at_work, "as many hear of it as in the first term")
        assert scopes(manager, "standby-b") == at_work
        await client.delete(NAMESPACE, "standby-b")
        await eventually(lambda: not scopes(manager, "standby-b"), "it is let go by all")
        assert len(manager.controllers[0].sources) == len([*scopes(manager, "standby-a"), "the scope itself"])


async def test_shards_follow_the_scope(embedded_cluster: EmbeddedCluster) -> None:
    seen, steady = Seen("parts", shards=2), replace(OPTIONS, lease_duration=15, renew_deadline=10)
    names = [f"m{number}" for number in range(8)]
    async with managed(seen.app, embedded_cluster, "parts-*", steady) as (manager, client):
        await eventually(lambda: len(manager.controllers) == 2, "it has both shards")
        await seen.make(client, "parts-a", *names)
        await eventually(lambda: {*seen.runs} == {f"parts-a/{name}" for name in names}, "each is done")
        assert len(seen.runs) == len(names), "by one shard"
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "m0", "namespace": "parts-a"}}
        await client.create(secret)
        await eventually(lambda: seen.runs.count("parts-a/m0") == 2, "the one shard that has it heard of it")
        assert sum(one.startswith("ConfigMap") for one in scopes(manager, "parts-a")) == 2
        await client.delete(NAMESPACE, "parts-a")
        await eventually(lambda: not scopes(manager, "parts-a"), "it is let go by both")


@pytest.mark.parametrize("declared", ["feeds-x", None])
async def test_what_is_declared_for_a_namespace_stays_whatever_the_scope_is(
    embedded_cluster: EmbeddedCluster, declared: str | None
) -> None:
    app = App("declared")
    app.cache(SECRET, namespace=declared)

    @app.reconciler(CONFIG_MAP)
    async def reconcile(ctx: Context, request: Request) -> None: ...

    async with managed(app, embedded_cluster, "feeds-*") as (manager, client):
        await Seen("declared").make(client, "feeds-x")
        await eventually(lambda: len(scopes(manager, "feeds-x")) == 2, "both are watched there")
        await client.delete(NAMESPACE, "feeds-x")
        left = ["Secret"] if declared else []
        await eventually(
            lambda: [one.split()[0] for one in scopes(manager, "feeds-x")] == left, "what follows the scope is let go"
        )


async def test_a_timer_runs_each_object_in_scope_until_it_is_gone(embedded_cluster: EmbeddedCluster) -> None:
    seen, ticks = Seen("feeds"), list[str]()

    @seen.app.timer(CONFIG_MAP, labels="of=feeds", every=0.4, jitter=0.0)
    async def tick(ctx: Context, request: Request) -> None:
        ticks.append(request.name)

    async with managed(seen.app, embedded_cluster, "feeds-*") as (manager, client):
        await seen.make(client, "feeds-t", "a", "b")
        await eventually(lambda: ticks.count("a") > 2 and ticks.count("b") > 2, "each runs again and again")
        await client.patch(CONFIG_MAP, ObjectKey("feeds-t", "a"), patch={"data": {"a": "b"}})
        await eventually(lambda: seen.runs.count("feeds-t/a") == 2, "an event runs the reconcile, and not the timer")
        timer = next(one for one in manager.controllers if one.name == "tick")
        assert timer.statistics().queue.waiting <= 2, "each is there once"
        await client.delete(CONFIG_MAP, ObjectKey("feeds-t", "a"))
        await eventually(lambda: timer.statistics().queue.waiting == 1, "it is let go")
        await client.delete(NAMESPACE, "feeds-t")
        await eventually(lambda: not scopes(manager, "feeds-t"), "the namespace is let go")
        assert timer.statistics().queue.waiting == 0
