"""What the evaluation of expressions may cost, counted while it happens, in the units of cel-go. Pure.

A unit is about one step: a name, a field, ten characters of a text. So an expression that is stopped has had about
PER_CALL steps, whatever it does. That is a second or so of Python, more than an event loop can spare: there, a
caller says `quickly()`, and what takes longer than QUICK steps ends with TakesLong, to be begun anew in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kopylite.apiserver.schema.cel.library import FunctionFailed

# PerCallLimit, RuntimeCELCostBudget and RuntimeCELCostBudgetMatchConditions of k8s.io/apiserver.
PER_CALL, PER_OBJECT, PER_MATCH = 1_000_000, 10_000_000, 2_500_000
# Of all expressions about an object: some 20 ms.
QUICK = 20_000
# No text of a request is longer than this; what rules make of it may not be either.
MAX_TEXT = 3 * 1024 * 1024
EXCEEDED = "operation cancelled: actual cost limit exceeded"


class CostExceeded(Exception):
    """An expression cost more than it may: nothing absorbs this, `||` neither."""

    def __init__(self) -> None:
        super().__init__(EXCEEDED)


class Frame:
    """One evaluation: the variables that it sees, and what it has cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int = PER_CALL) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int) -> None:
        """Raises CostExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


class TakesLong(Exception):
    """The expressions about an object take longer than the event loop can wait for."""


_QUICKLY: ContextVar[bool] = ContextVar("cel_quickly", default=False)


@contextmanager
def quickly() -> Iterator[None]:
    """Budgets that are made in here end with TakesLong after QUICK."""
    token = _QUICKLY.set(True)
    try:
        yield
    finally:
        _QUICKLY.reset(token)


class Budget:
    """What all expressions about one object may cost together.

    Attributes:
        left: what is left of it; below zero it is used up.
    """

    __slots__ = ("_in_time", "left")

    def __init__(self, total: int = PER_OBJECT) -> None:
        self.left = total
        self._in_time = total - QUICK if _QUICKLY.get() else None

    def limit(self) -> int:
        """What the next expression may cost."""
        return PER_CALL if self._in_time is None else max(0, min(PER_CALL, self.left - self._in_time))

    def charge(self, cost: int) -> None:
        """Raises TakesLong."""
        self.left -= cost
        if self._in_time is not None and self.left < self._in_time:
            raise TakesLong


def share(size: float, factor: float = 0.1) -> int:
    """The cost of going through `size` characters once."""
    return math.ceil(size * factor) if size < 1e15 else int(size)


def check_length(length: int) -> None:
    """Raises CallFailed: a text of so many characters is not made."""
    if length > MAX_TEXT:
        raise FunctionFailed(EXCEEDED)
