"""What the evaluation of rules may cost, counted while it happens. Pure.

A real server refuses a CRD whose rules may cost too much; here every rule is accepted and stopped in time. The counts
are upstream's limits; the unit, an element that a macro visits, is about one of theirs or less.
"""

from __future__ import annotations

from contextvars import ContextVar

from kopylite.apiserver.schema.cel.library import CallFailed

# PerCallLimit and RuntimeCELCostBudget of k8s.io/apiserver.
PER_CALL, PER_OBJECT = 1_000_000, 10_000_000
# No text of a request is longer than this; what rules make of it may not be either.
MAX_TEXT = 3 * 1024 * 1024
EXCEEDED = "operation cancelled: actual cost limit exceeded"


class _Left:
    __slots__ = ("call", "total")

    def __init__(self) -> None:
        self.call, self.total = PER_CALL, PER_OBJECT


_LEFT: ContextVar[_Left] = ContextVar("cel_cost_left")


def begin_object() -> None:
    """From here on the rules of one object are evaluated."""
    _LEFT.set(_Left())


def begin_call() -> None:
    """From here on one expression is evaluated."""
    left = _LEFT.get(None)
    if left is not None:
        left.call = PER_CALL


def spend(cost: int) -> bool:
    """True. Raises CallFailed when the limits are exceeded."""
    left = _LEFT.get(None)
    if left is not None:
        left.call -= cost
        left.total -= cost
        if left.call < 0 or left.total < 0:
            raise CallFailed(EXCEEDED)
    return True


def check_length(length: int) -> None:
    """Raises CallFailed: a text of so many characters is not made."""
    if length > MAX_TEXT:
        raise CallFailed(EXCEEDED)
