"""The texts that Kubernetes uses for durations, times and bytes, to and from Python's own types."""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

_UNITS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ns": 1,
}
# Possessive: a text of digits alone would take quadratic time otherwise.
_PART = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?(h|ms|m|s|us|µs|μs|ns)")
# Go counts nanoseconds in 64 bits; no longer number of hours, minutes... fits, and no further decimals count.
_MAX_DIGITS = 19
_MAX_NANOSECONDS = 2**63 - 1
_SHOWN = 50


def parse_duration(text: str) -> timedelta:
    """A duration as Go writes it, such as "1h30m" or "-1.5s"; parts below a microsecond are cut off.

    Raises:
        ValueError: the text is no such duration.
    """
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits == "0":
        return timedelta()
    nanoseconds, position = 0, 0
    while (match := _PART.match(digits, position)) and (match[1] or match[2]):
        unit, fraction = _UNITS[match[3]], (match[2] or "")[:_MAX_DIGITS]
        whole = match[1].lstrip("0") or "0"
        if len(whole) > _MAX_DIGITS:
            break
        nanoseconds += int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        position = match.end()
        if nanoseconds > _MAX_NANOSECONDS:
            raise ValueError(f"{_shown(text)} is longer than 292 years, which no duration of the API is")
    if position == 0 or position != len(digits):
        raise ValueError(f"{_shown(text)} is no duration; write it like 1h30m or 500ms")
    return timedelta(microseconds=sign * (nanoseconds // 1000))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def format_duration(duration: timedelta) -> str:
    """A duration as Go prints it: "1h30m0s", "1.5s", "250ms", "0s"."""
    total = duration // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total < 1_000_000:
        if total == 0:
            return "0s"
        return f"{sign}{_decimal(total, 1000)}ms" if total >= 1000 else f"{sign}{total}µs"
    minutes, microseconds = divmod(total, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(microseconds, 1_000_000)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else str(whole)


def format_time(moment: datetime, timespec: str = "auto") -> str:
    """RFC 3339 in UTC with "Z"; a datetime without a zone is taken as UTC."""
    utc = moment.replace(tzinfo=None) if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec=timespec) + "Z"


def read_duration(value: Any) -> Any:
    """For a validator: the duration in a text; anything else as it is."""
    return parse_duration(value) if isinstance(value, str) else value


def read_bytes(value: Any) -> Any:
    """For a validator: the bytes in a base64 text; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError("not a base64 text") from None


def read_decimal(value: Any) -> Decimal:
    """For a validator of JSON: the number in a text. A JSON number is refused: it is a binary fraction."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    try:
        return Decimal(value)
    except InvalidOperation:
        raise ValueError("must be a decimal number") from None


def write_duration(value: Any) -> Any:
    return format_duration(value) if isinstance(value, timedelta) else value


def write_time(value: Any, timespec: str = "auto") -> Any:
    """Raises ValueError for a time without a zone: it may be anybody's local time."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError("is a time without a zone; say datetime.now(UTC), or .replace(tzinfo=UTC)")
    return format_time(value, timespec)


def write_naive_time(value: Any) -> Any:
    """Of a field that is declared without zones: there, no zone is UTC."""
    return format_time(value) if isinstance(value, datetime) else value


def read_naive_time(value: datetime) -> datetime:
    """For a validator of JSON: UTC, without saying so."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def assume_utc(value: datetime) -> datetime:
    """For a validator of JSON: a text without a zone is UTC, as in Kubernetes' own types."""
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def write_secret(value: Any) -> Any:
    """What a SecretStr or SecretBytes hides: the object is written with it, or not at all."""
    hidden = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    return write_bytes(hidden)


def write_number(value: Any) -> Any:
    """A whole float as an integer, which is how the API server stores and returns it: else each update of an
    object with a 1.0 would be a change. Raises ValueError for what JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"is {value}, which JSON does not have")
    exact = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if exact else value


def write_bytes(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else value
