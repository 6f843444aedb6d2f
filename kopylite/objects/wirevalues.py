"""The law of writing: what is sent reads back as what was meant, or it is refused with the field's path.

`wire_value` makes JSON values of what a program puts into an object. JSON has no NaN, an iterator can be read once, a
time without a zone is somebody's local time, a secret is not to be shown by accident: none of them is sent.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import math
from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec
from pydantic import BaseModel

from kopylite.errors import EncodeError
from kopylite.objects.quantity import Quantity
from kopylite.objects.wireformats import write_duration, write_number, write_time

# Values of these types are JSON as they are.
_PLAIN = frozenset({bool, type(None)})
_AS_TEXT = (UUID, PurePath, IPv4Address, IPv4Network, IPv6Address, IPv6Network)


class _Refused(Exception):
    """A value that cannot be sent; the steps to it are added on the way out."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.steps: list[str | int] = []


def wire_value(value: Any, *, name: str = "") -> Any:
    """The JSON form of a value and of all that is in it; parts that are JSON already are not copied.

    Times become RFC 3339 texts, durations Go's ("1h30m0s"), bytes base64, sets sorted lists, whole floats integers;
    enums, decimals, UUIDs, paths, addresses, models, dataclasses and msgspec structs what they stand for.

    Args:
        name: of the object, for the error.

    Raises:
        EncodeError: naming the field, for what has no such form: NaN and infinity, integers beyond 64 bits, times
            without a zone, keys that are no texts, iterators, secrets, lone surrogates, what contains itself.
    """
    try:
        return _convert(value)
    except _Refused as refused:
        raise EncodeError(refused.problem, field_path(refused.steps[::-1]), name) from None
    except RecursionError:
        raise EncodeError("is nested too deep, or contains itself", "object", name) from None


def field_path(steps: list[str | int]) -> str:
    """The place of a value, such as `spec.ports[0].name`."""
    # A step that begins with an index is the rest of a path.
    text = "".join(f"[{step}]" if isinstance(step, int) else step if step[:1] == "[" else f".{step}" for step in steps)
    return text.removeprefix(".") or "object"


def _convert(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _whole_text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        if -(2**63) <= value < 2**63:
            return value
        raise _Refused("is an integer beyond 64 bits")
    if kind is dict:
        return _convert_dict(value)
    if kind is list:
        return _convert_list(value)
    for types, convert in _CONVERSIONS:
        if isinstance(value, types):
            return convert(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _convert_dict({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if _is_url(value):
        return str(value)
    raise _Refused(_why_not(value))


def _is_url(value: Any) -> bool:
    from pydantic import AnyUrl  # pydantic has it in a module of its own, which few operators load

    return isinstance(value, AnyUrl)


def _convert_dict(value: Mapping[Any, Any]) -> dict[str, Any]:
    result: Any = value if isinstance(value, dict) else dict(value)
    changed = result is not value
    for key, inner in list(result.items()) if changed else result.items():
        kind = type(inner)
        if type(key) is str and key.isascii():
            if inner.isascii() if kind is str else kind in _PLAIN:
                continue  # most are
            text = key
        else:
            text = _key(key)
        try:
            new = _convert_dict(inner) if kind is dict else _convert(inner)
        except _Refused as refused:
            refused.steps.append(str(key))
            raise
        if new is not inner or text is not key:
            if not changed:
                result, changed = dict(result), True
            if text is not key:
                if text != key and text in result:
                    raise _Refused(f"has the key {text!r} twice")
                del result[key]
            result[text] = new
    return result  # type: ignore[no-any-return]


def _convert_list(value: Any) -> list[Any]:
    result: list[Any] = value if type(value) is list else list(value)
    changed = result is not value
    for index, inner in enumerate(result):
        try:
            new = _convert_dict(inner) if type(inner) is dict else _convert(inner)
        except _Refused as refused:
            refused.steps.append(index)
            raise
        if new is not inner:
            if not changed:
                result, changed = list(result), True
            result[index] = new
    return result


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if not isinstance(key, str):
        raise _Refused(f"has a key that is no text ({type(key).__name__})")
    return _whole_text(str.__str__(key))


def _whole_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused("has a lone surrogate, which is no character") from None
    return text


def _sorted(values: Any) -> list[Any]:
    """Else each process would write them in another order, and each write be a change."""
    items = _convert_list(values)
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=str)


def _float(value: float) -> float | int:
    if not math.isfinite(value):
        raise _Refused(f"is {value}, which JSON does not have")
    return write_number(float(value))  # type: ignore[no-any-return]


def _moment(value: datetime) -> str:
    try:
        return write_time(value)  # type: ignore[no-any-return]
    except ValueError as error:
        raise _Refused(str(error)) from None


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise _Refused(f"is {value}, which is no decimal number")
    return str(value)


def _model(value: Any) -> Any:
    from kopylite.objects.modelcodec import to_wire

    try:
        return to_wire(value)
    except EncodeError as error:
        refused = _Refused(error.problem)
        refused.steps.append(error.field)
        raise refused from None


def _why_not(value: Any) -> str:
    if hasattr(value, "get_secret_value"):
        return "is a secret; give its get_secret_value() if the server shall have it"
    if hasattr(value, "__next__"):
        return f"is a {type(value).__name__}, which can be read only once; make a list of it"
    return f"is a {type(value).__name__}, which has no JSON form"


_CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (enum.Enum, lambda value: _convert(value.value)),
    (bool, bool),
    (str, lambda value: _whole_text(str.__str__(value))),
    (int, lambda value: _convert(int(value))),
    (float, _float),
    (Mapping, _convert_dict),
    ((list, tuple, deque), _convert_list),
    ((set, frozenset), _sorted),
    (BaseModel, _model),
    (datetime, _moment),
    ((date, time), lambda value: value.isoformat()),
    (timedelta, write_duration),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(value).decode()),
    (Decimal, _decimal),
    (Quantity, lambda value: _convert(value.wire)),
    (_AS_TEXT, str),
    (msgspec.Struct, lambda value: _convert(msgspec.to_builtins(value))),
)
