"""Trace: what happened in one run, in its order: requests of the operator, changes of the store, faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

OPERATOR, SCENARIO, SIMULATOR, SERVER, WEBHOOKS = "operator", "scenario", "simulator", "server", "webhooks"
# What may be written for ever, and what no two runs have alike.
NOISE = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})


@dataclass(frozen=True, slots=True)
class Point:
    """A request of the operator, so that it is found again in another run.

    Attributes:
        verb: create, update, patch, delete, deletecollection.
        resource: the plural with its group ("deployments.apps").
        name: with its namespace; what was made up is a "*".
        nth: how often this was asked before, from 1.
    """

    verb: str
    resource: str
    subresource: str
    name: str
    nth: int = 1

    def fits(self, other: Point) -> bool:
        """Whether the other one is this one; a name that ends with "*" stands for all that begin so."""
        alike = self.name.endswith("*") and other.name.startswith(self.name[:-1])
        return self == (replace(other, name=self.name) if alike else other)

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        again = f" (time {self.nth})" if self.nth > 1 else ""
        return f"{self.verb} {what} {self.name}{again}"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the user's code."""

    file: str
    line: int
    function: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(slots=True)
class TraceEntry:
    """One thing that happened.

    Attributes:
        kind: "write" (a request of the operator that writes), "change" (of a stored object), "fault", "start",
            "effect", "step", "error".
        actor: who did it.
        step: during which step of the scenario, from 0.
        point: of a write.
        text: for people.
        status: of the answer to a write.
        frames: the user's code that asked for a write, innermost first.
        changed: of a write: whether it changed anything; of a call: whether it is no repeat of one with the same key.
        key: of a change: "storage namespace/name".
        change: of a change: ADDED, MODIFIED or DELETED; `before` and `after` are the object then.
        effect: of a call that left the cluster: its name, its arguments, and its key, as texts.
    """

    kind: str
    actor: str
    time: float
    step: int
    text: str
    point: Point | None = None
    status: int = 0
    frames: tuple[CodeLine, ...] = ()
    changed: bool = False
    key: str = ""
    change: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    effect: tuple[str, str, str] | None = None

    def __str__(self) -> str:
        answer = f" -> {self.status}" if self.kind == "write" else ""
        return f"{self.time:9.3f}s {self.actor}: {self.text}{answer}"


def kinds_in(entries: Iterable[TraceEntry]) -> dict[str, str]:
    """The kinds of storages, as far as a trace shows them."""
    return {e.key.partition(" ")[0]: e.after["kind"] for e in entries if e.after is not None and "kind" in e.after}


@dataclass(slots=True)
class Trace:
    """All entries of a run."""

    entries: list[TraceEntry] = field(default_factory=list)

    def add(self, entry: TraceEntry) -> TraceEntry:
        self.entries.append(entry)
        return entry

    def writes(self) -> list[TraceEntry]:
        """The operator's writing requests that have a place in the sweep."""
        return [e for e in self.entries if e.kind == "write" and e.actor == OPERATOR]

    def changes(self) -> Iterator[TraceEntry]:
        return (e for e in self.entries if e.kind == "change")
