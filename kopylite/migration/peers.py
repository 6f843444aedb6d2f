"""Peers: kopf operators that say in a KopfPeering or ClusterKopfPeering that they run.

Two operators that act for the same objects undo each other's work, and each would take the other's finalizer for its
own. kopf tells of itself only where these objects exist, and not with `--standalone`: without them nobody can know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kopylite.boundary import printable
from kopylite.errors import Forbidden, KindNotFound, KopyliteError
from kopylite.objects import Kind
from kopylite.reconcile import Context

# The second is what kopf had before 1.0; it still reads those.
GROUPS: Final = ("kopf.dev", "zalando.org")
KINDS: Final = tuple(
    Kind(f"{group}/v1", kind, plural, scope)
    for group in GROUPS
    for kind, plural, scope in (
        ("ClusterKopfPeering", "clusterkopfpeerings", False),
        ("KopfPeering", "kopfpeerings", True),
    )
)
# kopf's own, where an entry does not say.
LIFETIME: Final = 60.0


class KopfStillRuns(KopyliteError):
    """A kopf operator runs beside this one, or nobody may say that none does."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One kopf operator.

    Args:
        peering: the object that it is in, as "ClusterKopfPeering default".
        identity: what it calls itself, as "user@host/start".
        until: when its entry runs out, unless it is renewed; None: that cannot be read.
    """

    peering: str
    identity: str
    until: datetime | None

    def __str__(self) -> str:
        until = f"until {self.until:%Y-%m-%d %H:%M:%S} UTC" if self.until else "for a time that cannot be read"
        return printable(f"{self.identity} in {self.peering}, which is taken to run {until}")


def live_peers(obj: Mapping[str, Any], now: datetime, names: Sequence[str] = ()) -> list[Peer]:
    """The peers of a peering object that have not run out. An entry that cannot be read counts as one that lives."""
    metadata, status = obj.get("metadata"), obj.get("status")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if not isinstance(status, Mapping) or (names and metadata.get("name") not in names):
        return []
    where = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    found = []
    for identity, entry in status.items():
        if entry is None:
            continue  # this is how kopf takes itself out
        until = _until(entry)
        if until is None or until > now:
            found.append(Peer(f"{obj.get('kind')} {where}", str(identity), until))
    return found


async def peers_of(
    objects: Callable[[Kind], Awaitable[Sequence[Mapping[str, Any]]]], now: datetime, names: Sequence[str] = ()
) -> list[Peer]:
    """All peers that live.

    Args:
        objects: lists a kind; raises KindNotFound where it is not served.
        names: of the peering objects to look at; none: all.
    """
    found: list[Peer] = []
    for kind in KINDS:
        try:
            listed = await objects(kind)
        except KindNotFound:
            continue
        for obj in listed:
            found += live_peers({"kind": kind.kind, **obj}, now, names)
    return found


def no_kopf_beside(*peerings: str) -> Callable[[Context], Awaitable[None]]:
    """An on_start of an App that refuses to begin while a kopf operator runs.

    Take it out, and the right to list its kinds, when no kopf operator is left.

    Args:
        peerings: names of the peerings of this very operator; none: any kopf operator that runs is one too many.
    """

    async def no_kopf(ctx: Context) -> None:
        async def objects(kind: Kind) -> Sequence[Mapping[str, Any]]:
            return await ctx.client.live.list(kind)

        try:
            found = await peers_of(objects, ctx.now(), peerings)
        except Forbidden as error:
            raise KopfStillRuns(
                f"whether a kopf operator still runs may not be seen: {error}. Allow `list` of kopfpeerings and "
                "clusterkopfpeerings in kopf.dev and zalando.org; or, when none runs, remove `no_kopf_beside` from the "
                "operator"
            ) from error
        if found:
            raise KopfStillRuns(refusal(found, "no_kopf_beside('NAME')"))

    return no_kopf


def refusal(found: Sequence[Peer], way: str) -> str:
    """Why nothing is begun, and what to do."""
    listed = "; ".join(map(str, found[:3])) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
    return (
        f"a kopf operator still runs: {listed}. Stop it (a Deployment: scale it to 0); one that was killed runs out at "
        f"that time. If it is another operator with a peering of its own, name yours: {way}"
    )


def _until(entry: Any) -> datetime | None:
    if not isinstance(entry, Mapping):
        return None
    seen, lifetime = entry.get("lastseen"), entry.get("lifetime", LIFETIME)
    try:
        moment = datetime.fromisoformat(str(seen))
        # Older kopf wrote UTC without saying so.
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC) + timedelta(seconds=float(lifetime))
    except (ValueError, OverflowError, TypeError):
        return None
