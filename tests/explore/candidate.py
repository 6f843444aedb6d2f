"""One Lease and 2 candidates: requests on their way, answers that never come, hands in between, time.

A step is one thing that happens: a request is sent, is carried out, is answered; a second passes; somebody meddles.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from kopylite.leaderelection import Candidate, Lease, LeaseSettings
from kopylite.leaderelection.candidate import NEVER
from kopylite.leaderelection.lease import micro_time

SETTINGS = LeaseSettings(name="a", namespace="b", lease_duration=3, renew_deadline=2, retry_period=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
# An age of a request from which on it makes no difference.
OLD = 3
# A fair schedule brings a leader within so many seconds, from wherever it was.
SOON = 14


@dataclass(frozen=True)
class Request:
    """One of a candidate's: `wish` to write, or None to read; `stored` once it was carried out."""

    sent: int
    wish: Lease | None
    done: bool = False
    answer: Lease | None = None


class ElectionWorld:
    """The server's Lease, both candidates, and at most one request of each on its way, however long.

    Attributes:
        late: a write that its sender has given up, and that may yet be carried out.
    """

    def __init__(self, names: str = "xy") -> None:
        self.now = 0
        self.stored: Lease | None = None
        self.version = 1
        self.candidates = {name: Candidate(name, SETTINGS) for name in names}
        self.requests: dict[str, Request] = {}
        self.late: Lease | None = None

    # What happens

    def actions(self) -> Iterable[Hashable]:
        yield "second"
        if self.late is not None:
            yield "carry out late"
        if self.stored is not None:
            yield from (("meddle", how) for how in ("delete", "empty", "give to x", "touch"))
        for name, candidate in self.candidates.items():
            request = self.requests.get(name)
            if request is None:
                yield ("read", name)
                if candidate.may_claim(self.now) or candidate.leads(self.now):
                    yield ("claim", name)
                if candidate.leads(self.now):
                    yield ("release", name)
                continue
            if not request.done:
                yield ("carry out", name)
            else:
                yield ("answer", name)
            yield ("give up", name)

    def act(self, action: Any) -> None:
        if action == "second":
            self.now += 1
            return
        if action == "carry out late":
            assert self.late is not None
            self._write(self.late)
            self.late = None
            return
        word, name = action
        if word == "meddle":
            self._meddle(name)
            return
        candidate, request = self.candidates[name], self.requests.get(name)
        if word == "read":
            self.requests[name] = Request(self.now, None)
        elif word == "claim":
            self._send(name, candidate.claim(self.now, self._wall))
        elif word == "release":
            candidate.stopped()  # the elector stops its work first
            wish = candidate.release(self._wall)
            if wish is not None:
                self._send(name, wish)
        elif request is not None and word == "carry out":
            answer = self.stored if request.wish is None else self._write(request.wish)
            self.requests[name] = Request(request.sent, request.wish, True, answer)
        elif request is not None and word == "answer":
            self._answer(name, candidate, request)
        elif request is not None:  # the answer never comes; whether the write does is the server's affair
            del self.requests[name]
            self.late = self.late if request.done or request.wish is None else request.wish

    def _send(self, name: str, wish: Lease) -> None:
        self.candidates[name].sends(wish)
        self.requests[name] = Request(self.now, wish)

    def _answer(self, name: str, candidate: Candidate, request: Request) -> None:
        del self.requests[name]
        if request.wish is None:
            candidate.saw(request.answer, self.now)
            if candidate.deposed:
                candidate.stopped()
        elif request.answer is None:
            candidate.refused(request.wish)
        else:
            candidate.wrote(request.wish, request.answer, request.sent, self.now)

    @property
    def _wall(self) -> datetime:
        return START + timedelta(seconds=self.now)

    # The server

    def _write(self, wish: Lease) -> Lease | None:
        """What is stored then; None: it is not as it was read."""
        if wish.version != ("" if self.stored is None else self.stored.version):
            return None
        return self._put(wish.wire)

    def _put(self, wire: Mapping[str, Any]) -> Lease:
        self.version += 1
        wire = {**wire, "metadata": {**wire["metadata"], "resourceVersion": str(self.version)}}
        self.stored = Lease.of(json.dumps(wire).encode())
        return self.stored

    def _meddle(self, how: str) -> None:
        assert self.stored is not None
        spec = dict(self.stored.wire.get("spec") or {})
        if how == "delete":
            self.stored = None
            return
        if how == "empty" and spec.get("leaseDurationSeconds", 0) > 1:  # else it would say that it was given back
            spec["holderIdentity"] = ""
        elif how == "give to x":
            spec |= {"holderIdentity": "x", "leaseDurationSeconds": spec.get("leaseDurationSeconds") or 3}
        self._put({**self.stored.wire, "spec": spec})

    # What is promised

    def check(self) -> None:
        leaders = [name for name, candidate in self.candidates.items() if candidate.leads(self.now)]
        assert len(leaders) <= 1, f"two leaders: {leaders}"

    def settle(self) -> None:
        """From here, when requests are answered at once, somebody leads soon."""
        world = self.copy()
        world.requests.clear()
        for _ in range(SOON):
            for name, candidate in world.candidates.items():
                words = ("read", "claim") if not candidate.leads(world.now) else ("claim",)
                for word in words:
                    if word == "read" or candidate.may_claim(world.now) or candidate.leads(world.now):
                        for each in (word, "carry out", "answer"):
                            world.act((each, name))
                if candidate.leads(world.now):
                    return
            world.act("second")
        raise AssertionError(f"nobody leads within {SOON} s")

    # As a state

    def key(self) -> Hashable:
        times: dict[str, int] = {}
        return (
            self._of_lease(self.stored, times),
            tuple(
                (
                    self._of_lease(c.known, times), c._seen, self._left(c.free_at), self._left(c.lead_until),
                    self._of_record(c._answered, times), tuple(self._of_record(r, times) for r in c._open),
                )
                for c in self.candidates.values()
            ),
            self._of_lease(self.late, times),
            tuple(
                (name, min(self.now - r.sent, OLD), r.done, self._of_lease(r.wish, times),
                 self._of_lease(r.answer, times))
                for name, r in sorted(self.requests.items())
            ),
        )  # fmt: skip

    def _left(self, moment: float) -> float:
        return max(moment - self.now, -1.0) if moment > NEVER else -1.0

    def _of_lease(self, lease: Lease | None, times: dict[str, int]) -> Hashable:
        if lease is None:
            return None
        return self._of_record(lease.record, times), self.version - int(lease.version or self.version + 1)

    def _of_record(self, record: Any, times: dict[str, int]) -> Hashable:
        """With its times and its count by their order of appearance: only whether they are the same counts."""
        if record is None:
            return None
        holder, duration, acquired, renewed, transitions = record
        numbers = [times.setdefault(str(each), len(times)) for each in (acquired, renewed, transitions)]
        stamp = renewed == micro_time(self._wall)  # a claim of this second must not have the same
        return holder, duration, *numbers, stamp, bool(acquired)

    def copy(self) -> Self:
        twin = type(self)("")
        twin.now, twin.stored, twin.version, twin.requests = self.now, self.stored, self.version, dict(self.requests)
        twin.late = self.late
        for name, old in self.candidates.items():
            new = twin.candidates[name] = Candidate(name, SETTINGS)
            new.known, new.lead_until, new.free_at, new._seen = old.known, old.lead_until, old.free_at, old._seen
            new._answered, new._renewed_at = old._answered, old._renewed_at
            new._open.extend(old._open)
        return twin


def elections() -> Iterable[ElectionWorld]:
    """From where the histories begin: no Lease, one of the manifests, one that x holds and y has seen."""
    yield ElectionWorld()
    unused = ElectionWorld()
    unused._put({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", "namespace": "b"}})
    yield unused
    led = unused.copy()
    for step in ("read", "carry out", "answer", "claim", "carry out", "answer"):
        led.act((step, "x"))
    yield led
    seen = led.copy()
    for step in ("read", "carry out", "answer"):
        seen.act((step, "y"))
    yield seen
