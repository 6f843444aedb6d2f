"""DelayHeap: keys that wait for their time. Pure: the time is an argument."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# Dead entries are swept out only when they outnumber the living by this; a small heap is not worth the sweep.
SWEEP_SLACK = 64


class DelayHeap(Generic[K]):
    """One due time per key; hands out keys in the order of their times.

    Moving or discarding a key leaves its old heap entry behind, which is skipped when it comes up. The heap never
    holds more than twice the living entries plus a constant.
    """

    __slots__ = ("_due", "_heap", "_serial")

    def __init__(self) -> None:
        # The truth. A heap entry counts only while its time is the one that stands here.
        self._due: dict[K, float] = {}
        # (time, serial number, key): the serial number keeps equal times in the order of their arrival, and keys
        # from being compared.
        self._heap: list[tuple[float, int, K]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: K) -> bool:
        return key in self._due

    def due_time(self, key: K) -> float | None:
        """When `key` is due; None if it does not wait here."""
        return self._due.get(key)

    def schedule(self, key: K, time: float) -> None:
        """Let `key` wait until `time`, whatever it waited for before."""
        self._due[key] = time
        self._serial += 1
        heapq.heappush(self._heap, (time, self._serial, key))
        if len(self._heap) > 2 * len(self._due) + SWEEP_SLACK:
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)

    def discard(self, key: K) -> None:
        """Forget `key`, if it waits."""
        self._due.pop(key, None)

    def clear(self) -> None:
        self._due.clear()
        self._heap.clear()

    def next_time(self) -> float | None:
        """The earliest due time of all keys; None when nothing waits."""
        heap = self._heap
        while heap:
            time, _, key = heap[0]
            if self._due.get(key) == time:
                return time
            heapq.heappop(heap)
        return None

    def pop_due(self, now: float) -> list[tuple[K, float]]:
        """Take out every key that is due at `now`, with its due time, earliest first."""
        due: list[tuple[K, float]] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            time, _, key = heapq.heappop(heap)
            if self._due.get(key) == time:
                del self._due[key]
                due.append((key, time))
        return due
