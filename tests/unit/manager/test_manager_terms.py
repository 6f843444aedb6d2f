"""What the terms of a leader leave behind: nothing."""

from __future__ import annotations

from functools import partial

import anyio

from kopylite import App, Context, Kind, Request, Unstructured, watch
from kopylite.client import Client, load_config
from kopylite.controller import Controller
from kopylite.leaderelection import LEASE
from kopylite.manager import Manager, Options
from kopylite.objects import ObjectKey
from kopylite.testing import EmbeddedCluster
from kopylite.triggers import KindSource
from tests.operators import eventually

TERMS = 10
CONFIG_MAP, SECRET = Kind("v1", "ConfigMap"), Kind("v1", "Secret")
OPTIONS = Options(
    metrics_address="off", health_address="off", grace_period=5.0,
    lease_duration=2, renew_deadline=1, retry_period=0.2,
)  # fmt: skip


async def test_ten_terms_leave_no_subscription_behind(embedded_cluster: EmbeddedCluster) -> None:
    app = App("terms", leader_election=True)

    async def nobody(secret: Unstructured, ctx: Context) -> list[Request]:
        return []

    @app.reconciler(CONFIG_MAP, labels="none=none", owns=[SECRET], watches=[watch(SECRET, map=nobody)])
    async def led(ctx: Context, request: Request) -> None: ...

    manager = Manager(app, load_config(str(embedded_cluster.kubeconfig)), OPTIONS)
    async with anyio.create_task_group() as tasks, embedded_cluster.client() as client:
        tasks.start_soon(manager.run)

        def works(other_than: Controller | None = None) -> bool:
            now = manager.controllers
            return len(now) == 1 and now[0] is not other_than and all(source.synced for source in now[0].sources)

        await eventually(works, "it leads")
        parts = manager._parts
        assert parts is not None
        before = parts.cache.informers
        handlers = [(now.scope, now.handlers) for now in parts.cache.statistics()]
        for term in range(TERMS):
            (controller,) = manager.controllers
            await client.live.patch(LEASE, ObjectKey("default", "terms"), {"spec": {"holderIdentity": "somebody"}})
            await eventually(partial(works, other_than=controller), f"term {term + 2}")
        assert parts.cache.informers == before, "the caches stay warm between the terms"
        assert handlers == [(now.scope, now.handlers) for now in parts.cache.statistics()]
        for source in manager.controllers[0].sources:
            assert isinstance(source, KindSource)
            source.close()
        assert parts.cache.informers == [], "each term gave back what it took"
        manager.stop()


async def taken_and_given_back(client: Client, name: str, manager: Manager) -> None:
    """Somebody else has the lease, until it runs out."""
    lease = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}}
    await client.live.patch(LEASE, ObjectKey("default", name), lease)
    await eventually(lambda: not manager.electors[0].leading, "it does not lead")
    await eventually(lambda: manager.electors[0].leading, "it leads again")


async def test_a_leaders_task_is_cancelled_with_its_term_and_begun_again_with_the_next(
    embedded_cluster: EmbeddedCluster,
) -> None:
    app = App("tasks", leader_election=True)
    told: list[str] = []
    names: dict[str, int] = {}

    @app.task
    async def led(ctx: Context) -> None:
        term = names["led"] = names.get("led", 0) + 1
        told.append(f"begun {term}")
        try:
            await anyio.sleep_forever()
        finally:
            told.append(f"ended {term}")

    @app.task
    async def once(ctx: Context) -> None:
        names["once"] = names.get("once", 0) + 1

    @app.task(leader=False)
    async def everywhere(ctx: Context) -> None:
        names["everywhere"] = names.get("everywhere", 0) + 1
        await anyio.sleep_forever()

    @app.task
    async def fails(ctx: Context) -> None:
        names["fails"] = names.get("fails", 0) + 1
        raise ValueError("not in this term")

    def running() -> dict[str, float]:
        return {task: runs for task, runs in manager.metrics.tasks() if task in ("led", "everywhere")}

    manager = Manager(app, load_config(str(embedded_cluster.kubeconfig)), OPTIONS)
    async with anyio.create_task_group() as tasks, embedded_cluster.client() as client:
        tasks.start_soon(manager.run)
        await eventually(lambda: told == ["begun 1"] and running() == {"led": True, "everywhere": True}, "it leads")
        await eventually(lambda: names.get("fails"), "a task that fails was begun")
        lease = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3}}
        await client.live.patch(LEASE, ObjectKey("default", "tasks"), lease)
        await eventually(lambda: told == ["begun 1", "ended 1"], "the term is over, and the task with it")
        assert running() == {"led": False, "everywhere": True}
        failed = names["fails"]
        await eventually(lambda: told[2:] == ["begun 2"], "it leads again, and the task is begun again")
        assert names["fails"] <= failed + 1, "a restart that was waited for did not outlive its term"
        await taken_and_given_back(client, "tasks", manager)
        await eventually(lambda: told[3:] == ["ended 2", "begun 3"], "and again")
        assert running() == {"led": True, "everywhere": True}
        await eventually(lambda: names["once"] == 3, "one that ends by itself is run once in each term")
        assert names["everywhere"] == 1
        manager.stop()
    assert told[-1] == "ended 3"
