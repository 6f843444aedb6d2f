"""Sharding: what the runs of one shard have of their own, and the Leases that say who has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kopylite.cache import ShardPart
from kopylite.client import Client
from kopylite.client.codec import decode_identity
from kopylite.clock import Clock
from kopylite.controller import ControllerSpec
from kopylite.errors import UsageError
from kopylite.manager.crew import Crew
from kopylite.manager.elections import Candidacy, lease_settings
from kopylite.manager.operator import Operator
from kopylite.manager.options import Options
from kopylite.objects import Kind, ObjectKey, Shard, kind_of
from kopylite.reconcile.context import RUNNING

if TYPE_CHECKING:
    from kopylite.leaderelection import ElectionObserver, Elector, Membership, Roster

# A label has no more characters.
LONGEST_NAME = 63


class ShardClient(Client):
    """A Client for the reconciles of one shard.

    A run is about an object of its shard. When that is gone, and a new one of its name is in another shard, which
    another process may be working on, the run sees none.
    """

    def __init__(self, shard: Shard, *args: Any, **params: Any) -> None:
        super().__init__(*args, **params)
        self._shard = shard
        self._shown = self._shown_to_run

    def _shown_to_run(self, kind: Kind, key: ObjectKey) -> bytes | None:
        return self._unless_hidden(kind, key, self._recent.shown(kind, key))

    async def _read_otherwise(self, kind: Kind, key: ObjectKey) -> bytes | None:
        return self._unless_hidden(kind, key, await super()._read_otherwise(kind, key))

    def _unless_hidden(self, kind: Kind, key: ObjectKey, body: bytes | None) -> bytes | None:
        run = RUNNING.get()
        if body is None or run is None or not run.is_about(kind, key):
            return body
        return body if self._shard.holds(decode_identity(body)[1].uid) else None


def parts_of(specs: Iterable[ControllerSpec], shard: Shard) -> Mapping[Kind, Sequence[ShardPart]]:
    """By kind, what of it is cached for a shard."""
    parts: dict[Kind, list[ShardPart]] = {}
    for spec in specs:
        own = kind_of(spec.kind)
        parts.setdefault(own, []).append(ShardPart(shard))
        for watch in spec.owns:
            if watch.map is None:
                parts.setdefault(kind_of(watch.kind), []).append(ShardPart(shard, own.group_kind, watch.any_owner))
    return parts


def roster_of(app: Operator, options: Options, candidacy: Candidacy, shards: int) -> Roster:
    """What this process knows of the other replicas.

    Raises:
        UsageError: the name of the Leases is too long.
    """
    settings = lease_settings(app, options, candidacy)
    if len(settings.name) > LONGEST_NAME:
        raise UsageError(
            f"lease_name (--lease-name) {settings.name!r}: with shards it is a label, too, of {LONGEST_NAME} "
            "characters at most"
        )
    from kopylite.leaderelection import Roster

    return Roster(candidacy.identity, settings.name, shards, settings)


def shard_elector(
    app: Operator,
    options: Options,
    candidacy: Candidacy,
    roster: Roster,
    shard: Shard,
    clock: Clock,
    observer: ElectionObserver,
) -> Elector:
    """The elector of one shard; it campaigns when the membership says so."""
    from kopylite.leaderelection import Elector, shard_labels

    labels = shard_labels(roster.name, shard.index, shard.of)
    settings = lease_settings(app, options, candidacy, suffix=f"-shard-{shard.index}", labels=labels)
    return Elector(
        settings,
        candidacy.identity,
        candidacy.transport,
        clock=clock,
        observer=observer,
        may_claim=lambda: roster.may_claim(clock.elapsed()),
        standing=False,
    )


def membership_of(
    app: Operator,
    options: Options,
    candidacy: Candidacy,
    roster: Roster,
    crews: Sequence[Crew],
    clock: Clock,
    observer: ElectionObserver,
) -> Membership:
    """What brings the replicas of an App together."""
    from kopylite.leaderelection import Membership, Post

    settings = lease_settings(app, options, candidacy, suffix=f"-replica-{candidacy.identity.rpartition('_')[2]}")
    posts = [(crew, crew.elector) for crew in crews if crew.elector is not None]
    return Membership(
        settings,
        roster,
        [Post(elector, crew.hand_over) for crew, elector in posts],
        candidacy.transport,
        clock=clock,
        observer=observer,
    )
