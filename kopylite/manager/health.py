"""Health: the checks behind /healthz and /readyz.

Liveness asks what only a restart mends; readiness, what works at the moment.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from typing import TYPE_CHECKING

from kopylite.boundary import MAP
from kopylite.cache import Informer, Phase, Scope
from kopylite.controller import Controller
from kopylite.manager.wiring import MAP_SECONDS
from kopylite.serving import Check

if TYPE_CHECKING:
    from kopylite.leaderelection import Elector, Membership

# A watch is given up after 105 s of silence at the latest. One that is silent for longer has nobody who reads it.
DEAD_WATCH_SECONDS = 180.0
# A run is cancelled at its timeout. One that goes on for so long after that holds its worker for ever.
DEAD_RUN_SECONDS = 120.0


# What is cancelled because its lease is lost ends at once, or not at all.
DEAD_WORK_SECONDS = 5.0
# A Lease that could not be read or written for so long is no passing trouble.
DEAD_LEASE_SECONDS = 60.0


def liveness(
    loop: Check, informers: Iterable[Informer], controllers: Iterable[Controller], electors: Iterable[Elector] = ()
) -> dict[str, Check]:
    """The event loop runs, every watch is read, no worker is lost in a run that cannot be cancelled, and no work of
    a leader goes on without its lease.

    That the API server is away, or refuses something, is no reason for a restart: see readiness.
    """
    checks: dict[str, Check] = {"event-loop": loop}
    checks |= {f"watch-{label_of(informer.scope)}": partial(_watch_alive, informer) for informer in informers}
    checks |= {f"workers-{controller.label}": partial(_workers_alive, controller) for controller in controllers}
    checks |= {f"lease-{elector.settings.name}": partial(_lease_kept, elector) for elector in electors}
    return checks


def readiness(
    running: Check,
    informers: Iterable[Informer],
    controllers: Iterable[Controller],
    electors: Iterable[Elector] = (),
    memberships: Iterable[Membership] = (),
    excused: Container[str] = (),
) -> dict[str, Check]:
    """Every cache is in sync, every controller works, and no stop has begun (`running`).

    Who does not lead is as ready; but not who cannot even reach its Lease, or tell the others that it is there.

    Args:
        excused: the namespaces that may be out of sync.
    """
    checks: dict[str, Check] = {"running": running}
    pardoned = set[str]()
    for informer in informers:
        if informer.scope.namespace in excused:
            pardoned.add(str(informer.scope))
        else:
            checks[f"informer-{label_of(informer.scope)}"] = partial(_synced, informer)
    checks |= {f"controller-{controller.label}": partial(_working, controller, pardoned) for controller in controllers}
    checks |= {f"lease-{elector.settings.name}": partial(_lease_reached, elector) for elector in electors}
    checks |= {f"replica-{each.roster.name}": partial(_lease_reached, each) for each in memberships}
    return checks


def label_of(scope: Scope) -> str:
    """A scope as one word: deployment.v1.apps, with its namespace and selectors if there are any."""
    kind = scope.kind
    name = ".".join(filter(None, (kind.kind.lower(), kind.version, kind.group)))
    narrowed = (
        scope.namespace,
        scope.labels,
        scope.fields,
        "metadata" if scope.metadata_only else "",
        str(scope.part or ""),
    )
    return ":".join(filter(None, (name, *narrowed))).replace(" ", "")


def _watch_alive(informer: Informer) -> str | None:
    now = informer.statistics()
    silent = now.last_byte_age or 0.0
    dead = now.phase is Phase.WATCHING and silent > DEAD_WATCH_SECONDS
    return f"silent for {silent:.0f} s" if dead else None


def _workers_alive(controller: Controller) -> str | None:
    timeout = controller.spec.timeout
    if calls := controller.active_calls(longer_than=max(timeout or 0.0, MAP_SECONDS) + DEAD_RUN_SECONDS):
        oldest_call = calls[0]
        if timeout is not None or oldest_call.what == MAP.what:
            return f"{oldest_call.what} {oldest_call.name} cannot be cancelled; it runs for {oldest_call.seconds:.0f} s"
    if timeout is None:
        return None
    stuck = controller.active_runs(longer_than=timeout + DEAD_RUN_SECONDS)
    if not stuck:
        return None
    oldest = stuck[0]
    return f"{len(stuck)} runs cannot be cancelled; {oldest.request} runs for {oldest.seconds:.0f} s"


def _lease_kept(elector: Elector) -> str | None:
    lost = elector.overdue
    return f"lost {lost:.0f} s ago, and leader work goes on" if lost > DEAD_WORK_SECONDS else None


def _lease_reached(holder: Elector | Membership) -> str | None:
    return holder.problem or "not reached" if holder.unreached_for > DEAD_LEASE_SECONDS else None


def _synced(informer: Informer) -> str | None:
    if informer.synced:
        return None
    now = informer.statistics()
    return now.problem or str(now.phase)


def _working(controller: Controller, pardoned: Container[str]) -> str | None:
    waiting = [name for name in controller.statistics().waiting_for if name not in pardoned]
    return f"waiting for {', '.join(waiting)}" if waiting else None
