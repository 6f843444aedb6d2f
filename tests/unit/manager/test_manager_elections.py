"""What the manager makes of leader election, on the embedded server."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import anyio
import pytest

from kopylite import App, Context, Kind, Request, Unstructured
from kopylite.client import ClientConfig, MissingPermissions, Transport, load_config
from kopylite.errors import Forbidden, UsageError
from kopylite.leaderelection import LEASE
from kopylite.leaderelection.lease import Lease
from kopylite.leaderelection.observer import LeaseChange
from kopylite.manager import Manager, Options
from kopylite.manager.elections import (
    Candidacy,
    Herald,
    check_elections,
    elects,
    lease_config,
    lease_names,
    lease_settings,
    leases_of,
)
from kopylite.manager.health import liveness, readiness
from kopylite.objects import ObjectKey
from kopylite.reconcile.recorder import EventRecorder
from kopylite.testing import EmbeddedCluster
from kopylite.testing.clock import VirtualClock
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


def split(shards: int) -> App:
    app = App("split", shards=shards)
    app.reconciler(CONFIG_MAP)(nothing)
    return app


async def nothing(ctx: Context, request: Request) -> None: ...


def test_each_shard_has_a_lease_and_one_is_a_lease_of_the_apps_name() -> None:
    one = made("one", [])
    assert lease_names(one, OPTIONS) == ("one",)
    assert lease_names(one, replace(OPTIONS, lease_name="other")) == ("other",)
    assert lease_names(one, replace(OPTIONS, leader_election=False)) == ()
    assert lease_names(split(2), OPTIONS) == ("split-shard-0", "split-shard-1")
    assert lease_names(split(2), replace(OPTIONS, lease_name="other")) == ("other-shard-0", "other-shard-1")


def test_a_process_has_connections_for_all_the_leases_that_it_may_hold() -> None:
    """One that waits for a turn would cost the leader its lease."""
    one = made("one", [])
    held = [leases_of(app, OPTIONS) for app in (one, split(8))] + [
        leases_of(one, replace(OPTIONS, leader_election=False))
    ]
    assert held == [1, 9, 0], "and the membership is one more"
    config = ClientConfig("https://kube.example.com", user_agent="shop", max_connections=200)
    assert [lease_config(config, leases).max_connections for leases in (1, 2, 3, 9)] == [4, 4, 6, 18]
    assert lease_config(config, 1).user_agent == "shop leader-election"


def test_two_apps_may_not_share_one_lease_but_one_app_may_name_its_own() -> None:
    named = replace(OPTIONS, lease_name="a")
    check_elections([made("one", []), App("plain")], named)
    check_elections([made("one", []), made("two", [])], OPTIONS)
    check_elections([made("one", []), made("two", [])], replace(named, leader_election=False))
    with pytest.raises(UsageError, match="the apps one, two need one each"):
        check_elections([made("one", []), App("plain"), made("two", [])], named)


def test_a_lease_is_where_and_as_the_options_say() -> None:
    candidacy = Candidacy(cast("Transport", None), "pods", "me")
    settings = lease_settings(made("one", []), OPTIONS, candidacy)
    assert (settings.name, settings.namespace, settings.labels) == ("one", "pods", {})
    assert (settings.lease_duration, settings.renew_deadline, settings.retry_period) == (6, 5, 0.2)
    options = replace(OPTIONS, lease_name="other", lease_namespace="elsewhere")
    settings = lease_settings(made("one", []), options, candidacy, suffix="-shard-0", labels={"a": "b"})
    assert (settings.name, settings.namespace, settings.labels) == ("other-shard-0", "elsewhere", {"a": "b"})


async def test_who_leads_is_an_event_and_a_number_and_what_is_refused_is_a_missing_rule() -> None:
    told: list[object] = []

    class Recorder:
        def event(self, obj: Unstructured, reason: str, note: str, *, action: str) -> None:
            told.append((obj.name, reason, note, action))

    async def flush() -> None:
        told.append("flushed")

    clock = VirtualClock()
    permissions = MissingPermissions("one", limited=False)
    herald = Herald(
        cast("EventRecorder", Recorder()), permissions, clock, flush, lambda name, change: told.append((name, change))
    )
    wire = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one"}}
    lease = cast("Lease", SimpleNamespace(wire=wire))
    herald.changed(lease, LeaseChange.TAKEN, "me became leader")
    assert told == [("one", "taken"), ("one", "LeaderElection", "me became leader", "LeaderElection")]
    await herald.ending()
    assert told[-1] == "flushed"
    sentence = 'User "bob" cannot update resource "leases" in API group "coordination.k8s.io" in the namespace "pods"'
    herald.forbidden(Forbidden(f'leases "one" is forbidden: {sentence}', code=403))
    [rule] = permissions.news(clock.monotonic() + 60)
    assert "leases" in rule
