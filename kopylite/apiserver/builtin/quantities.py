"""resource.Quantity: parsing, comparing, and the canonical text. Pure."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

BAD_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BY_POWER = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_MAX = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_MILLI = Decimal("0.001")


class Quantity(NamedTuple):
    """A number and the form in which it is written: "decimal", "binary" or "exponent"."""

    value: Decimal
    form: str

    def text(self) -> str:
        """The canonical text: no fraction, and the largest suffix that needs none."""
        if self.value == 0:
            return "0"
        if self.form == "binary" and self.value == self.value.to_integral_value():
            return self._binary()
        exponent = 18 if self.form != "exponent" else 3 * (self.value.adjusted() // 3)
        while self.value % Decimal(10) ** exponent != 0:
            exponent -= 3
        number = int(self.value / Decimal(10) ** exponent)
        if self.form == "exponent":
            return f"{number}e{exponent}" if exponent else str(number)
        return f"{number}{_BY_EXPONENT[exponent]}"

    def _binary(self) -> str:
        number, power = int(self.value), 0
        while number % 1024 == 0 and power < 6:
            number, power = number // 1024, power + 1
        return f"{number}{_BY_POWER[power]}"


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Read a quantity; precision beyond nano is rounded up, away from zero, as the real server does.

    Raises:
        ValueError: it is none; the message is the server's.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(BAD_QUANTITY)
    sign, digits, suffix = match.groups(default="")
    try:
        number = Decimal(sign + digits)
        if suffix in _BINARY:
            value, form = number * 1024 ** _BINARY[suffix], "binary"
        elif suffix[:1] in ("e", "E") and suffix != "E":
            value, form = number.scaleb(int(suffix[1:])), "exponent"
        else:
            value, form = number.scaleb(_DECIMAL[suffix]), "decimal"
    except (InvalidOperation, OverflowError) as error:
        raise ValueError(BAD_QUANTITY) from error
    if form == "binary" and value != value.to_integral_value() and abs(value) < 1:
        form = "decimal"
    return Quantity(min(max(value.quantize(_NANO, ROUND_UP), -_MAX), _MAX).normalize(), form)


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The text that the server answers with.

    Raises:
        ValueError: it is no quantity.
    """
    return parse_quantity(text.strip()).text()


@lru_cache(maxsize=4096)
def rounded_to_milli(text: str) -> str:
    """The canonical text rounded up to thousandths: what the server keeps of requests and limits."""
    quantity = parse_quantity(text)
    return Quantity(quantity.value.quantize(_MILLI, ROUND_UP).normalize(), quantity.form).text()
