"""Numbers as Go keeps them in objects without types: an int64 or a float64, which shows no fraction that is none."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
# From here on Go writes floats with an exponent.
_EXPONENT = 1e21


def to_go_numbers(value: Any) -> None:
    """Change the numbers in a decoded JSON object or list in place."""
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    else:
        return
    for key, inner in pairs:
        kind = type(inner)
        if kind is dict or kind is list:
            to_go_numbers(inner)
        elif kind is float or (kind is int and not _MIN_INT64 <= inner <= _MAX_INT64):
            value[key] = _number(float(inner))


def _number(number: float) -> int | float:
    """A whole number has the shortest digits that read back as this float, and zeros, as Go writes it."""
    whole = number.is_integer() and abs(number) < _EXPONENT
    return int(Decimal(repr(number))) if whole else number


def same_in_go(one: Any, other: Any) -> bool:
    """Go's DeepEqual of decoded JSON: the float 1.0 is not the integer 1, and neither is `true`."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_in_go(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_in_go, one, other))
    return bool(one == other)
