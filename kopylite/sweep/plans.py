"""Plans: which faults happen where, in one run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from kopylite.errors import UsageError
from kopylite.sweep.specs import REFUSED, Variation, together
from kopylite.sweep.trace import Point, TraceEntry

# In the order of their yield; the names of `--faults`.
FAULTS = {
    "rerun": "a run, or a start, with nothing to do must write nothing",
    "crash": "a crash after each write",
    "response": "the answer to a write is lost",
    "effect": "a crash after each call that leaves the cluster (see @effect)",
    "missed": "changes while the operator is down, several of them at once",
    "meanwhile": "the next step comes in the middle of a reconcile",
    "recreate": "objects are deleted and created anew, between a read and a write, after a write, and while it is down",
    "writer": "somebody else writes to the same object between a read and a write, and holds it by a finalizer",
    "stale": "events come late after a write; caches are behind after a restart",
    "leader": "another instance takes over, and a write of the old one arrives late",
    "children": "somebody deletes what the operator owns and watches",
    "refused": "a write is refused: 409, 429, 500",
    "outage": "the server refuses everything for half a minute, or all reads",
    "watch": "watches are cut at an event, their history is gone, or each event comes twice",
    "specs": "people try other values that the CRD's schema allows, or does not, and take them back",
    "pairs": "two of the others in one run, after all that are alone",
}
# Kinds whose objects hold data that cannot be made again.
KEEPERS = frozenset({"Secret", "PersistentVolumeClaim"})
# Kinds whose objects stay when another spec that asked for them has gone: they hold data, or were done once.
LEFT_OVER = frozenset({"PersistentVolumeClaim", "Job", "Pod"})
# Writes of one line to one kind are alike; so many of them are tried.
ALIKE = 3
# Of pairs there are too many: a crash and one of the next writes, and so many in all.
NEXT_WRITES, MOST_PAIRS = 2, 60
# Of other specs: of fields that are there, that are not, of what is refused, and of several fields at once.
MOST_SPECS, MOST_FRESH, MOST_REFUSED, MOST_TOGETHER = 30, 8, 4, 4
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Spot:
    """One fault at one place.

    Attributes:
        fault: one of FAULTS.
        how: which variety of it.
        point: the write of the operator where it happens.
        step: of the scenario, from 0.
        number: an HTTP status, or which effect or event.
        path: a JSON pointer, to a list with other writers; or "resource namespace/name" of an object.
        pointer: in that object, to a field with another value.
        value: that value, as JSON; "": the field goes.
    """

    fault: str
    how: str = ""
    point: Point | None = None
    step: int = 0
    number: int = 0
    path: str = ""
    pointer: str = ""
    value: str = ""

    def __str__(self) -> str:
        if self.pointer:
            changed = f"{self.pointer} to {self.value or 'nothing'} in {self.path}"
            return f"{self.fault} ({self.how}) in step {self.step + 1}: {changed}"
        where = f" at {self.point}" if self.point else f" in step {self.step + 1}"
        return f"{self.fault}{f' ({self.how})' if self.how else ''}{where}{f' #{self.number}' if self.number else ''}"

    def object(self, kinds: Mapping[str, str]) -> str:
        """The object that it is about, for people: "Thing default/a"."""
        storage, _, name = self.path.partition(" ")
        return f"{kinds.get(storage, storage)} {name}"

    def to_wire(self) -> dict[str, Any]:
        """As JSON; what is left out has its default."""
        wire: dict[str, Any] = {"fault": self.fault}
        for name in ("how", "step", "number", "path", "pointer", "value"):
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
            json.loads(rest.get("value") or "0")
            return cls(**rest, point=Point(**wire["point"]) if wire.get("point") else None)
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            raise UsageError(f"this is no fault of a plan: {wire!r}: {error}") from None


# No fault: generations are counted from another number, so that it is seen who copies them.
GENERATIONS = Spot("generations", number=100)


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
        gone: what was deleted, by whomever, with its step: "resource namespace/name".
        followed: the steps whose next one can come early.
        forcing: the steps that take finalizers away by hand: who is down then cannot clean up.
        unrepeatable: the first step from which on no object can be made anew as it was: people change what only the
            operator made, which nobody repeats, or hold an object by a finalizer, so that it does not go.
        effects: how many calls left the cluster.
        lists: the writes that make a list longer which has other writers too, with its path.
        events: how many events the operator's watches brought in each step.
        reads: the steps in which a reconcile reads from the server itself.
        children: what the operator owns and watches, by step: "resource namespace/name".
        specs: how what people write could be otherwise: step, "resource namespace/name", variations.
    """

    writes: Sequence[TraceEntry]
    steps: int
    deletes: frozenset[int] = frozenset()
    gone: frozenset[tuple[int, str]] = frozenset()
    followed: frozenset[int] = frozenset()
    forcing: frozenset[int] = frozenset()
    unrepeatable: int = 1 << 30
    effects: int = 0
    lists: Sequence[tuple[TraceEntry, str]] = ()
    events: Sequence[int] = ()
    reads: frozenset[int] = frozenset()
    children: Sequence[tuple[int, str]] = ()
    specs: Sequence[tuple[int, str, Sequence[Variation]]] = ()


