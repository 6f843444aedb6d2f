from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kopylite.boundary import ActiveCall
from kopylite.cache import Informer, InformerStatistics, Phase, Scope
from kopylite.controller import ActiveRun, Controller
from kopylite.leaderelection import Elector, Membership
from kopylite.manager.health import (
    DEAD_LEASE_SECONDS,
    DEAD_RUN_SECONDS,
    DEAD_WATCH_SECONDS,
    DEAD_WORK_SECONDS,
    label_of,
    liveness,
    readiness,
)
from kopylite.objects import Kind
from kopylite.reconcile import Request

DEPLOYMENT = Kind("apps/v1", "Deployment")


@dataclass
class FakeInformer:
    now: InformerStatistics

    @property
    def scope(self) -> Scope:
        return self.now.scope

    @property
    def synced(self) -> bool:
        return self.now.synced

    def statistics(self) -> InformerStatistics:
        return self.now


def informer(**changes: Any) -> Informer:
    healthy = InformerStatistics(
        scope=Scope(DEPLOYMENT),
        synced=True,
        phase=Phase.WATCHING,
        version="1",
        objects=1,
        body_bytes=1,
        handlers=1,
        last_event_age=1.0,
        last_byte_age=1.0,
        problem="",
        problem_age=0.0,
    )
    return cast("Informer", FakeInformer(replace(healthy, **changes)))


class FakeController:
    name = label = "shop"

    def __init__(
        self,
        *,
        timeout: float | None = 300.0,
        longest: float = 0.0,
        waiting_for: tuple[str, ...] = (),
        call: ActiveCall | None = None,
    ) -> None:
        self._call = call
        self.spec = SimpleNamespace(timeout=timeout)
        self._longest = longest
        self._waiting_for = waiting_for

    def active_runs(self, longer_than: float = 0.0) -> list[ActiveRun]:
        run = ActiveRun(Request("default", "a"), self._longest, ("created",), "id")
        return [run] if self._longest >= longer_than else []

    def active_calls(self, longer_than: float = 0.0) -> list[ActiveCall]:
        return [self._call] if self._call is not None and self._call.seconds >= longer_than else []

    def statistics(self) -> Any:
        return SimpleNamespace(waiting_for=self._waiting_for)


def controller(**arguments: Any) -> Controller:
    return cast("Controller", FakeController(**arguments))


def alive() -> None:
    return None


def failing(checks: dict[str, Any]) -> dict[str, str]:
    return {name: problem for name, check in checks.items() if (problem := check()) is not None}


def test_a_healthy_operator_is_alive_and_ready() -> None:
    assert failing(liveness(alive, [informer()], [controller()])) == {}
    assert failing(readiness(alive, [informer()], [controller()])) == {}


def test_a_watch_that_nobody_reads_is_a_reason_for_a_restart() -> None:
    dead = informer(last_byte_age=DEAD_WATCH_SECONDS + 1)
    assert failing(liveness(alive, [dead], [])) == {"watch-deployment.v1.apps": "silent for 181 s"}


@pytest.mark.parametrize("phase", [Phase.LISTING, Phase.WAITING_FOR_KIND, Phase.FINDING_KIND])
def test_a_server_that_is_away_is_not(phase: Phase) -> None:
    away = informer(phase=phase, last_byte_age=3600.0, synced=False, problem="ConnectionFailed: refused")
    assert failing(liveness(alive, [away], [])) == {}
    assert failing(readiness(alive, [away], [])) == {"informer-deployment.v1.apps": "ConnectionFailed: refused"}


def test_a_run_that_cannot_be_cancelled_is_a_reason_for_a_restart_and_a_long_one_is_not() -> None:
    long = controller(timeout=300.0, longest=299.0)
    assert failing(liveness(alive, [], [long])) == {}
    stuck = controller(timeout=300.0, longest=300.0 + DEAD_RUN_SECONDS)
    assert "default/a runs for 420 s" in failing(liveness(alive, [], [stuck]))["workers-shop"]
    unlimited = controller(timeout=None, longest=1e6)
    assert failing(liveness(alive, [], [unlimited])) == {}


def test_a_blocked_event_loop_is_passed_on() -> None:
    assert failing(liveness(lambda: "blocked", [], [])) == {"event-loop": "blocked"}


