"""Reasons: why each key will run, merged over all events until it does."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# Enough to understand a run; a key that a thousand children report to must not carry a thousand texts.
MAX_REASONS = 8
MORE = "…"

REQUEUE = "requeue"
REQUEUE_AFTER = "requeue_after"
RETRY = "retry"


class Reasons(Generic[K]):
    """Keeps up to MAX_REASONS different texts per key, in the order of their coming; then a mark that says "more".

    Holds a key only while it has a run to come.
    """

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[K, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: K, reason: str) -> None:
        """Merge one more reason into those of `key`."""
        known = self._by_key.get(key)
        if known is None:
            self._by_key[key] = (reason,)
        elif reason not in known and len(known) <= MAX_REASONS:
            self._by_key[key] = (*known, reason if len(known) < MAX_REASONS else MORE)

    def take(self, key: K) -> tuple[str, ...]:
        """The reasons of `key`, which runs now; its next run starts with none."""
        return self._by_key.pop(key, ())
