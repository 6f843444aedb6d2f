"""Quantity: amounts such as "500m" CPU or "1.5Gi" memory."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal
from functools import total_ordering
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from kopylite.objects.amounts import Amount, parse_quantity

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
# How other tools write it; it also lets exponents with a fraction pass, which the API server cannot read.
USUAL_PATTERN = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
PATTERN = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"
# No amount that means something needs more; reading takes more than linear time.
_MAX_TEXT = 500
# Nothing below a nano, nothing above what 63 bits hold. quantity.go caps binary amounts only: a cap for all keeps what
# a tenant writes as 1e99999 from costing memory here.
_NANO = Decimal("1e-9")
_MAX = Decimal(2**63 - 1)
# In a text of that length no exponent moves the amount farther than one of three digits does: to nothing or to the cap.
_LONG_EXPONENT = re.compile(r"(?<=[eE])([+-]?)0*[1-9][0-9]{3,}\Z")
# Wide enough for every amount with all its nanos.
_EXACT = Context(prec=60)


@total_ordering
class Quantity:
    """An exact amount. Immutable; equal amounts are equal however they are written ("1" == "1000m").

    As a field it accepts texts and whole numbers, and is written back exactly as it was read. Amounts finer than
    a nano are rounded away from zero, as the API server does; amounts beyond 63 bits are capped, as it does with those
    that have a binary suffix.

    Args:
        amount: a text such as "1.5Gi", a number, or another Quantity.

    Raises:
        ValueError: it is no quantity.
    """

    __slots__ = ("_form", "_wire", "value")

    value: Decimal
    """The amount in its unit (cores, bytes, ...)."""
    _form: str  # of the suffix: decimal, binary or exponent
    _wire: str | int  # as it was read

    def __init__(self, amount: str | int | float | Decimal | Quantity) -> None:
        if isinstance(amount, Quantity):
            self.value, self._form, self._wire = amount.value, amount._form, amount._wire
        elif isinstance(amount, str):
            self.value, self._form = _parse(amount)
            self._wire = amount
        else:
            try:
                self.value, self._form = _bounded(Decimal(str(amount))), "decimal"
            except ArithmeticError:  # of True, None, NaN
                raise ValueError(f'a quantity is a text such as "1.5Gi", or a number, and not {amount!r}') from None
            self._wire = amount if type(amount) is int else self.canonical()

    @classmethod
    def _of(cls, value: Decimal, form: str) -> Quantity:
        quantity = object.__new__(cls)
        quantity.value, quantity._form = _bounded(value), form
        quantity._wire = quantity.canonical()
        return quantity

    @property
    def wire(self) -> str | int:
        """As it was read, and as it is written."""
        return self._wire

    def canonical(self) -> str:
        """The text that the API server would print: no fraction, the largest fitting suffix."""
        return Amount(self.value, self._form).text()

    def __str__(self) -> str:
        return str(self._wire)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __add__(self, other: Quantity) -> Quantity:
        return self._of(self.value + other.value, self._form if self else other._form)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._of(self.value - other.value, self._form if self else other._form)

    def __mul__(self, factor: int | Decimal) -> Quantity:
        return self._of(_EXACT.multiply(self.value, Decimal(factor)), self._form)

    def __neg__(self) -> Quantity:
        return self._of(-self.value, self._form)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(_wire_of, when_used="json-unless-none"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"x-kubernetes-int-or-string": True, "pattern": PATTERN}

    @classmethod
    def _validate(cls, value: Any, info: ValidationInfo) -> Quantity:
        # On the wire it is a text or a whole number.
        allowed = (str, int) if info.mode == "json" else (str, int, float, Decimal, Quantity)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise ValueError('a quantity is a text such as "1.5Gi", or a number')
        return cls(value)


def _wire_of(quantity: Quantity) -> str | int:
    return quantity._wire


def _parse(text: str) -> tuple[Decimal, str]:
    if len(text) > _MAX_TEXT:
        raise ValueError(f"a quantity has at most {_MAX_TEXT} characters, not {len(text)}")
    try:
        amount = parse_quantity(_LONG_EXPONENT.sub(r"\g<1>999", text))
    except ValueError:
        raise ValueError(f'{text[:50]!r} is no quantity; write it like "500m" or "1.5Gi"') from None
    return _bounded(amount.value), amount.form


def _bounded(value: Decimal) -> Decimal:
    value = max(-_MAX, min(_MAX, value))
    return value.quantize(_NANO, rounding=ROUND_UP, context=_EXACT).normalize(_EXACT)
