"""Functions of CEL's core that the evaluator has not, or not as Kubernetes has them. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from kopylite.apiserver.schema.cel.library import CallFailed, Library, no_overload
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
    raise CallFailed("type conversion error from 'string' to 'bool'")


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
