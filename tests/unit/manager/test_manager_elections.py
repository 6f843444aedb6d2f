"""What the manager makes of leader election, on the embedded server."""

from __future__ import annotations

import logging
from dataclasses import replace

import anyio
import pytest

from kopylite import App, Context, Kind, Request
from kopylite.client import load_config
from kopylite.errors import UsageError
from kopylite.leaderelection import LEASE
from kopylite.manager import Manager, Options
from kopylite.manager.elections import elects
from kopylite.manager.health import liveness, readiness
from kopylite.objects import ObjectKey
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
OPTIONS = Options(
    metrics_address="off", health_address="off", grace_period=5.0,
    lease_duration=6, renew_deadline=5, retry_period=0.2,
)  # fmt: skip


def made(name: str, ran: list[str]) -> App:
    app = App(name, leader_election=True)

    @app.reconciler(CONFIG_MAP, name=f"{name}-led", labels="none=none")
    async def led(ctx: Context, request: Request) -> None:
        ran.append(request.name)

    @app.reconciler(CONFIG_MAP, name=f"{name}-everywhere", labels="none=none", leader=False)
    async def everywhere(ctx: Context, request: Request) -> None: ...

    return app


async def test_a_standby_is_ready_and_warm_and_runs_only_what_needs_no_leader(
    embedded_cluster: EmbeddedCluster,
) -> None:
    config = load_config(str(embedded_cluster.kubeconfig))
    first, second = (Manager(made("warm", []), config, OPTIONS) for _ in range(2))
    async with anyio.create_task_group() as tasks, embedded_cluster.client() as client:
        for manager in (first, second):
            tasks.start_soon(manager.run)
        with anyio.fail_after(20):
            await first.wait_synced()
            await second.wait_synced()
        await eventually(lambda: first.electors[0].leading or second.electors[0].leading, "one leads")
        leader, standby = (first, second) if first.electors[0].leading else (second, first)
        names = [controller.name for controller in standby.controllers]
        assert names == ["warm-everywhere"]
        checks = readiness(lambda: None, standby._informers(), standby.controllers, standby.electors)
        assert {name: check() for name, check in checks.items() if check()} == {}
        checks = liveness(lambda: None, standby._informers(), standby.controllers, standby.electors)
        assert checks["lease-warm"]() is None
        for manager, leads in ((leader, 1), (standby, 0)):
            text = manager.metrics.exposition()[0].decode()
            assert f'leader_election_master_status{{name="warm"}} {leads}.0' in text
        # A term that was lost is followed by another one, with controllers of its own.
        before = {each for each in leader.controllers if each.name == "warm-led"}
        lease = ObjectKey("default", "warm")
        await client.live.patch(LEASE, lease, {"spec": {"holderIdentity": "somebody"}})
        await eventually(lambda: len(leader.controllers) == 1, "it has stopped")
        await eventually(lambda: len(leader.controllers) + len(standby.controllers) == 3, "one leads again")
        again = leader if len(leader.controllers) == 2 else standby
        assert not before & set(again.controllers)
        await eventually(lambda: all(each.synced for each in again.controllers), "it works")
        leader.stop()
        standby.stop()


async def test_each_app_has_a_lease_of_its_own(
    embedded_cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_config(str(embedded_cluster.kubeconfig))
    apps = [made("one", []), made("two", [])]
    manager = Manager(apps, config, OPTIONS)
    with caplog.at_level(logging.INFO):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await eventually(lambda: len(manager.controllers) == 4, "both lead")
            manager.stop()
    async with embedded_cluster.client() as client:
        for name in ("one", "two"):
            lease = await client.live.get(LEASE, ObjectKey("default", name))
            assert lease["spec"]["holderIdentity"] == ""


def test_one_lease_for_two_apps_is_refused(embedded_cluster: EmbeddedCluster) -> None:
    config = load_config(str(embedded_cluster.kubeconfig))
    with pytest.raises(UsageError, match="the apps one, two need one each: leave it out"):
        Manager([made("one", []), made("two", [])], config, replace(OPTIONS, lease_name="a"))


def test_options_win_over_the_app() -> None:
    app, plain = made("one", []), App("plain")
    assert elects(app, OPTIONS)
    assert not elects(app, replace(OPTIONS, leader_election=False))
    assert not elects(plain, replace(OPTIONS, leader_election=True)), "it has nothing that a leader runs"
