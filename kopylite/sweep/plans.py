"""Plans: which faults happen where, in one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from kopylite.errors import UsageError
from kopylite.sweep.trace import Point, TraceEntry

# In the order of their yield; the names of `--faults`.
FAULTS = {
    "rerun": "a run, or a start, with nothing to do must write nothing",
    "crash": "a crash after each write",
    "response": "the answer to a write is lost",
    "effect": "a crash after each call that leaves the cluster (see @effect)",
    "missed": "changes while the operator is down, several of them at once",
    "recreate": "objects are deleted and created anew, between a read and a write, after a write, and while it is down",
    "writer": "somebody else writes to the same object between a read and a write, and holds it by a finalizer",
    "stale": "events come late after a write; caches are behind after a restart",
    "refused": "a write is refused: 409, 429, 500",
    "watch": "watches are cut at an event, and their history is gone",
}
# Writes of one line to one kind are alike; so many of them are tried.
ALIKE = 3


@dataclass(frozen=True, slots=True)
class Spot:
    """One fault at one place.

    Attributes:
        fault: one of FAULTS.
        how: which variety of it.
        point: the write of the operator where it happens.
        step: of the scenario, from 0.
        number: an HTTP status, or which effect or event.
        path: a JSON pointer: to a list with other writers.
    """

    fault: str
    how: str = ""
    point: Point | None = None
    step: int = 0
    number: int = 0
    path: str = ""

    def __str__(self) -> str:
        where = f" at {self.point}" if self.point else f" in step {self.step + 1}"
        return f"{self.fault}{f' ({self.how})' if self.how else ''}{where}{f' #{self.number}' if self.number else ''}"

    def to_wire(self) -> dict[str, Any]:
        """As JSON; what is left out has its default."""
        wire: dict[str, Any] = {"fault": self.fault}
        for name in ("how", "step", "number", "path"):
            if value := getattr(self, name):
                wire[name] = value
        if self.point:
            wire["point"] = {each.name: getattr(self.point, each.name) for each in fields(Point)}
        return wire

    @classmethod
    def of_wire(cls, wire: Mapping[str, Any]) -> Spot:
        """Raises UsageError."""
        try:
            rest = {key: value for key, value in wire.items() if key != "point"}
            return cls(**rest, point=Point(**wire["point"]) if wire.get("point") else None)
        except (TypeError, AttributeError) as error:
            raise UsageError(f"this is no fault of a plan: {wire!r}: {error}") from None


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """What goes wrong in one run; nothing, in a reference run."""

    spots: tuple[Spot, ...] = ()
    seed: int = 0

    def __str__(self) -> str:
        return " and ".join(map(str, self.spots)) or "no fault"

    def to_wire(self) -> dict[str, Any]:
        return {"seed": self.seed, "faults": [spot.to_wire() for spot in self.spots]}

    @classmethod
    def of_wire(cls, wire: Any) -> FaultPlan:
        """Raises UsageError."""
        if not isinstance(wire, Mapping) or not isinstance(wire.get("faults"), list):
            raise UsageError("this is no plan: a plan is a map with seed and faults, as `--json` writes it")
        return cls(tuple(map(Spot.of_wire, wire["faults"])), int(wire.get("seed", 0)))


@dataclass(frozen=True, slots=True)
class FaultGround:
    """What plans are made from: what happened without faults.

    Attributes:
        writes: of the operator, in order.
        steps: how many there are.
        deletes: the steps that begin with a deletion.
        forcing: the steps that take finalizers away by hand: who is down then cannot clean up.
        unrepeatable: the first step from which on no object can be made anew as it was: people change what only the
            operator made, which nobody repeats, or hold an object by a finalizer, so that it does not go.
        effects: how many calls left the cluster.
        lists: the writes that make a list longer which has other writers too, with its path.
        events: how many events the operator's watches brought in each step.
    """

    writes: Sequence[TraceEntry]
    steps: int
    deletes: frozenset[int] = frozenset()
    forcing: frozenset[int] = frozenset()
    unrepeatable: int = 1 << 30
    effects: int = 0
    lists: Sequence[tuple[TraceEntry, str]] = ()
    events: Sequence[int] = ()


def parse_faults(text: str) -> tuple[str, ...]:
    """The faults of a list with commas, in the order of their yield. Raises UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        raise UsageError(f"there is no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
    if not names:
        raise UsageError(f"no fault is named; there are {', '.join(FAULTS)}")
    return tuple(name for name in FAULTS if name in names)


def plans_of(ground: FaultGround, faults: Collection[str], seed: int) -> Iterator[FaultPlan]:
    """All plans, those that find most first."""
    for fault in FAULTS:
        if fault in faults:
            for spot in _SPOTS[fault](ground):
                yield FaultPlan((spot,), seed)


def _distinct(ground: FaultGround, *verbs: str) -> Iterator[TraceEntry]:
    """The writes that are worth a plan each."""
    counted: Counter[Any] = Counter()
    for write in ground.writes:
        point = write.point
        if point is None or write.status >= 300 or (verbs and point.verb not in verbs):
            continue
        line = write.frames[0] if write.frames else None
        alike = (line and (line.file, line.line), point.verb, point.resource, point.subresource, write.step)
        counted[alike] += 1
        if counted[alike] <= ALIKE:
            yield write


def _at_writes(fault: str, *hows: str, verbs: Collection[str] = ()) -> Any:
    def spots(ground: FaultGround) -> Iterator[Spot]:
        for how in hows or ("",):
            for write in _distinct(ground, *verbs):
                yield Spot(fault, how, write.point, write.step)

    return spots


def _rerun(ground: FaultGround) -> Iterator[Spot]:
    for how in ("run", "start"):
        yield Spot("rerun", how)


def _effect(ground: FaultGround) -> Iterator[Spot]:
    for number in range(1, ground.effects + 1):
        yield Spot("effect", number=number)


def _missed(ground: FaultGround) -> Iterator[Spot]:
    for step in range(1, ground.steps):
        if step not in ground.forcing:
            yield Spot("missed", "down", step=step)
    for step in range(ground.steps - 1):
        if not {step, step + 1} & ground.forcing:
            yield Spot("missed", "together", step=step)


def _recreate(ground: FaultGround) -> Iterator[Spot]:
    for step in range(min(ground.steps, ground.unrepeatable)):
        if step not in ground.deletes | ground.forcing:
            yield Spot("recreate", "down", step=step)
    for spot in _at_writes("recreate", "after", "before")(ground):
        if spot.step < ground.unrepeatable and spot.step not in ground.deletes | ground.forcing:
            yield spot


def _writer(ground: FaultGround) -> Iterator[Spot]:
    for write, path in ground.lists:
        yield Spot("writer", "list", write.point, write.step, path=path)
    yield from _at_writes("writer", "note", verbs=("update", "patch"))(ground)
    for step in sorted(ground.deletes):
        yield Spot("writer", "finalizer", step=step)


def _refused(ground: FaultGround) -> Iterator[Spot]:
    for write in _distinct(ground):
        yield Spot("refused", point=write.point, step=write.step, number=500)
    for write in _distinct(ground, "update", "patch"):
        yield Spot("refused", point=write.point, step=write.step, number=409)
    for write in _distinct(ground):
        yield Spot("refused", point=write.point, step=write.step, number=429)


def _watch(ground: FaultGround) -> Iterator[Spot]:
    for step in range(ground.steps):
        for number in range(1, min(ground.events[step] if step < len(ground.events) else 0, 6) + 1):
            for how in ("cut", "compacted"):
                yield Spot("watch", how, step=step, number=number)


_SPOTS: dict[str, Any] = {
    "rerun": _rerun,
    "crash": _at_writes("crash"),
    "response": _at_writes("response"),
    "effect": _effect,
    "missed": _missed,
    "recreate": _recreate,
    "writer": _writer,
    "stale": _at_writes("stale", "restart", "late"),
    "refused": _refused,
    "watch": _watch,
}