def test_a_cache_that_still_lists_and_a_controller_that_waits_are_not_ready() -> None:
    listing = informer(synced=False, phase=Phase.LISTING)
    waiting = controller(waiting_for=("Deployment.apps/v1",))
    assert failing(readiness(lambda: "stopping", [listing], [waiting])) == {
        "running": "stopping",
        "informer-deployment.v1.apps": "listing",
        "controller-shop": "waiting for Deployment.apps/v1",
    }


def test_a_controller_that_waits_only_for_namespaces_that_are_excused_is_ready() -> None:
    refused = informer(scope=Scope(DEPLOYMENT, "closed"), synced=False)
    of_others = informer(scope=Scope(DEPLOYMENT, "open"), synced=False, phase=Phase.LISTING)
    waits = [
        controller(waiting_for=tuple(str(one.scope) for one in some)) for some in ([refused], [refused, of_others])
    ]
    assert failing(readiness(alive, [refused], waits[:1], excused={"closed"})) == {}
    assert failing(readiness(alive, [refused, of_others], waits[1:], excused={"closed"})) == {
        "informer-deployment.v1.apps:open": "listing",
        "controller-shop": "waiting for Deployment.apps/v1 namespace open",
    }


def test_labels_tell_scopes_apart_in_one_word() -> None:
    scopes = [
        Scope(Kind("v1", "Pod")),
        Scope(Kind("v1", "Pod"), "shop"),
        Scope(Kind("v1", "Pod"), "shop", labels="app in (a, b)"),
        Scope(Kind("v1", "Pod"), "shop", metadata_only=True),
    ]
    labels = [label_of(scope) for scope in scopes]
    assert labels == ["pod.v1", "pod.v1:shop", "pod.v1:shop:appin(a,b)", "pod.v1:shop:metadata"]


def test_a_map_function_that_cannot_be_cancelled_is_a_reason_for_a_restart() -> None:
    def failing_after(seconds: float, what: str = "map function", **arguments: Any) -> dict[str, str]:
        call = ActiveCall(what, "users_of", "ConfigMap ns/c", seconds)
        return failing(liveness(alive, [], [controller(call=call, **arguments)]))

    assert failing_after(200.0, timeout=30.0) == {
        "workers-shop": "map function users_of cannot be cancelled; it runs for 200 s"
    }
    assert failing_after(200.0, timeout=None)
    assert failing_after(100.0, timeout=30.0) == {}
    assert failing_after(200.0, what="channel", timeout=30.0)
    assert failing_after(1e6, what="channel", timeout=None) == {}, "it may take as long as it likes"


def test_a_replica_that_cannot_say_that_it_is_there_is_not_ready() -> None:
    def failing_after(seconds: float, problem: str) -> dict[str, str]:
        replica = SimpleNamespace(roster=SimpleNamespace(name="shop"), unreached_for=seconds, problem=problem)
        return failing(readiness(alive, [], [], memberships=[cast("Membership", replica)]))

    assert failing_after(DEAD_LEASE_SECONDS, "403: leases is forbidden") == {}, "it may be a passing trouble"
    assert failing_after(61.0, "403: leases is forbidden") == {"replica-shop": "403: leases is forbidden"}
    assert failing_after(61.0, "") == {"replica-shop": "not reached"}


def test_a_lease_that_is_out_of_reach_or_lost_while_work_goes_on_is_told() -> None:
    def elector(**now: Any) -> list[Elector]:
        fine = {"settings": SimpleNamespace(name="shop"), "overdue": 0.0, "unreached_for": 0.0, "problem": ""}
        return [cast("Elector", SimpleNamespace(**fine | now))]

    late = elector(overdue=DEAD_WORK_SECONDS + 3)
    assert failing(liveness(alive, [], [], late)) == {"lease-shop": "lost 8 s ago, and leader work goes on"}
    assert failing(readiness(alive, [], [], late)) == {}
    assert failing(liveness(alive, [], [], elector(overdue=DEAD_WORK_SECONDS))) == {}, "what is cancelled ends soon"
    away = elector(unreached_for=DEAD_LEASE_SECONDS + 1, problem="timeout")
    assert failing(readiness(alive, [], [], away)) == {"lease-shop": "timeout"}
    assert failing(liveness(alive, [], [], away)) == {}, "a restart does not bring it back"
