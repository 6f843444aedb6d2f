"""Quantities as apimachinery's resource.Quantity reads and writes them (api/resource/quantity.go). Pure.

The one parser: of the embedded server, of its CEL library, and of `Quantity`, which users put into their models.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_UP, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

BAD_SUFFIX = "unable to parse quantity's suffix"
BAD_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

# Possessive, so that no text is looked at twice.
_FORM = re.compile(r"([+-]?)([0-9]++(?:\.[0-9]*+)?|\.[0-9]*+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]++)?")
_SUFFIXED = re.compile(r"(?:[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]*+)|[+-])[eEinumkKMGTP]*+[-+]?[0-9]*+")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BY_POWER = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_MAX = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_MILLI = Decimal("0.001")
# Quantities of any length are exact: the ordinary context keeps 28 digits.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
# A real server takes any 32 bits and computes for minutes.
_MAX_EXPONENT_DIGITS = 5
# Longer texts are not worth remembering, or are an attack on the cache.
_REMEMBERED = 64


class Amount(NamedTuple):
    """A number and the form in which it is written: "decimal", "binary" or "exponent"."""

    value: Decimal
    form: str

    def text(self) -> str:
        """The canonical text: no fraction, and the largest suffix that needs none."""
        if self.value == 0:
            return "0"
        if self.form == "binary" and self.value == self.value.to_integral_value():
            return self._binary()
        sign, digits, zeros = self.value.normalize(_EXACT).as_tuple()
        assert isinstance(zeros, int)
        exponent = 3 * (zeros // 3)
        if self.form != "exponent":
            exponent = min(exponent, 18)
        number = "-" * sign + "".join(map(str, digits)) + "0" * (zeros - exponent)
        if self.form == "exponent":
            return f"{number}e{exponent}" if exponent else number
        return f"{number}{_BY_EXPONENT[exponent]}"

    def _binary(self) -> str:
        number, power = int(self.value), 0
        while number % 1024 == 0 and power < 6:
            number, power = number // 1024, power + 1
        return f"{number}{_BY_POWER[power]}"


def parse_quantity(text: str) -> Amount:
    """Read a quantity; precision beyond nano is rounded up, away from zero, as the real server does.

    Raises:
        ValueError: it is none; the message is the server's.
    """
    return _parse_short(text) if len(text) <= _REMEMBERED else _parse(text)


def _parse(text: str) -> Amount:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(BAD_SUFFIX if _SUFFIXED.fullmatch(text) else BAD_QUANTITY)
    sign, digits, suffix = match.groups(default="")
    number = Decimal(sign + ("0" if digits == "." else digits))
    if suffix in _BINARY:
        value, form = _EXACT.multiply(number, Decimal(1024 ** _BINARY[suffix])), "binary"
        value = min(max(value, -_MAX), _MAX)
    elif suffix[:1] in ("e", "E") and suffix != "E":
        if len(suffix.lstrip("eE+-").lstrip("0")) > _MAX_EXPONENT_DIGITS:
            raise ValueError(BAD_SUFFIX)
        value, form = _EXACT.scaleb(number, Decimal(suffix[1:])), "exponent"
    else:
        value, form = _EXACT.scaleb(number, Decimal(_DECIMAL[suffix])), "decimal"
    if form == "binary" and abs(value) < 1 and value != value.to_integral_value():
        form = "decimal"
    return Amount(_rounded(value, _NANO), form)


_parse_short = lru_cache(maxsize=4096)(_parse)


def _rounded(value: Decimal, step: Decimal) -> Decimal:
    return value.quantize(step, ROUND_UP, _EXACT).normalize(_EXACT)


def canonical(text: str) -> str:
    """The text that the server answers with.

    Raises:
        ValueError: it is no quantity.
    """
    return _canonical_short(text) if len(text) <= _REMEMBERED else _canonical(text)


def _canonical(text: str) -> str:
    return _parse(text.strip(" ")).text()


_canonical_short = lru_cache(maxsize=4096)(_canonical)


def rounded_to_milli(text: str) -> str:
    """The canonical text rounded up to thousandths: what the server keeps of requests and limits."""
    quantity = parse_quantity(text)
    return Amount(_rounded(quantity.value, _MILLI), quantity.form).text()
