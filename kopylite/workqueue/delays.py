"""DelayHeap: keys that wait for their time. Pure: the time is an argument."""

from __future__ import annotations

import math
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# Dead entries are swept out only when they outnumber the living by this; a small heap is not worth the sweep.
SWEEP_SLACK = 64


class DelayHeap(Generic[K]):
    """One due time per key; hands out keys in the order of their times.

    Moving or discarding a key leaves its old heap entry behind, which is skipped when it comes up. The heap never
    holds more than twice the living entries plus a constant.
    """

    __slots__ = ("_entries", "_heap", "_serial", "earliest")

    def __init__(self) -> None:
        # (time, serial number, key): the serial number keeps equal times in the order of their arrival, and keys
        # from being compared.
        self._heap: list[tuple[float, int, K]] = []
        # The truth: an entry of the heap counts only if it is the one that stands here.
        self._entries: dict[K, tuple[float, int, K]] = {}
        self._serial = 0
        # Nothing is due before. Not later than next_time(), which it may be behind when keys were moved or discarded.
        self.earliest = math.inf

    def __len__(self) -> int:
        return len(self._entries)

    def due_time(self, key: K) -> float | None:
        """When `key` is due; None if it does not wait here."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def schedule(self, key: K, time: float) -> None:
        """Let `key` wait until `time`, whatever it waited for before."""
        heap, entries = self._heap, self._entries
        self._serial = serial = self._serial + 1
        entry = entries[key] = (time, serial, key)
        heappush(heap, entry)
        if time < self.earliest:
            self.earliest = time
        if len(heap) > 2 * len(entries) + SWEEP_SLACK:
            self._heap = list(entries.values())
            heapify(self._heap)

    def discard(self, key: K) -> None:
        """Forget `key`, if it waits."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()
        self._heap.clear()
        self.earliest = math.inf

    def next_time(self) -> float | None:
        """The earliest due time of all keys; None when nothing waits."""
        heap, entries = self._heap, self._entries
        while heap:
            if entries.get(heap[0][2]) is heap[0]:
                return heap[0][0]
            heappop(heap)
        return None

    def pop_due(self, now: float) -> list[tuple[K, float]]:
        """Take out every key that is due at `now`, with its due time, earliest first."""
        due: list[tuple[K, float]] = []
        heap, entries = self._heap, self._entries
        while heap and heap[0][0] <= now:
            entry = heappop(heap)
            time, _, key = entry
            if entries.get(key) is entry:
                del entries[key]
                due.append((key, time))
        self.earliest = heap[0][0] if heap else math.inf
        return due
