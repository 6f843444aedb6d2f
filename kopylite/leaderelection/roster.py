"""Roster: which replicas there are, and which shards this one is to have. All decisions, and no I/O and no clock.

The Leases are the only thing that replicas share: one for each shard, as for a leader, and one for each replica, which
says that it is there. Each replica lists them every retry period, and judges by its own time, as `candidate.py` does: a
Lease counts for its duration from when it was seen to change.

- **A shard is worked on by whom its Lease names.** Nothing here can make two work on one: what a replica believes of
  the others decides only which Leases it tries to get, and which ones it gives back.
- **Its fair part.** Of N shards and R replicas each has N/R, rounded up for those who have most already. Whoever has
  more gives the surplus back; whoever has less tries for shards that nobody holds.
- **One number of shards at a time.** Shards of another number are other ranges, and a key would be in two at once. So
  every Lease says of how many shards it is one; a replica says first that it is there, then looks, and takes no shard
  while it sees a replica or a held shard of another number. Of two that do so at the same time, at least one sees the
  other; when both do, both step back, and try again at a moment of their own.

tests/properties/test_leaderelection_roster.py plays random histories with the Leases' candidates: no key is in the
hands of two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto

import msgspec

from kopylite.leaderelection.candidate import NEVER
from kopylite.leaderelection.lease import Lease
from kopylite.leaderelection.settings import LeaseSettings

# Labels of the Leases: whose shards, of how many; and of each which one, or of a replica whether it takes part.
SHARDS_OF = "kopylite.dev/shards-of"
COUNT = "kopylite.dev/shard-count"
SHARD = "kopylite.dev/shard"
REPLICA = "kopylite.dev/replica"
ACTIVE, WAITING = "active", "waiting"
# Replicas that are dead for so many lease durations have left nothing that anybody waits for.
LITTER = 10


class Plan(msgspec.Struct, frozen=True):
    """What a replica is to do now.

    Attributes:
        wanted: the shards to keep, and those to try for. All others are to be given back.
        replicas: how many take part, this one included, as far as is known.
        blocked: why no shard may be taken at all; "" if that is not so.
    """

    wanted: frozenset[int]
    replicas: int
    blocked: str = ""


class _Phase(Enum):
    WAITING = auto()  # others with another number of shards are at work
    ANNOUNCED = auto()  # we say that we take part, and have not looked since then whether we may
    CONFIRMED = auto()
    LEAVING = auto()


class _Seen(msgspec.Struct, frozen=True):
    lease: Lease
    since: float

    def is_held(self, now: float) -> bool:
        return bool(self.lease.holder) and now < self.since + self.lease.duration

    def is_litter(self, now: float) -> bool:
        return now >= self.since + LITTER * max(self.lease.duration, 1)


class Roster:
    """What one replica knows of the others.

    `now` is always by the process's own clock, in seconds, and never goes back.

    Args:
        identity: of this replica, as in the Leases.
        name: whose shards they are.
        shards: how many.
        settings: of the Leases: only the times count here.
    """

    def __init__(self, identity: str, name: str, shards: int, settings: LeaseSettings) -> None:
        self.identity = identity
        self.name = name
        self.shards = shards
        self._settings = settings
        self._phase = _Phase.ANNOUNCED
        self._announced_at: float | None = None
        self._present_until = NEVER
        self._seen: dict[str, _Seen] = {}
        self._blocked = ""

    # What is learned

    @property
    def state(self) -> str:
        """What our own Lease is to say: whether we take part."""
        return ACTIVE if self._phase in (_Phase.ANNOUNCED, _Phase.CONFIRMED) else WAITING

    def wrote(self, state: str, began: float, now: float, *, anew: bool) -> None:
        """Our own Lease was written; counted from when that began. `anew`: it was not there any more."""
        if anew:
            self._present_until = NEVER  # the others may have seen nobody meanwhile
        self._lapse(now)  # the write does not say that we were there before it, as after a stop of the whole process
        self._present_until = began + self._settings.renew_deadline
        if state == ACTIVE and self._announced_at is None:
            self._announced_at = now

    def saw(self, leases: Iterable[Lease], asked: float, now: float) -> None:
        """The server has shown all Leases of these shards, at some moment since `asked`."""
        found: dict[str, _Seen] = {}
        for lease in leases:
            name = str(lease.wire["metadata"].get("name"))
            before = self._seen.get(name)
            news = before is None or before.lease.record != lease.record
            found[name] = _Seen(lease, now if news or before is None else before.since)
        self._seen = found
        self._blocked = self._other_numbers(now)
        if self._phase is _Phase.WAITING and not self._blocked:
            self._phase, self._announced_at = _Phase.ANNOUNCED, None
        elif self._phase is _Phase.ANNOUNCED and self._announced_at is not None and asked >= self._announced_at:
            self._phase = _Phase.WAITING if self._blocked else _Phase.CONFIRMED

    def leave(self) -> None:
        """Take no more shards; the others may count without us."""
        self._phase = _Phase.LEAVING

    # What may be done

    def may_claim(self, now: float) -> bool:
        """Whether a shard may be taken at this moment; to be asked before each try."""
        self._lapse(now)
        return self._phase is _Phase.CONFIRMED

    def is_free(self, shard: int, now: float) -> bool:
        """Whether nobody else holds a shard, as far as was seen."""
        holder = self._holders(now).get(shard, self.identity)
        return holder == self.identity

    def plan(self, held: Collection[int], now: float) -> Plan:
        """What to hold and try for, of one that holds some now."""
        members = self._members(now)
        if not self.may_claim(now):
            return Plan(frozenset(held), len(members), self._blocked if self._phase is not _Phase.LEAVING else "")
        holders = self._holders(now)
        counts = dict.fromkeys(members, 0)
        for holder in holders.values():
            if holder in counts and holder != self.identity:
                counts[holder] += 1
        counts[self.identity] = len(held)
        quota = fair_part(self.identity, counts, self.shards)
        kept = sorted(held)[:quota]
        free = [shard for shard in self._in_own_order(members) if shard not in held and self.is_free(shard, now)]
        return Plan(frozenset(kept + free[: max(0, quota - len(held))]), len(members))

    def litter(self, now: float) -> list[Lease]:
        """The Leases of replicas that are dead for long: to be deleted, if they are as they were seen."""
        return [
            seen.lease
            for seen in self._seen.values()
            if REPLICA in _labels(seen.lease) and seen.lease.holder != self.identity and seen.is_litter(now)
        ]

    def _lapse(self, now: float) -> None:
        """Others may take us for dead from here on, and take what we would."""
        if self._phase is _Phase.CONFIRMED and now >= self._present_until:
            self._phase, self._announced_at = _Phase.ANNOUNCED, None

    def _members(self, now: float) -> list[str]:
        """All who take part, in an order that is the same for all."""
        found = {self.identity}
        for seen in self._seen.values():
            labels = _labels(seen.lease)
            if labels.get(REPLICA) == ACTIVE and labels.get(COUNT) == str(self.shards) and seen.is_held(now):
                found.add(seen.lease.holder)
        return sorted(found)

    def _holders(self, now: float) -> dict[int, str]:
        """Who holds each shard that somebody holds."""
        return {
            int(index): seen.lease.holder
            for seen in self._seen.values()
            if (index := str(_labels(seen.lease).get(SHARD, ""))).isdecimal() and seen.is_held(now)
        }

    def _in_own_order(self, members: Sequence[str]) -> list[int]:
        """All shards; each replica begins elsewhere, so that not all try for the same."""
        first = members.index(self.identity) * self.shards // len(members)
        return [(first + i) % self.shards for i in range(self.shards)]

    def _other_numbers(self, now: float) -> str:
        """Who is at work with another number of shards; "" if nobody is."""
        found: set[str] = set()
        for seen in self._seen.values():
            labels = _labels(seen.lease)
            takes_part = SHARD in labels or labels.get(REPLICA) == ACTIVE
            mine = seen.lease.holder == self.identity
            if takes_part and not mine and labels.get(COUNT) != str(self.shards) and seen.is_held(now):
                found.add(f"{seen.lease.holder} ({labels.get(COUNT)} shards)")
        if not found:
            return ""
        return (
            f"this replica has {self.shards} shards, and others split the keys otherwise: {', '.join(sorted(found))}. "
            "It takes none before they have ended, or keys would run twice at once"
        )


def fair_part(identity: str, counts: Mapping[str, int], shards: int) -> int:
    """How many shards one of several replicas is to have, by how many each has now.

    All parts together are `shards`, and differ by 1 at most; the bigger ones go to who has most, so little moves.
    """
    least, more = divmod(shards, len(counts))
    order = sorted(counts, key=lambda each: (-counts[each], each))
    return least + (order.index(identity) < more)


def _labels(lease: Lease) -> Mapping[str, object]:
    labels = lease.wire["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}
