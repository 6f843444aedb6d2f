"""What the terms of a leader leave behind: nothing."""

from __future__ import annotations

import anyio

from kopylite import App, Context, Kind, Request, Unstructured, watch
from kopylite.client import load_config
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

        def works() -> bool:
            return len(manager.controllers) == 1 and all(source.synced for source in manager.controllers[0].sources)

        await eventually(works, "it leads")
        parts = manager._parts
        assert parts is not None
        before = parts.cache.informers
        handlers = [(now.scope, now.handlers) for now in parts.cache.statistics()]
        for term in range(TERMS):
            (controller,) = manager.controllers
            await client.live.patch(LEASE, ObjectKey("default", "terms"), {"spec": {"holderIdentity": "somebody"}})
            await eventually(lambda old=controller: works() and manager.controllers[0] is not old, f"term {term + 2}")
        assert parts.cache.informers == before, "the caches stay warm between the terms"
        assert handlers == [(now.scope, now.handlers) for now in parts.cache.statistics()]
        for source in manager.controllers[0].sources:
            assert isinstance(source, KindSource)
            source.close()
        assert parts.cache.informers == [], "each term gave back what it took"
        manager.stop()
