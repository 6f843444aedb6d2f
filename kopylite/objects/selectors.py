"""Selector: what the labels (or fields) of an object have to be, as apimachinery's labels.Selector. Pure.

The texts are parsed by whoever reads them: `cache/selectors.py` tells the author of an operator what is wrong, the
embedded server answers in upstream's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

# From metav1.LabelSelector to a Selector, as LabelSelectorAsSelector of apimachinery has it.
OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}

# What strconv.ParseInt takes: no spaces, underscores or digits of other scripts, all of which Python's int reads.
_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")  # no label is longer, and Python refuses to read numbers that are far longer


class Requirement(msgspec.Struct, frozen=True):
    """One term. `operator` is one of = != in notin exists ! > <; values are a set.

    A missing label equals nothing and is in no set, so `!=` and `notin` match it.
    """

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it."""
        value = labels.get(self.key)
        if self.operator in ("=", "in"):
            return value is not None and value in self.values
        if self.operator in ("!=", "notin"):
            return value is None or value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        return value is not None and self._compares(value)

    def _compares(self, text: str) -> bool:
        value, bound = _integer(text), _integer(next(iter(self.values)))
        if value is None or bound is None:
            return False
        return value > bound if self.operator == ">" else value < bound


def _integer(text: str) -> int | None:
    """The number that a text is to the server; None: it is none."""
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class Selector:
    """All requirements must hold. An empty one is falsy and matches everything."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected; None are none."""
        found = labels or {}
        return all(requirement.matches(found) for requirement in self.requirements)

    def exact(self, key: str) -> str | None:
        """The one value that the selector asks for `key`, or None."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator == "=" and len(requirement.values) == 1:
                return next(iter(requirement.values))
        return None
