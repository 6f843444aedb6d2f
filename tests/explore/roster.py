"""2 replicas that split the work, by the same or by another number of shards: who says what, and who sees it when."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from kopylite.leaderelection import Candidate, Lease, LeaseSettings, Roster, shard_labels
from kopylite.leaderelection.candidate import NEVER
from kopylite.leaderelection.lease import absent, micro_time
from kopylite.leaderelection.roster import COUNT, REPLICA, SHARD, SHARDS_OF
from kopylite.objects.shard import Shard

TIMES: dict[str, Any] = {"namespace": "b", "lease_duration": 3, "renew_deadline": 2, "retry_period": 1}
START = datetime(2026, 1, 1, tzinfo=UTC)
# Seconds of a fair schedule after which all is divided, from wherever it was.
SOON = 16
OLD = 5


class Replica:
    """A Roster, a Candidate for each shard, and what is on its way.

    Attributes:
        looked: what the server showed, and when it was asked; not yet received.
        claim: a shard and the write that would take or renew it; not yet carried out.
    """

    def __init__(self, name: str, shards: int) -> None:
        self.name, self.shards = name, shards
        self.roster = Roster(name, "app", shards, LeaseSettings(name="a", **TIMES))
        self.posts = [Candidate(name, _settings(shard, shards)) for shard in range(shards)]
        self.own: Lease | None = None
        self.looked: tuple[int, tuple[Lease, ...]] | None = None
        self.claim: tuple[int, int, Lease] | None = None
        self.leaving = False

    def held(self, now: int) -> list[int]:
        return [shard for shard, post in enumerate(self.posts) if post.leads(now)]

    def wanted(self, now: int) -> frozenset[int]:
        return frozenset() if self.leaving else self.roster.plan(self.held(now), now).wanted

    def may(self, shard: int, now: int) -> bool:
        """Whether a shard may be taken or renewed at this moment, as its elector asks."""
        post = self.posts[shard]
        if shard not in self.wanted(now):
            return False
        return post.leads(now) or (self.roster.may_claim(now) and post.may_claim(now))

    def copy(self) -> Replica:
        twin = Replica(self.name, 0)
        twin.shards = self.shards
        old, new = self.roster, twin.roster
        new.shards, new._phase, new._announced_at = old.shards, old._phase, old._announced_at
        new._present_until, new._seen, new._blocked = old._present_until, dict(old._seen), old._blocked
        twin.posts = list(map(_copy_of, self.posts))
        twin.own, twin.looked, twin.claim, twin.leaving = self.own, self.looked, self.claim, self.leaving
        return twin


class ShardWorld:
    """The Leases on the server, and both replicas."""

    def __init__(self, counts: tuple[int, ...] = (2, 2)) -> None:
        self.now = 0
        self.version = 0
        self.leases: dict[str, Lease] = {}
        self.replicas = [Replica(name, count) for name, count in zip("xy", counts, strict=False)]

    def actions(self) -> Iterable[Hashable]:
        yield "second"
        for place, replica in enumerate(self.replicas):
            yield from (("announce", place), ("announce, and hear nothing", place))
            yield ("look", place) if replica.looked is None else ("see", place)
            if replica.claim is not None:
                yield from (("carry out", place), ("carry out, and hear nothing", place))
            else:
                yield from (("try", place, shard) for shard in sorted(replica.wanted(self.now)))
            surplus = set(replica.held(self.now)) - replica.wanted(self.now)
            yield from (("give back", place, shard) for shard in sorted(surplus))
            if not replica.leaving and place == 0:
                yield ("leave", place)

    def act(self, action: Any) -> None:
        if action == "second":
            self.now += 1
            return
        word, place, *rest = action
        replica = self.replicas[place]
        match word:
            case "announce" | "announce, and hear nothing":
                self._announce(replica, heard=word == "announce")
            case "look":
                replica.looked = self.now, tuple(self.leases.values())
            case "see":
                assert replica.looked is not None
                asked, leases = replica.looked
                replica.looked = None
                replica.roster.saw(leases, asked, self.now)
            case "try":
                self._try(replica, rest[0])
            case "carry out" | "carry out, and hear nothing":
                self._carry_out(replica, heard=word == "carry out")
            case "give back":
                self._give_back(replica.posts[rest[0]])
            case "leave":
                replica.leaving = True
                replica.roster.leave()

    def _try(self, replica: Replica, shard: int) -> None:
        """An elector that does not lead reads first; then a write is on its way, if it may be."""
        post = replica.posts[shard]
        if not post.leads(self.now):
            post.saw(self.leases.get(post.settings.name), self.now)
        if replica.may(shard, self.now):
            wish = post.claim(self.now, self._wall)
            post.sends(wish)
            replica.claim = self.now, shard, wish

    def _announce(self, replica: Replica, *, heard: bool) -> None:
        """Write that it is there, for its present state; one of its own that it does not know, it reads."""
        name, stamp, state = f"app-replica-{replica.name}", micro_time(self._wall), replica.roster.state
        known = replica.own
        labels = {SHARDS_OF: "app", COUNT: str(replica.shards), REPLICA: state}
        lease = (known or absent(name, "b")).labelled(labels)
        wish = lease.written(
            holder=replica.name, duration=3, acquired=lease.acquired or stamp, renewed=stamp, transitions=0
        )
        stored = self._write(wish)
        if not heard:
            return
        if stored is None:
            replica.own = self.leases.get(name)
            return
        replica.own = stored
        replica.roster.wrote(state, self.now, self.now, anew=known is None)

    def _carry_out(self, replica: Replica, *, heard: bool) -> None:
        assert replica.claim is not None
        began, shard, wish = replica.claim
        replica.claim = None
        stored, post = self._write(wish), replica.posts[shard]
        if not heard:
            return
        if stored is not None:
            post.wrote(wish, stored, began, self.now)
            return
        post.refused(wish)
        post.saw(self.leases.get(post.settings.name), self.now)
        if post.deposed:
            post.stopped()

    def _give_back(self, post: Candidate) -> None:
        post.stopped()  # its reconciles end first
        wish = post.release(self._wall)
        if wish is not None:
            post.sends(wish)
            stored = self._write(wish)
            if stored is not None:
                post.wrote(wish, stored, self.now, self.now)
            else:
                post.refused(wish)

    @property
    def _wall(self) -> datetime:
        return START + timedelta(seconds=self.now)

    def _write(self, wish: Lease) -> Lease | None:
        name = wish.wire["metadata"]["name"]
        if wish.version != (self.leases[name].version if name in self.leases else ""):
            return None
        self.version += 1
        wire = {**wish.wire, "metadata": {**wish.wire["metadata"], "resourceVersion": str(self.version)}}
        self.leases[name] = Lease.of(json.dumps(wire).encode())
        return self.leases[name]

    def check(self) -> None:
        """No key is in the hands of two."""
        first, second = (
            [Shard(shard, replica.shards) for shard in replica.held(self.now)] for replica in self.replicas
        )
        for one in first:
            for other in second:
                apart = one.end <= other.first or other.end <= one.first
                assert apart, f"a key is in the hands of two: {one.index} of {one.of}, {other.index} of {other.of}"

    def settle(self) -> None:
        """From here, when all goes well, the work is divided, if there is one number of shards; or who stays has it."""
        world = self.copy()
        if world.replicas[0].shards != world.replicas[1].shards and not world.replicas[0].leaving:
            return
        for _ in range(SOON):
            for place, replica in enumerate(world.replicas):
                world._turn(place, replica)
            world.act("second")
        parts = [len(replica.held(world.now)) for replica in world.replicas]
        fair = [0, 2] if world.replicas[0].leaving else [1, 1]
        assert parts == fair, f"the work is divided into {parts} within {SOON} s"

    def _turn(self, place: int, replica: Replica) -> None:
        """What a replica does each second when nothing goes wrong."""
        replica.looked = replica.claim = None
        for word in ("announce", "look", "see"):
            if not (replica.leaving and word == "announce"):
                self.act((word, place))
        for shard in sorted(set(replica.held(self.now)) - replica.wanted(self.now)):
            self.act(("give back", place, shard))
        for shard in sorted(replica.wanted(self.now)):
            self.act(("try", place, shard))
            if replica.claim is not None:
                self.act(("carry out", place))

    def key(self) -> Hashable:
        times: dict[str, int] = {}
        return (
            tuple((name, self._of_lease(lease, times)) for name, lease in sorted(self.leases.items())),
            tuple(self._of_replica(replica, times) for replica in self.replicas),
        )

    def _of_replica(self, replica: Replica, times: dict[str, int]) -> Hashable:
        roster = replica.roster
        said = None if roster._announced_at is None else min(self.now - roster._announced_at, OLD)
        looked, claim, shown = replica.looked, replica.claim, None
        if looked is not None:
            after = said is not None and looked[0] - (roster._announced_at or 0) >= 0
            shown = after, tuple(self._of_lease(lease, times) for lease in looked[1])
        return (
            roster._phase.name, said, self._left(roster._present_until), replica.leaving,
            tuple((n, self._of_lease(s.lease, times), min(self.now - s.since, OLD)) for n, s in roster._seen.items()),
            tuple(
                (self._of_lease(p.known, times), p._seen, self._left(p.free_at), self._left(p.lead_until),
                 self._of_record(p._answered, times), tuple(self._of_record(r, times) for r in p._open))
                for p in replica.posts
            ),
            replica.own and self._of_lease(replica.own, times),
            shown,
            claim and (min(self.now - claim[0], OLD), claim[1], self._of_lease(claim[2], times)),
        )  # fmt: skip

    def _left(self, moment: float) -> float:
        return max(moment - self.now, -1.0) if moment > NEVER else -1.0

    def _of_lease(self, lease: Lease | None, times: dict[str, int]) -> Hashable:
        if lease is None:
            return None
        current = self.leases.get(lease.wire["metadata"]["name"])
        labels = lease.wire["metadata"].get("labels") or {}
        marks = labels.get(REPLICA), labels.get(SHARD), labels.get(COUNT)
        return self._of_record(lease.record, times), marks, current is not None and current.version == lease.version

    def _of_record(self, record: Any, times: dict[str, int]) -> Hashable:
        if record is None:
            return None
        holder, duration, acquired, renewed, transitions = record
        numbers = [times.setdefault(str(each), len(times)) for each in (acquired, renewed, transitions)]
        return holder, duration, *numbers, renewed == micro_time(self._wall), bool(acquired)

    def copy(self) -> Self:
        twin = type(self)(())
        twin.now, twin.version, twin.leases = self.now, self.version, dict(self.leases)
        twin.replicas = [replica.copy() for replica in self.replicas]
        return twin


def _settings(shard: int, shards: int) -> LeaseSettings:
    return LeaseSettings(name=f"app-shard-{shard}", labels=shard_labels("app", shard, shards), **TIMES)


def _copy_of(old: Candidate) -> Candidate:
    new = Candidate(old.identity, old.settings)
    new.known, new.lead_until, new.free_at, new._seen = old.known, old.lead_until, old.free_at, old._seen
    new._answered, new._renewed_at = old._answered, old._renewed_at
    new._open.extend(old._open)
    return new


def divisions() -> Iterable[ShardWorld]:
    """Both begin at once; or x has all of it when y comes, with as many shards or with another number of them."""
    yield ShardWorld((2, 2))
    yield ShardWorld((1, 2))
    for counts in ((2, 2), (1, 2)):
        world = ShardWorld(counts)
        for _ in range(8):
            world._turn(0, world.replicas[0])
            world.act("second")
        assert len(world.replicas[0].held(world.now - 1)) == counts[0]
        world._turn(0, world.replicas[0])
        yield world
