"""Functions of CEL's core: conversions, sizes, parts of times. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from kopylite.apiserver.schema.cel.library import FunctionFailed, Library, no_overload
from kopylite.apiserver.schema.cel.shapes import parse_duration, parse_time
from kopylite.apiserver.schema.cel.values import TypeValue, Uint, type_of
from kopylite.apiserver.schema.field_errors import go_float

CONVERSIONS = Library()


@CONVERSIONS.add("size", "int", is_global=True)
def size(value: Any) -> int:
    """Of a string: code points."""
    return len(value)


@CONVERSIONS.add("string", "string", is_global=True)
def string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, timedelta):
        return f"{go_plain(value.total_seconds())}s"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (str, int)):
        return str(value)
    raise no_overload()


def go_plain(number: float) -> str:
    """A number without a needless fraction."""
    return str(int(number)) if number.is_integer() else repr(number)


@CONVERSIONS.add("bool", "bool", is_global=True)
def boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise FunctionFailed("type conversion error from 'string' to 'bool'")


def _conversion_failed(value: Any, wanted: str) -> FunctionFailed:
    return FunctionFailed(f"type conversion error from '{type_of(value)}' to '{wanted}'")


def _whole(value: Any, wanted: str, least: int, most: int) -> int:
    if isinstance(value, bool):
        raise no_overload()
    if isinstance(value, datetime) and wanted == "int":
        return int(value.timestamp())
    if isinstance(value, str):
        if not re.fullmatch(r"[-+]?[0-9]{1,20}", value, re.ASCII):
            raise _conversion_failed(value, wanted)
        value = int(value)
    if not isinstance(value, (int, float)):
        raise no_overload()
    if value != value or not least <= value <= most:
        raise FunctionFailed("integer overflow" if wanted == "int" else "unsigned integer overflow")
    return int(value)


@CONVERSIONS.add("int", "int", is_global=True)
def to_int(value: Any) -> int:
    return _whole(value, "int", -(2**63), 2**63 - 1)


@CONVERSIONS.add("uint", "uint", is_global=True)
def to_uint(value: Any) -> Uint:
    return Uint(_whole(value, "uint", 0, 2**64 - 1))


@CONVERSIONS.add("double", "double", is_global=True)
def to_double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise no_overload()
    try:
        return float(value)
    except ValueError:
        raise _conversion_failed(value, "double") from None


@CONVERSIONS.add("bytes", "bytes", is_global=True)
def to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise no_overload()
    return value.encode()


@CONVERSIONS.add("type", is_global=True)
def type_value(value: Any) -> TypeValue:
    return type_of(value)


@CONVERSIONS.add("duration", "duration", is_global=True)
def to_duration(value: Any) -> timedelta:
    parsed = value if isinstance(value, timedelta) else parse_duration(value)
    if parsed is None:
        raise _conversion_failed(value, "google.protobuf.Duration")
    return parsed


@CONVERSIONS.add("timestamp", "timestamp", is_global=True)
def to_timestamp(value: Any) -> datetime:
    if isinstance(value, int) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    parsed = value if isinstance(value, datetime) else parse_time(value)
    if parsed is None:
        raise _conversion_failed(value, "google.protobuf.Timestamp")
    return parsed


_DATE_PARTS = {
    "getFullYear": lambda t: t.year, "getMonth": lambda t: t.month - 1, "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1, "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1, "getHours": lambda t: t.hour, "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second, "getMilliseconds": lambda t: t.microsecond // 1000,
}  # fmt: skip
_DURATION_PARTS = {"getHours": 3600.0, "getMinutes": 60.0, "getSeconds": 1.0, "getMilliseconds": 0.001}


def _date_part(name: str) -> None:
    @CONVERSIONS.add(name, "int")
    def read(value: Any, zone: str = "UTC") -> int:
        if isinstance(value, timedelta):
            return int(value.total_seconds() / _DURATION_PARTS[name])
        local: datetime = value.astimezone(ZoneInfo(zone))
        return int(_DATE_PARTS[name](local))


for _name in _DATE_PARTS:
    _date_part(_name)
