"""Kubernetes' CEL libraries of quantities and semantic versions. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from kopylite.apiserver.schema.cel.library import FunctionFailed, Library, attempts, no_overload
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.objects.amounts import parse_quantity

QUANTITIES = Library()

_QUANTITY, _SEMVER = "kubernetes.Quantity", "kubernetes.Semver"
_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z.-]+))?"
)


def _parse(text: str) -> Decimal:
    try:
        return parse_quantity(text).value
    except ValueError as error:
        raise FunctionFailed(str(error)) from None


def _quantity_value(number: Decimal) -> dict[str, str]:
    return {_QUANTITY: str(number.normalize())}


def _number(value: Any) -> Decimal:
    if isinstance(value, dict) and _QUANTITY in value:
        return Decimal(value[_QUANTITY])
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise no_overload()


@QUANTITIES.add("quantity", is_global=True)
def quantity(text: str) -> dict[str, str]:
    return _quantity_value(_parse(text))


@QUANTITIES.add("isQuantity", "bool", is_global=True)
def is_quantity(text: str) -> bool:
    return attempts(_parse, text)


@QUANTITIES.add("sign", "int")
def sign(value: Any) -> int:
    number = _number(value)
    return (number > 0) - (number < 0)


@QUANTITIES.add("isInteger", "bool")
def is_integer(value: Any) -> bool:
    number = _number(value)
    return number == number.to_integral_value() and abs(number) < 2**63


@QUANTITIES.add("asInteger", "int")
def as_integer(value: Any) -> int:
    if not is_integer(value):
        raise FunctionFailed("cannot convert value to integer")
    return int(_number(value))


@QUANTITIES.add("asApproximateFloat", "double")
def as_float(value: Any) -> float:
    return float(_number(value))


@QUANTITIES.add("add")
def add(a: Any, b: Any) -> dict[str, str]:
    return _quantity_value(_number(a) + _number(b))


@QUANTITIES.add("sub")
def subtract(a: Any, b: Any) -> dict[str, str]:
    return _quantity_value(_number(a) - _number(b))


def _compare(a: Any, b: Any) -> int:
    left, right = (_version_key(v[_SEMVER]) if isinstance(v, dict) and _SEMVER in v else _number(v) for v in (a, b))
    if type(left) is not type(right):
        raise no_overload()
    return (left > right) - (left < right)  # type: ignore[operator]


@QUANTITIES.add("isLessThan", "bool")
def is_less_than(a: Any, b: Any) -> bool:
    return _compare(a, b) < 0


@QUANTITIES.add("isGreaterThan", "bool")
def is_greater_than(a: Any, b: Any) -> bool:
    return _compare(a, b) > 0


@QUANTITIES.add("compareTo", "int")
def compare_to(a: Any, b: Any) -> int:
    return _compare(a, b)


def _version_key(text: str) -> tuple[Any, ...]:
    """Sorts by the rules of semver 2: a pre-release comes before its release; numbers before words."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise FunctionFailed(_version_problem(text))
    release = tuple(int(match[i]) for i in (1, 2, 3))
    if match[4] is None:
        return (*release, 1, ())
    parts = tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in match[4].split("."))
    return (*release, 0, parts)


def _version_problem(text: str) -> str:
    parts = text.split(".", 2)
    if not text:
        return "Version string empty"
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found"
    parts[2] = re.split("[-+]", parts[2], maxsplit=1)[0]
    for name, part in zip(("Major", "Minor", "Patch"), parts, strict=True):
        if not part.isascii() or not part.isdecimal():
            return f"Invalid character(s) found in {name.lower()} number {go_quote(part)}"
        if len(part) > 1 and part.startswith("0"):
            return f"{name} number must not contain leading zeroes {go_quote(part)}"
    return "Prerelease is empty"


def _normalized(text: str) -> str:
    """A loose version (`v1.2`, `01.2.3`) in full form."""
    core, mark, rest = re.fullmatch(r"v?([^-+]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [part.lstrip("0") or "0" for part in core.split(".")]
    return ".".join(parts + ["0"] * (3 - len(parts))) + mark + rest


@QUANTITIES.add("semver", is_global=True)
def semver(text: str, normalize: bool = False) -> dict[str, str]:
    text = _normalized(text) if normalize else text
    _version_key(text)
    return {_SEMVER: text}


@QUANTITIES.add("isSemver", "bool", is_global=True)
def is_semver(text: str, normalize: bool = False) -> bool:
    return attempts(semver, text, normalize)


def _version_part(name: str, index: int) -> None:
    @QUANTITIES.add(name, "int")
    def read(value: Any) -> int:
        return int(_version_key(value[_SEMVER])[index])


for _index, _name in enumerate(("major", "minor", "patch")):
    _version_part(_name, _index)
