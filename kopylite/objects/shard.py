"""Shard: a part of all objects, by their uid, so that several processes have some each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_OFFSET, _PRIME, _SPACE = 0xCBF29CE484222325, 0x100000001B3, 2**64


@lru_cache(maxsize=4096)
def fnv1a64(text: str) -> int:
    """The 64-bit FNV-1a hash of a text in UTF-8: what the API server splits lists and watches by."""
    value = _OFFSET
    for byte in text.encode("utf-8", "surrogatepass"):
        value = (value ^ byte) * _PRIME % _SPACE
    return value


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One of `of` ranges of equal size, into which the hashes of all uids fall.

    Attributes:
        index: from 0 on.
        of: how many there are.
    """

    index: int
    of: int

    @property
    def first(self) -> int:
        """The smallest hash that is in it."""
        return self.index * _SPACE // self.of

    @property
    def end(self) -> int:
        """The smallest hash that is above it."""
        return (self.index + 1) * _SPACE // self.of

    @property
    def selector(self) -> str:
        """As the API server's `shardSelector` names it (alpha from Kubernetes 1.36 on, feature ShardedListAndWatch)."""
        return f"shardRange(object.metadata.uid, '0x{self.first:016x}', '0x{self.end:016x}')"

    def holds(self, uid: str) -> bool:
        """Whether the object of a uid is in it. Each uid is in exactly one of the shards."""
        return self.first <= fnv1a64(uid) < self.end

    def __str__(self) -> str:
        return f"{self.index} of {self.of}"
