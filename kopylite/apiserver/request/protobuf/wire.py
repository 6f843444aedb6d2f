"""The fields of protobuf's wire format, each with its tag. Pure."""

from __future__ import annotations

import struct

_VARINT, _FIXED64, _BLOCK = 0, 1, 2


def block(number: int, content: bytes) -> bytes:
    """A text, bytes or a message."""
    return _varint(number << 3 | _BLOCK) + _varint(len(content)) + content


def integer(number: int, value: int) -> bytes:
    """An integer of 64 bits, or a boolean."""
    return _varint(number << 3 | _VARINT) + _varint(value)


def double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def _varint(value: int) -> bytes:
    if value < 0:
        value += 1 << 64
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
