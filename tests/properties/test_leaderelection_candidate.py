"""Random histories of candidates for one Lease: at no moment of real time are there two leaders.

Clocks show anything and run at speeds of their own; requests and answers are late or lost, also those of writes that
are carried out; processes crash, hang and come back; people and programs write to the Lease, or delete it. The
decisions are `Candidate`'s; what is played here is the server, the network, and the little that `Elector` does.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kopylite.leaderelection import Candidate, Lease, LeaseSettings
from tests.sizes import examples

SETTINGS = LeaseSettings(name="a", namespace="b")
# The slowest clock and the fastest: their ratio has to be below duration / deadline, which is 1.5.
SLOWEST, FASTEST = 0.85, 1.2
START = datetime(2026, 1, 1, tzinfo=UTC)


class Server:
    """One Lease with optimistic concurrency, and what people do to it."""

    def __init__(self) -> None:
        self.wire: dict[str, Any] | None = None
        self.version = 1

    def read(self) -> Lease | None:
        return None if self.wire is None else Lease.of(json.dumps(self.wire).encode())

    def write(self, wish: Lease) -> Lease | None:
        """What is stored then; None: a conflict, or it is not there, or there already."""
        current = "" if self.wire is None else self.wire["metadata"]["resourceVersion"]
        if wish.version != current:
            return None
        self.put(dict(wish.wire))
        return self.read()

    def put(self, wire: dict[str, Any]) -> None:
        self.version += 1
        self.wire = {**wire, "metadata": {**wire["metadata"], "resourceVersion": str(self.version)}}

    def meddle(self, random: Random, identities: list[str]) -> None:
        """By hand, or by a program that means well; all but the two forms that mean "it is given back"."""
        if self.wire is None:
            return
        spec = dict(self.wire.get("spec") or {})
        held = spec.get("holderIdentity")
        match random.randrange(6):
            case 0:
                self.wire = None
                return
            case 1 if held and spec["leaseDurationSeconds"] > 1:
                spec["holderIdentity"] = ""
            case 2:
                spec["holderIdentity"] = random.choice([*identities, "somebody"])
                spec["leaseDurationSeconds"] = spec.get("leaseDurationSeconds") or 15
            case 3 if held:
                spec["leaseDurationSeconds"] = random.choice([1, 5, 40])
            case 4 if held:
                # Another one each time: see the first rule of the candidate.
                spec["renewTime"] = f"2020-01-01T00:00:00.{self.version:06d}Z"
            case _:
                pass  # a label: another version, and no other record
        self.put({**self.wire, "spec": spec})


class Replica:
    """One process: a candidate with a clock, and whether it hangs."""

    def __init__(self, world: World, identity: str) -> None:
        random = world.random
        self.world = world
        self.candidate = Candidate(identity, SETTINGS)
        self.offset = random.uniform(-1e6, 1e6)
        self.rate = random.uniform(SLOWEST, FASTEST)
        self.wall = timedelta(seconds=random.uniform(-600, 600))
        self.dead = False

    @property
    def now(self) -> float:
        return self.offset + self.rate * self.world.now

    @property
    def clock(self) -> datetime:
        return START + self.wall + timedelta(seconds=self.world.now)

    @property
    def leads(self) -> bool:
        return not self.dead and self.candidate.leads(self.now)

    def live(self) -> Iterator[float]:
        """The shell in small: yields for how long, by its own clock, it does nothing."""
        candidate, random = self.candidate, self.world.random
        while True:
            yield from self.world.trip()
            if not candidate.may_claim(self.now) or not (yield from self.write(candidate.claim(self.now, self.clock))):
                yield from self.read()
                if candidate.may_claim(self.now):
                    yield from self.write(candidate.claim(self.now, self.clock))
            if candidate.leads(self.now):
                yield from self.lead()
            yield candidate.look_in(self.now, random.random())

    def lead(self) -> Iterator[float]:
        candidate, random, failed = self.candidate, self.world.random, False
        patience = random.uniform(1, 200)
        until = self.now + patience
        while candidate.leads(self.now) and self.now < until:
            yield max(0.0, candidate.renew_in(self.now, random.random(), failed=failed))
            if not candidate.leads(self.now):
                break
            failed = not (yield from self.write(candidate.claim(self.now, self.clock)))
            if failed:
                yield from self.read()
            if candidate.deposed:
                break
        candidate.stopped()
        if random.random() < 0.8 and (wish := candidate.release(self.clock)) is not None:
            yield from self.write(wish)

    def read(self) -> Iterator[float]:
        yield from self.world.trip()
        if self.world.lost():
            return
        found = self.world.server.read()
        yield from self.world.trip()
        if not self.world.lost():
            self.candidate.saw(found, self.now)

    def write(self, wish: Lease) -> Any:
        """A generator whose value is whether the write was answered, and taken. It may arrive long after that."""
        began, answer, server = self.now, [], self.world.server
        self.candidate.sends(wish)
        delay = self.world.delay()
        if not self.world.lost():
            self.world.at(self.world.now + delay, lambda: answer.append(server.write(wish)))
        yield min(delay, 5.0) * self.rate
        if not answer or self.world.lost():
            yield 5.0
            return False
        yield from self.world.trip()
        if answer[0] is None:
            self.candidate.refused(wish)
            return False
        return self.candidate.wrote(wish, answer[0], began, self.now)


class World:
    """Real time, and everything that happens in it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.server = Server()
        self.faulty = True
        self.replicas: list[Replica] = []
        self._names = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self.terms = 0

    def at(self, when: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), act))

    def lost(self) -> bool:
        return self.faulty and self.random.random() < 0.08

    def delay(self) -> float:
        if self.faulty and self.random.random() < 0.1:
            return self.random.uniform(0, 40)
        return self.random.uniform(0, 0.1)

    def trip(self) -> Iterator[float]:
        """Half a way between a process and the server; now and then the process is stopped meanwhile."""
        yield self.delay()

    def join(self) -> None:
        replica = Replica(self, f"replica-{next(self._names)}")
        self.replicas.append(replica)
        self._go_on(replica, replica.live())

    def _go_on(self, replica: Replica, life: Iterator[float]) -> None:
        if replica.dead:
            return
        led = replica.leads
        pause = next(life)
        if replica.leads and not led:
            self.terms += 1
        self.at(self.now + pause / replica.rate, lambda: self._go_on(replica, life))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, act = heapq.heappop(self._agenda)
            act()
            leaders = [replica.candidate.identity for replica in self.replicas if replica.leads]
            assert len(leaders) <= 1, f"at {self.now:.3f} s there are two leaders: {leaders}"
        self.now = until

    def disturb(self) -> None:
        """Something happens to a process or to the Lease, and again later."""
        if not self.faulty:
            return
        living = [replica for replica in self.replicas if not replica.dead]
        match self.random.randrange(4):
            case 0 if len(living) > 1:
                self.random.choice(living).dead = True
            case 1 if len(living) < 4:
                self.join()
            case _:
                self.server.meddle(self.random, [replica.candidate.identity for replica in self.replicas])
        self.at(self.now + self.random.expovariate(1 / 15), self.disturb)


@settings(max_examples=examples(120), deadline=None, phases=[Phase.explicit, Phase.generate])  # a seed does not shrink
@given(st.integers(0, 2**64).map(Random))
def test_there_are_never_two_leaders_and_when_all_is_well_there_is_one(random: Random) -> None:
    world = World(random)
    if random.random() < 0.3:
        world.server.put({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}})
    for _ in range(3):
        world.join()
    world.at(random.uniform(0, 30), world.disturb)
    world.run(400)
    world.faulty = False
    world.run(500)
    assert world.terms > 0
    # A leader steps down of itself from time to time; then another one follows at once.
    assert any(replica.leads for replica in world.replicas) or world.server.read() is not None
    before = world.terms
    world.run(900)
    assert world.terms > before
