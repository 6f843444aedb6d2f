"""Elections: which Lease each App's leader needs, and what the rest of the manager hears of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from kopylite.client import ClientConfig, MissingPermissions, Transport
from kopylite.clock import Clock
from kopylite.errors import Forbidden, UsageError
from kopylite.leaderelection import ElectionObserver, Lease, LeaseChange, LeaseSettings
from kopylite.manager.operator import Operator
from kopylite.manager.options import Options
from kopylite.objects import Unstructured
from kopylite.reconcile.recorder import EventRecorder

if TYPE_CHECKING:
    from kopylite.leaderelection import Elector

REASON = "LeaderElection"


class Candidacy(msgspec.Struct, frozen=True):
    """As whom, and over which connections, this process stands for its Leases.

    Attributes:
        transport: of its own: a client that is busy, or waits for a turn, must not cost the leader its lease.
        namespace: of the Leases, unless the options name one.
        identity: the pod's name, and something that is never the same again.
    """

    transport: Transport
    namespace: str
    identity: str


def elects(app: Operator, options: Options) -> bool:
    """Whether an App has parts that only a leader runs."""
    wanted = app.leader_election if options.leader_election is None else options.leader_election
    return bool(wanted or shards_of(app, options)) and has_led_parts(app)


def has_led_parts(app: Operator) -> bool:
    """Whether an App has parts that one process runs at a time, if it has leader election."""
    return any(spec.leader for spec in app.controllers) or any(task.leader for task in app.life.tasks)


def shards_of(app: Operator, options: Options) -> int:
    """Into how many shards an App's keys are split; 0: they are not."""
    return app.shards if options.shards is None else options.shards


def lease_names(app: Operator, options: Options) -> tuple[str, ...]:
    """The Leases that say who does the work of an App: one, or one for each shard."""
    name = options.lease_name or app.name
    if not elects(app, options):
        return ()
    return tuple(f"{name}-shard-{shard}" for shard in range(shards_of(app, options))) or (name,)


def leases_of(app: Operator, options: Options) -> int:
    """How many Leases this process may hold for an App at the same time."""
    shards = shards_of(app, options)
    return (shards + 1 if shards else 1) if elects(app, options) else 0


def check_elections(apps: Sequence[Operator], options: Options) -> None:
    """Refuse one Lease for two Apps: each would take the other for another process.

    Raises:
        UsageError: there is one.
    """
    names = [app.name for app in apps if elects(app, options)]
    if options.lease_name and len(names) > 1:
        raise UsageError(
            f"lease_name (--lease-name) names one Lease, and the apps {', '.join(names)} need one each: leave it out, "
            "and each has the name of its app"
        )


def lease_config(config: ClientConfig, leases: int) -> ClientConfig:
    """As the client's, with connections of its own: for each Lease a request and a spare one."""
    agent = f"{config.user_agent} leader-election"
    return replace(config, user_agent=agent, max_connections=max(4, 2 * leases))


def elector_of(
    app: Operator, options: Options, candidacy: Candidacy, clock: Clock, observer: ElectionObserver
) -> Elector:
    """The elector of an App."""
    from kopylite.leaderelection import Elector  # most Apps have none

    settings = lease_settings(app, options, candidacy)
    return Elector(settings, candidacy.identity, candidacy.transport, clock=clock, observer=observer)


def lease_settings(
    app: Operator, options: Options, candidacy: Candidacy, *, suffix: str = "", labels: Mapping[str, str] | None = None
) -> LeaseSettings:
    """A Lease of an App, of its name and a suffix."""
    return LeaseSettings(
        name=f"{options.lease_name or app.name}{suffix}",
        namespace=options.lease_namespace or candidacy.namespace,
        lease_duration=options.lease_duration,
        renew_deadline=options.renew_deadline,
        retry_period=options.retry_period,
        labels=labels or {},
    )


class Herald(ElectionObserver):
    """Publishes who leads as Events about the Lease, and what RBAC refuses as missing rules.

    Args:
        recorder: of the App.
        permissions: collects what is refused.
        clock: of the refusals.
        flush: sends the last Events, within a limit, so that none comes after the lease was given back.
        count: told the name of the Lease, and what was done with it.
    """

    def __init__(
        self,
        recorder: EventRecorder,
        permissions: MissingPermissions,
        clock: Clock,
        flush: Callable[[], Awaitable[None]],
        count: Callable[[str, str], None] = lambda name, change: None,
    ) -> None:
        self._recorder = recorder
        self._permissions = permissions
        self._clock = clock
        self._flush = flush
        self._count = count

    def changed(self, lease: Lease, change: LeaseChange, note: str) -> None:
        self._count(str(lease.wire["metadata"].get("name")), change.value)
        self._recorder.event(Unstructured(lease.wire), REASON, note, action=REASON)

    def forbidden(self, error: Forbidden) -> None:
        self._permissions.note(error, self._clock.monotonic())

    async def ending(self) -> None:
        await self._flush()
