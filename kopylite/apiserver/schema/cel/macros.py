"""The macros of CEL as loops: over lists and the keys of maps, with one variable or two. Pure.

What each turn costs is what cel-go counts for the loop that it unfolds the macro to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kopylite.apiserver.schema.cel import costs
from kopylite.apiserver.schema.cel.budget import Frame
from kopylite.apiserver.schema.cel.library import FunctionFailed, no_overload
from kopylite.apiserver.schema.cel.values import OptionalValue

Run = Callable[[Frame], Any]
_UNSET = object()


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a macro: once, and for each turn beside its parts."""

    once: int
    turn: int


# all, exists, ... as cel-go unfolds them: conditions, accumulators, lists of one that are added.
MACRO_COSTS: Mapping[str, Cost] = {
    "all": Cost(1, 3), "exists": Cost(1, 4), "exists_one": Cost(2, 2), "map": Cost(costs.LIST + 1, 12),
    "filter": Cost(costs.LIST + 1, 13), "transformList": Cost(costs.LIST + 1, 12),
    "transformMap": Cost(costs.MAP + 1, 3), "transformMapEntry": Cost(costs.MAP + 1, 2),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loop:
    """What a macro goes over, with which variables.

    Attributes:
        names: one variable for elements or keys; or two, for index or key and value.
        turn: what each turn costs beside its parts.
    """

    target: Run
    names: tuple[str, ...]
    cost: Cost

    def over(self, frame: Frame) -> Iterable[None]:
        """Bind the variables for each element in turn; afterwards they are what they were."""
        value = self.target(frame)
        if not isinstance(value, (list, dict)):
            raise no_overload()
        frame.spend(self.cost.once)
        variables, names, turn = frame.variables, self.names, self.cost.turn
        before = [variables.get(name, _UNSET) for name in names]
        try:
            if len(names) == 1:
                name = names[0]
                for element in value:
                    frame.spend(turn)
                    variables[name] = element
                    yield
            else:
                first, second = names
                for key, element in value.items() if isinstance(value, dict) else enumerate(value):
                    frame.spend(turn)
                    variables[first], variables[second] = key, element
                    yield
        finally:
            for name, old in zip(names, before, strict=True):
                if old is _UNSET:
                    variables.pop(name, None)
                else:
                    variables[name] = old


def decides(loop: Loop, predicate: Run, *, until: bool) -> Run:
    """`all` (until the first False) and `exists` (until the first True): an error counts if nothing decides."""

    def run(frame: Frame) -> bool:
        failure: FunctionFailed | None = None
        for _ in loop.over(frame):
            try:
                found: Any = predicate(frame)
            except FunctionFailed as failed:
                failure = failure or failed
                continue
            if found is until:  # the object itself: 1 is no True
                return bool(until)
            if not isinstance(found, bool):
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not until

    return run


def exists_one(loop: Loop, predicate: Run) -> Run:
    def run(frame: Frame) -> bool:
        return sum(1 for _ in loop.over(frame) if _true(predicate(frame))) == 1

    return run


def collects(loop: Loop, body: Run | None, condition: Run | None) -> Run:
    """`map`, `filter` (no body: the element itself) and `transformList`."""
    name = loop.names[-1]

    def run(frame: Frame) -> list[Any]:
        return [
            frame.variables[name] if body is None else body(frame)
            for _ in loop.over(frame)
            if condition is None or _true(condition(frame))
        ]

    return run


def transforms_map(loop: Loop, body: Run, condition: Run | None, *, entries: bool) -> Run:
    """`transformMap` (the body is a value) and `transformMapEntry` (it is a map of one or more entries)."""

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in loop.over(frame):
            if condition is not None and not _true(condition(frame)):
                continue
            made = body(frame) if entries else {frame.variables[loop.names[0]]: body(frame)}
            if not isinstance(made, dict):
                raise no_overload()
            for key, value in made.items():
                if key in found:
                    raise FunctionFailed(f"insert failed: key {key} already exists")
                found[key] = value
        return found

    return run


def optional_map(target: Run, name: str, body: Run, *, flat: bool) -> Run:
    """`optMap` and `optFlatMap`."""

    def run(frame: Frame) -> OptionalValue:
        value = target(frame)
        if not isinstance(value, OptionalValue):
            raise no_overload()
        if not value.has_value():
            return value
        before = frame.variables.get(name, _UNSET)
        frame.variables[name] = value.value()
        try:
            made = body(frame)
        finally:
            if before is _UNSET:
                del frame.variables[name]
            else:
                frame.variables[name] = before
        if not flat:
            return OptionalValue.of(made)
        if not isinstance(made, OptionalValue):
            raise no_overload()
        return made

    return run


def _true(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_overload()
    return value
