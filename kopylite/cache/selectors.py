"""LabelSelector: the label selector language of the API server, parsed once and matched in memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kopylite.errors import UsageError

_KEY: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE: Final = r"[-A-Za-z0-9_.]*"
_TERM: Final = re.compile(
    rf"""\s*(?:
        !\s*(?P<absent>{_KEY})
      | (?P<key>{_KEY})\s*(?:
            (?P<sign>==|=|!=)\s*(?P<value>{_VALUE})
          | (?P<order>[<>])\s*(?P<bound>-?\d+)
          | (?P<word>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term. `operator` is one of: exists, absent, in, notin, <, >."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        bound = int(next(iter(self.values)))
        try:
            number = int(value or "")
        except ValueError:
            return False
        return number < bound if self.operator == "<" else number > bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold. As on the server, `k!=v` and `k notin (...)` also match where k is absent."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        present = labels or {}
        return all(requirement.matches(present) for requirement in self.requirements)


@functools.lru_cache(maxsize=256)
def parse_label_selector(text: str) -> LabelSelector:
    """Parse e.g. "app=web,tier in (a,b),!legacy". The empty text matches everything.

    Raises:
        UsageError: it is no label selector.
    """
    if not text.strip():
        return LabelSelector(())
    requirements: list[Requirement] = []
    at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            raise UsageError(f"label selector {text!r}: cannot read {text[at:]!r}")
        requirements.append(_requirement(term))
        at = term.end()
    if text.rstrip().endswith(","):
        raise UsageError(f"label selector {text!r}: nothing follows the last comma")
    return LabelSelector(tuple(requirements))


def _requirement(term: re.Match[str]) -> Requirement:
    if term["absent"]:
        return Requirement(term["absent"], "absent")
    key = term["key"]
    if term["sign"]:
        return Requirement(key, "notin" if term["sign"] == "!=" else "in", frozenset({term["value"]}))
    if term["order"]:
        return Requirement(key, term["order"], frozenset({term["bound"]}))
    if term["word"]:
        return Requirement(key, term["word"], frozenset(value.strip() for value in term["values"].split(",")))
    return Requirement(key, "exists")
