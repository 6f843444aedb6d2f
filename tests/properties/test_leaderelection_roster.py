"""Random histories of replicas that split the work: no key is in the hands of two, and in the end each has its part.

Replicas join, leave, die, hang and are cut off; requests and answers are late or lost, also those of writes that are
carried out; clocks run at speeds of their own; some replicas split the keys into another number of shards. The
decisions are `Roster`'s and `Candidate`'s; what is played here is the server, the network, and the little that
`Membership` and `Elector` do.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from kopylite.leaderelection import Candidate, Lease, LeaseSettings, Roster, shard_labels
from kopylite.leaderelection.lease import absent, micro_time
from kopylite.leaderelection.roster import COUNT, REPLICA, SHARDS_OF
from kopylite.objects.shard import Shard
from tests.sizes import examples

T = TypeVar("T")

TIMES = LeaseSettings(name="a", namespace="b")
# Their ratio has to be below duration / deadline, which is 1.5.
SLOWEST, FASTEST = 0.85, 1.2
START = datetime(2026, 1, 1, tzinfo=UTC)


class Server:
    """Leases, with optimistic concurrency."""

    def __init__(self) -> None:
        self.wires: dict[str, dict[str, Any]] = {}
        self.version = 0

    def read(self, name: str) -> Lease | None:
        wire = self.wires.get(name)
        return None if wire is None else Lease.of(json.dumps(wire).encode())

    def list(self) -> list[Lease]:
        return [found for name in self.wires if (found := self.read(name)) is not None and _is_labelled(found)]

    def write(self, wish: Lease) -> Lease | None:
        """What is stored then; None: a conflict, or it is not there, or there already."""
        name = wish.wire["metadata"]["name"]
        current = self.wires[name]["metadata"]["resourceVersion"] if name in self.wires else ""
        if wish.version != current:
            return None
        self.version += 1
        wire = dict(wish.wire)
        self.wires[name] = {**wire, "metadata": {**wire["metadata"], "resourceVersion": str(self.version)}}
        return self.read(name)

    def delete(self, lease: Lease) -> None:
        name = lease.wire["metadata"]["name"]
        if name in self.wires and self.wires[name]["metadata"]["resourceVersion"] == lease.version:
            del self.wires[name]


def _is_labelled(lease: Lease) -> bool:
    return (lease.wire["metadata"].get("labels") or {}).get(SHARDS_OF) == "app"


class Replica:
    """One process."""

    def __init__(self, world: World, identity: str, shards: int) -> None:
        random = world.random
        self.world, self.identity, self.shards = world, identity, shards
        self.roster = Roster(identity, "app", shards, TIMES)
        self.posts = [Post(self, shard) for shard in range(shards)]
        self.own: Lease | None = None
        self.offset = random.uniform(-1e6, 1e6)
        self.rate = random.uniform(SLOWEST, FASTEST)
        self.wall = timedelta(seconds=random.uniform(-600, 600))
        self.dead = self.cut = self.leaving = False
        self.hangs_until = 0.0

    @property
    def now(self) -> float:
        return self.offset + self.rate * self.world.now

    @property
    def clock(self) -> datetime:
        return START + self.wall + timedelta(seconds=self.world.now)

    @property
    def held(self) -> list[int]:
        return [post.shard for post in self.posts if post.leads]

    def ask(self, act: Callable[[], T]) -> Generator[float, None, list[T]]:
        """A request; its value is a list with the answer, or empty if there was none. It may arrive after that."""
        answer: list[T] = []
        delay = self.world.delay()
        if not self.world.lost(self):
            self.world.at(self.world.now + delay, lambda: answer.append(act()))
        yield min(delay, 5.0) * self.rate
        if not answer or self.world.lost(self):
            yield 5.0
            return []
        yield self.world.delay()
        return answer

    def live(self) -> Iterator[float]:
        """The Membership in small: yields for how long, by its own clock, it does nothing."""
        random, roster = self.world.random, self.roster
        while not (self.leaving and not self.held and not any(post.busy for post in self.posts)):
            state = roster.state
            yield from self.announce()
            yield from self.look()
            plan = roster.plan(self.held, self.now)
            for post in self.posts:
                post.stands = post.shard in plan.wanted and not self.leaving
            if roster.state == state:
                yield TIMES.retry_period * (0.6 + 0.4 * random.random())
        if self.own is not None:
            own = self.own
            yield from self.ask(lambda: self.world.server.delete(own))
        self.dead = True

    def announce(self) -> Iterator[float]:
        began, state, known, server = self.now, self.roster.state, self.own, self.world.server
        lease = known or absent(f"app-replica-{self.identity}", "b")
        stamp = micro_time(self.clock)
        labels = {SHARDS_OF: "app", COUNT: str(self.shards), REPLICA: state}
        wish = lease.labelled(labels).written(
            holder=self.identity, duration=15, acquired=lease.acquired or stamp, renewed=stamp, transitions=0
        )
        answer = yield from self.ask(lambda: server.write(wish))
        if not answer:
            return
        if answer[0] is not None:
            self.own = answer[0]
            self.roster.wrote(state, began, self.now, anew=known is None)
        elif found := (yield from self.ask(lambda: server.read(f"app-replica-{self.identity}"))):
            self.own = found[0]

    def look(self) -> Iterator[float]:
        asked, server = self.now, self.world.server
        answer = yield from self.ask(server.list)
        if answer:
            self.roster.saw(answer[0], asked, self.now)
            for lease in answer[0]:
                for post in self.posts:
                    if lease.wire["metadata"]["name"] == post.name and not post.stands and not post.busy:
                        post.candidate.saw(lease, self.now)
        for litter in self.roster.litter(self.now):
            yield from self.ask(partial(server.delete, litter))


class Post:
    """The elector of one shard in small, and what it runs."""

    def __init__(self, replica: Replica, shard: int) -> None:
        self.replica, self.shard, self.name = replica, shard, f"app-shard-{shard}"
        labels = shard_labels("app", shard, replica.shards)
        settings = LeaseSettings(name=self.name, namespace="b", labels=labels)
        self.candidate = Candidate(replica.identity, settings)
        self.stands = self.busy = False

    @property
    def leads(self) -> bool:
        return not self.replica.dead and self.candidate.leads(self.replica.now)

    def live(self) -> Iterator[float]:
        replica, candidate, random = self.replica, self.candidate, self.replica.world.random
        while True:
            if not self.stands:
                yield 0.2
                continue
            self.busy = True
            if not (yield from self.claim()):
                yield from self.read()
                yield from self.claim()
            if candidate.leads(replica.now):
                yield from self.lead()
            self.busy = False
            yield candidate.look_in(replica.now, random.random())

    def claim(self) -> Generator[float, None, bool]:
        replica, candidate = self.replica, self.candidate
        if not (self.stands and candidate.may_claim(replica.now) and replica.roster.may_claim(replica.now)):
            return False
        return (yield from self.write(candidate.claim(replica.now, replica.clock)))

    def lead(self) -> Iterator[float]:
        replica, candidate, random, failed = self.replica, self.candidate, self.replica.world.random, False
        drained: float | None = None
        while candidate.leads(replica.now) and (drained is None or replica.now < drained):
            if drained is None and not self.stands:
                drained = replica.now + random.uniform(0, 4)
            pause = candidate.renew_in(replica.now, random.random(), failed=failed)
            if drained is not None and replica.now + pause > drained:
                yield max(0.0, drained - replica.now)
                continue
            yield max(0.0, pause)
            if not candidate.leads(replica.now):
                break
            failed = not (yield from self.write(candidate.claim(replica.now, replica.clock)))
            if failed:
                yield from self.read()
            if candidate.deposed:
                break
        candidate.stopped()
        if (wish := candidate.release(replica.clock)) is not None:
            yield from self.write(wish)

    def read(self) -> Iterator[float]:
        answer = yield from self.replica.ask(lambda: self.replica.world.server.read(self.name))
        if answer:
            self.candidate.saw(answer[0], self.replica.now)

    def write(self, wish: Lease) -> Generator[float, None, bool]:
        replica, began = self.replica, self.replica.now
        self.candidate.sends(wish)
        answer = yield from replica.ask(lambda: replica.world.server.write(wish))
        if not answer:
            return False
        if answer[0] is None:
            self.candidate.refused(wish)
            return False
        leads = self.candidate.wrote(wish, answer[0], began, replica.now)
        replica.world.check()
        return leads


class World:
    """Real time, and everything that happens in it."""

    def __init__(self, random: Random, counts: list[int]) -> None:
        self.random, self.counts = random, counts
        self.now = 0.0
        self.server = Server()
        self.faulty = True
        self.replicas: list[Replica] = []
        self.moves = 0
        self._names = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._holders: dict[tuple[int, int], str] = {}

    def at(self, when: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), act))

    def lost(self, replica: Replica) -> bool:
        return replica.cut or (self.faulty and self.random.random() < 0.04)

    def delay(self) -> float:
        if self.faulty and self.random.random() < 0.05:
            return self.random.uniform(0, 20)
        return self.random.uniform(0, 0.1)

    def join(self, shards: int | None = None) -> None:
        replica = Replica(self, f"replica-{next(self._names)}", shards or self.random.choice(self.counts))
        self.replicas.append(replica)
        for life in (replica.live(), *(post.live() for post in replica.posts)):
            self._go_on(replica, life)

    def _go_on(self, replica: Replica, life: Iterator[float]) -> None:
        if replica.dead:
            return
        if self.now < replica.hangs_until:  # SIGSTOP: its clock runs on
            self.at(replica.hangs_until, lambda: self._go_on(replica, life))
            return
        pause = next(life, None)
        if pause is not None:
            self.at(self.now + pause / replica.rate, lambda: self._go_on(replica, life))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, act = heapq.heappop(self._agenda)
            act()
        self.now = until

    def check(self) -> None:
        """Whoever holds a range of uids holds it alone. Looked at after every write: nothing else makes a holder."""
        held = sorted(
            (Shard(shard, replica.shards).first, Shard(shard, replica.shards).end, replica.identity, replica.shards)
            for replica in self.replicas
            for shard in ([] if replica.dead else replica.held)
        )
        for (_, end, one, _), (first, _, other, _) in itertools.pairwise(held):
            assert end <= first, f"at {self.now:.3f} s a key is in the hands of {one} and {other}"
        for first, _, identity, shards in held:
            if self._holders.get((first, shards)) != identity:
                self._holders[first, shards] = identity
                self.moves += 1

    def disturb(self) -> None:
        """Something happens to a replica, and again later."""
        if not self.faulty:
            return
        random = self.random
        living = [replica for replica in self.replicas if not replica.dead]
        some = random.choice(living) if living else None
        match random.randrange(5):
            case 0 if some is not None and len(living) > 1:
                some.dead = True
            case 1 if some is not None and len(living) > 1:
                some.leaving = True
                some.roster.leave()
            case 2 if some is not None:
                some.cut = True
                self.at(self.now + random.uniform(1, 60), lambda: setattr(some, "cut", False))
            case 3 if some is not None:
                some.hangs_until = self.now + random.uniform(1, 60)
            case _ if len(living) < 5:
                self.join()
        self.at(self.now + random.expovariate(1 / 20), self.disturb)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=examples(200), deadline=None, phases=[Phase.explicit, Phase.generate])  # a seed does not shrink
@given(st.integers(0, 2**64).map(Random))
@example(Random(209106))  # one stops for 40 s, writes that it is there, and goes on as if it had been
def test_no_key_is_in_the_hands_of_two_and_in_the_end_each_replica_has_its_part(random: Random) -> None:
    counts = random.choice([[4], [3], [6], [4, 8], [2, 3]])
    world = World(random, counts)
    for _ in range(random.randrange(1, 4)):
        world.join()
    world.at(random.uniform(0, 40), world.disturb)
    world.run(200)
    world.faulty = False
    kept = random.choice(counts)
    for replica in world.replicas:
        if replica.shards != kept and not replica.leaving:  # a deployment that ends its old replicas
            replica.leaving = True
            replica.roster.leave()
    if not any(replica.shards == kept and not replica.leaving and not replica.dead for replica in world.replicas):
        world.join(kept)
    world.run(360)
    living = [replica for replica in world.replicas if not replica.dead]
    parts = sorted(len(replica.held) for replica in living)
    assert sum(parts) == kept, f"{parts} of {kept}"
    assert parts[-1] - parts[0] <= 1, "each has its fair part"
    before = world.moves
    world.run(420)
    assert world.moves == before, "and nothing moves any more"