def parse_faults(text: str) -> tuple[str, ...]:
    """The faults of a list with commas, in the order of their yield. Raises UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        raise UsageError(f"there is no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
    if not names:
        raise UsageError(f"no fault is named; there are {', '.join(FAULTS)}")
    return tuple(name for name in FAULTS if name in names)


def plans_of(ground: FaultGround, faults: Collection[str], seed: int) -> Iterator[FaultPlan]:
    """All plans. Whoever stops in between has tried some of each fault, from everywhere; specs and pairs come last."""
    placed: list[tuple[float, Spot]] = []
    for fault in FAULTS:
        if fault in faults and fault in _SPOTS:
            spots = _scattered([*dict.fromkeys(_SPOTS[fault](ground))])
            placed += [(number / len(spots), spot) for number, spot in enumerate(spots)]
    for _, spot in sorted(placed, key=lambda each: each[0]):
        yield FaultPlan((spot,), seed)
    if "specs" in faults:
        for some in _specs(ground):
            yield FaultPlan(some, seed)
    if "pairs" in faults:
        for both in _scattered([*dict.fromkeys(_pairs(ground))])[:MOST_PAIRS]:
            yield FaultPlan(both, seed)


def _scattered(found: Sequence[S]) -> list[S]:
    """The same in another order, of which each beginning is spread over all of it: the first, the middle one, ..."""
    size = 1 << max(len(found) - 1, 0).bit_length()
    bits = size.bit_length() - 1
    places = (int(f"{number:0{bits}b}"[::-1], 2) if bits else 0 for number in range(size))
    return [found[place] for place in places if place < len(found)]


def _pairs(ground: FaultGround) -> Iterator[tuple[Spot, ...]]:
    """A crash, or an answer that is lost, and what may go wrong while the operator gets over it."""
    writes = [*_distinct(ground)]
    for number, write in enumerate(writes):
        for first in (
            Spot("crash", point=write.point, step=write.step),
            Spot("stale", "restart", write.point, write.step),
        ):
            for later in writes[number + 1 :][:NEXT_WRITES]:
                if later.step == write.step:
                    yield first, Spot("crash", point=later.point, step=later.step)
                    yield first, Spot("refused", point=later.point, step=later.step, number=500)
            if write.step in ground.followed:
                yield first, Spot("missed", "down", step=write.step + 1)


def fewest(spots: Sequence[Spot], is_enough: Callable[[Sequence[Spot]], bool]) -> tuple[Spot, ...]:
    """Some of several faults, of which none can be left out. At least two: one alone was tried before."""
    kept = tuple(spots)
    for spot in spots:
        fewer = tuple(each for each in kept if each != spot)
        if len(fewer) > 1 and is_enough(fewer):
            kept = fewer
    return kept


def _specs(ground: FaultGround) -> Iterator[tuple[Spot, ...]]:
    """Other specs, one field at a time, and then some at once."""

    def spots(step: int, key: str, *changes: Variation) -> tuple[Spot, ...]:
        return tuple(Spot("specs", v.how, None, step, 0, key, v.pointer, v.value) for v in changes)

    every = [(step, key, each) for step, key, found in ground.specs for each in found]
    fits = [each for each in every if each[2].how != REFUSED]
    for most, some in (
        (MOST_SPECS, [each for each in fits if not each[2].fresh]),
        (MOST_FRESH, [each for each in fits if each[2].fresh]),
        (MOST_REFUSED, [each for each in every if each[2].how == REFUSED]),
    ):
        yield from (spots(*each) for each in _scattered(some)[:most])
    groups = [spots(step, key, *some) for step, key, found in ground.specs for some in together(found)]
    yield from _scattered(groups)[:MOST_TOGETHER]


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


def _meanwhile(ground: FaultGround) -> Iterator[Spot]:
    for spot in _at_writes("meanwhile")(ground):
        if spot.step in ground.followed:
            yield spot


def _stale(ground: FaultGround) -> Iterator[Spot]:
    yield from _at_writes("stale", "restart", "late")(ground)
    for step in range(ground.steps):
        if step not in ground.deletes | ground.forcing:
            yield Spot("stale", "behind", step=step)


def _leader(ground: FaultGround) -> Iterator[Spot]:
    """Not for what is deleted in the same step: nobody can keep an old instance's write from making it anew."""
    own = {
        (w.step, f"{w.point.resource} {w.point.name}") for w in ground.writes if w.point and w.point.verb == "delete"
    }
    for spot in _at_writes("leader")(ground):
        gone = ground.gone if spot.point.verb == "create" else own
        if spot.point.verb == "delete" or (spot.step, f"{spot.point.resource} {spot.point.name}") not in gone:
            yield spot


def _children(ground: FaultGround) -> Iterator[Spot]:
    for step, key in ground.children:
        if step < ground.unrepeatable and step not in ground.forcing:
            yield Spot("children", step=step, path=key)


def _outage(ground: FaultGround) -> Iterator[Spot]:
    for step in range(ground.steps):
        yield Spot("outage", "all", step=step)
    for step in sorted(ground.reads):
        yield Spot("outage", "reads", step=step)


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
    if any(ground.events):
        yield Spot("watch", "twice")


_SPOTS: dict[str, Any] = {
    "rerun": _rerun,
    "crash": _at_writes("crash"),
    "response": _at_writes("response"),
    "effect": _effect,
    "missed": _missed,
    "meanwhile": _meanwhile,
    "recreate": _recreate,
    "writer": _writer,
    "stale": _stale,
    "leader": _leader,
    "children": _children,
    "refused": _refused,
    "outage": _outage,
    "watch": _watch,
}
