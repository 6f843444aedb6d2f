"""Reasons: why each key will run, merged over all events until it does."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kopylite.reconcile.chains import ChangeReason, Version

K = TypeVar("K", bound=Hashable)

# Enough to understand a run; a key that a thousand children report to must not carry a thousand texts.
MAX_REASONS = 8
MORE = "…"
# Changes that are kept of each key to tell what caused its run.
MAX_CAUSES = 64

REQUEUE = "requeue"
REQUEUE_AFTER = "requeue_after"
RETRY = "retry"


class Reasons(Generic[K]):
    """Keeps up to MAX_REASONS different texts per key, in the order of their coming; then a mark that says "more".

    Beside the texts, it keeps which changes of objects caused the run, as long as they alone did. That a run asked for
    the next one itself doesn't count: its own writes may come first.

    Holds a key only while it has a run to come.
    """

    __slots__ = ("_by_key", "_causes")

    def __init__(self) -> None:
        self._by_key: dict[K, tuple[str, ...]] = {}
        # None: something else than changes was among the causes, or there were too many.
        self._causes: dict[K, tuple[Version, ...] | None] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: K, reason: str) -> None:
        """Merge one more reason into those of `key`."""
        if type(reason) is ChangeReason:
            self._cause(key, reason.to)
            reason = str(reason)
        else:
            self._causes[key] = None
        self._merge(key, reason)

    def add_own(self, key: K, reason: str) -> None:
        """As `add`, for a run that the last one asked for: REQUEUE, REQUEUE_AFTER, RETRY."""
        if key in self._by_key:
            self._merge(key, reason)
        else:
            self._by_key[key] = (reason,)

    def drop(self, match: Callable[[K], bool]) -> None:
        """Forget the keys that match: they have no run to come."""
        for kept in (self._by_key, self._causes):
            for key in [key for key in kept if match(key)]:
                del kept[key]

    def _cause(self, key: K, to: Version) -> None:
        known = self._causes.get(key, ())
        if known is not None and to not in known:
            self._causes[key] = (*known, to) if len(known) < MAX_CAUSES else None

    def _merge(self, key: K, reason: str) -> None:
        known = self._by_key.get(key)
        if known is None:
            self._by_key[key] = (reason,)
        elif reason not in known and len(known) <= MAX_REASONS:
            self._by_key[key] = (*known, reason if len(known) < MAX_REASONS else MORE)

    def take(self, key: K) -> tuple[tuple[str, ...], tuple[Version, ...]]:
        """What is known of `key`, which runs now; its next run starts with none.

        Returns:
            Its reasons, and the changes that caused the run; none of these if others had a part in it.
        """
        causes = self._causes.pop(key, None) if self._causes else None
        return self._by_key.pop(key, ()), causes or ()
