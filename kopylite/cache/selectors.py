"""The label selector language of the API server, parsed once and matched in memory."""

from __future__ import annotations

import functools
import re
from typing import Final

from kopylite.errors import UsageError
from kopylite.objects.selectors import Requirement, Selector

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


@functools.lru_cache(maxsize=256)
def parse_label_selector(text: str) -> Selector:
    """Parse e.g. "app=web,tier in (a,b),!legacy". The empty text matches everything.

    Raises:
        UsageError: it is no label selector.
    """
    if not text.strip():
        return Selector(())
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
    return Selector(requirements)


def _requirement(term: re.Match[str]) -> Requirement:
    if term["absent"]:
        return Requirement(term["absent"], "!")
    key = term["key"]
    if term["sign"]:
        return Requirement(key, "notin" if term["sign"] == "!=" else "in", frozenset({term["value"]}))
    if term["order"]:
        return Requirement(key, term["order"], frozenset({term["bound"]}))
    if term["word"]:
        return Requirement(key, term["word"], frozenset(value.strip() for value in term["values"].split(",")))
    return Requirement(key, "exists")
