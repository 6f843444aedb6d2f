"""What a client reads in protobuf, made comparable: the events of a watch, and objects without their zero values."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.request.protobuf import decode


def decode_event(frame: bytes) -> dict[str, Any]:
    """A WatchEvent: its type, and the object whose bytes stand in a RawExtension."""
    fields = _blocks(frame)
    return {"type": fields[1].decode(), "object": decode(_blocks(fields[2])[1])}


def without_zeros(value: Any) -> Any:
    """A Go server writes the zero values of fields that are no pointers; to a reader that is as if they were absent."""
    if isinstance(value, dict):
        plain = {key: without_zeros(inner) for key, inner in value.items()}
        return {key: inner for key, inner in plain.items() if inner not in (None, "", 0, {}, [])}
    return [without_zeros(inner) for inner in value] if isinstance(value, list) else value


def _blocks(data: bytes) -> dict[int, bytes]:
    """The fields of a message that has nothing but texts and messages in it."""
    found: dict[int, bytes] = {}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        size, position = _varint(data, position)
        found[tag >> 3] = data[position : position + size]
        position += size
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, position
