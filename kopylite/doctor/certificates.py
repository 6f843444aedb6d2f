"""When a certificate begins and ends, from its bytes: the four fields of DER that are needed, and nothing else. Pure.

No package for it is among what everybody has installed, and `ssl` tells only of the certificate that a server shows.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_SEQUENCE, _UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x30, 0x17, 0x18, 0xA0
# Certificates of one bundle that are looked at.
MOST = 500


@dataclass(frozen=True, slots=True)
class Validity:
    """When a certificate is valid."""

    begins: datetime
    ends: datetime

    def left(self, now: datetime) -> float:
        """Seconds until it ends; negative when it has ended."""
        return (self.ends - now).total_seconds()

    def ends_soon(self, now: datetime) -> bool:
        """A week before its end, or in the last fifth of a life that is shorter than five weeks."""
        life = (self.ends - self.begins).total_seconds()
        return self.left(now) < min(7 * 86400, life / 5)


def validities(bundle: bytes) -> list[Validity]:
    """Of each certificate in a PEM bundle that can be read."""
    return [found for der in certificates(bundle) if (found := validity(der)) is not None]


def certificates(bundle: bytes) -> Iterator[bytes]:
    """The certificates of a PEM bundle, as DER."""
    end, count = 0, 0
    while (begin := bundle.find(_BEGIN, end)) >= 0 and count < MOST:
        begin += len(_BEGIN)
        end = bundle.find(_END, begin)
        if end < 0:
            return
        count += 1
        try:
            yield base64.b64decode(bundle[begin:end])
        except (binascii.Error, ValueError):
            continue


def validity(der: bytes) -> Validity | None:
    """Of one certificate; None: it is none."""
    try:
        signed = _content(der, 0, _SEQUENCE)[0]
        at, end = _content(der, signed, _SEQUENCE)
        if der[at] == _VERSION:
            at = _end(der, at)
        for _ in ("serial number", "algorithm", "issuer"):
            at = _end(der, at)
        first, _ = _content(der, at, _SEQUENCE)
        second = _end(der, first)
        return Validity(_time(der, first), _time(der, second)) if second < end else None
    except (IndexError, ValueError):
        return None


def _header(der: bytes, at: int) -> tuple[int, int, int]:
    """Tag of the element at a place, and where its content begins and ends."""
    tag, length = der[at], der[at + 1]
    begin = at + 2
    if length & 0x80:
        count = length & 0x7F
        if not 0 < count <= 4:
            raise ValueError("length")
        length = int.from_bytes(der[begin : begin + count], "big")
        begin += count
    if begin + length > len(der):
        raise ValueError("cut off")
    return tag, begin, begin + length


def _content(der: bytes, at: int, tag: int) -> tuple[int, int]:
    found, begin, end = _header(der, at)
    if found != tag:
        raise ValueError("tag")
    return begin, end


def _end(der: bytes, at: int) -> int:
    return _header(der, at)[2]


def _time(der: bytes, at: int) -> datetime:
    tag, begin, end = _header(der, at)
    text = der[begin:end].decode("ascii", "replace")
    if tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
