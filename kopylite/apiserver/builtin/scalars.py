"""Reading values that are no structs as Go's decoder does: scalars, quantities, times, byte strings. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kopylite.objects.amounts import canonical

# Reads one value: (value, path, reading) -> value as the server writes it.
Decoder = Callable[[Any, str, "Reading"], Any]

_GO_KINDS = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


class Undecodable(ValueError):
    """A value does not fit its Go type; the message is Go's."""


class Reading:
    """One decoding: what was unknown so far."""

    __slots__ = ("unknown",)

    def __init__(self) -> None:
        self.unknown: list[str] = []


def mismatch(value: Any, struct: str, path: str, go_type: str) -> Undecodable:
    kind = _GO_KINDS[type(value)]
    if kind == "number" and (isinstance(value, float) or "int" in go_type):
        kind = f"number {value}"
    plain = "".join(part.partition("[")[0] for part in path.split("]"))
    where = f"struct field {struct}.{plain}" if struct else "value"
    return Undecodable(f"json: cannot unmarshal {kind} into Go {where} of type {go_type}")


def anything(value: Any, path: str, reading: Reading) -> Any:
    return value


def byte_string(value: Any, path: str, reading: Reading) -> Any:
    if type(value) is not str:
        raise mismatch(value, "", path, "[]uint8")
    text = value.replace("\n", "").replace("\r", "")
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Undecodable(f"illegal base64 data at input byte {_bad_byte(text)}") from error
    return base64.b64encode(decoded).decode()


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _bad_byte(text: str) -> int:
    for index, char in enumerate(text):
        if char not in _BASE64 and not (char == "=" and len(text) - index <= 2 and len(text) % 4 == 0):
            return index
    return len(text) - len(text) % 4 if len(text) % 4 == 1 else len(text)


def _quantity(value: Any, path: str, reading: Reading) -> Any:
    text = value if type(value) is str else _number_text(value)
    try:
        return canonical(text)
    except ValueError as error:
        raise Undecodable(str(error)) from error


def _number_text(value: Any) -> str:
    return str(value) if type(value) in (int, float) else ""


def _time(value: Any, path: str, reading: Reading) -> Any:
    if type(value) is str and _CANONICAL_TIME.fullmatch(value):
        return value
    moment = _moment(value)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: Any, path: str, reading: Reading) -> Any:
    if type(value) is str and (match := _SECONDS.match(value)) and not _MICROS.match(value[match.end() :]):
        rest = value[match.end() :]
        raise Undecodable(
            f'parsing time "{value}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{rest}" as ".000000"'
        )
    return _moment(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_CANONICAL_TIME = re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])-([01]\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")
_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_MICROS = re.compile(r"\.\d{6}(?!\d)")


def _moment(value: Any) -> datetime:
    if type(value) is not str:
        raise Undecodable(f"json: cannot unmarshal {_GO_KINDS[type(value)]} into Go value of type string")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in value:
        head = f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00"'
        raise Undecodable(f'{head}: cannot parse "{value}" as "2006"')
    return moment.astimezone(UTC)


# The types whose JSON form is their own affair.
SPECIAL: Mapping[str, Decoder] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    f"{_META}Time": _time,
    f"{_META}MicroTime": _micro_time,
    f"{_META}FieldsV1": anything,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": anything,
}
