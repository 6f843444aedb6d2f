"""What a client reads in protobuf, made comparable: the events of a watch, and objects without their zero values."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.request.protobuf import decode
from kopylite.apiserver.request.protobuf.reading import wire_fields


def decode_event(frame: bytes) -> dict[str, Any]:
    """A WatchEvent: its type, and the object whose bytes stand in a RawExtension."""
    event = _by_number(frame)
    return {"type": event[1].decode(), "object": decode(_by_number(event[2])[1])}


def without_zeros(value: Any) -> Any:
    """A Go server writes the zero values of fields that are no pointers; to a reader that is as if they were absent."""
    if isinstance(value, dict):
        plain = {key: without_zeros(inner) for key, inner in value.items()}
        return {key: inner for key, inner in plain.items() if inner not in (None, "", 0, {}, [])}
    return [without_zeros(inner) for inner in value] if isinstance(value, list) else value


def _by_number(message: bytes) -> dict[int, bytes]:
    return {number: value for number, _, value in wire_fields(message)}
