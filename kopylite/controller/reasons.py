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
# What a key has that nobody but its own last run asked for: told by identity, since others may use the same word.
_OWN = {reason: (reason,) for reason in (REQUEUE, REQUEUE_AFTER, RETRY)}


class Reasons(Generic[K]):
    """Keeps up to MAX_REASONS different texts per key, in the order of their coming; then a mark that says "more".

    Beside the texts, it keeps which changes of objects caused the run, as long as they alone did. That a run asked for
    the next one itself doesn't count: its own writes may come first.

    Holds a key only while it has a run to come.
    """

    __slots__ = ("_by_key", "_causes", "_last")

    def __init__(self) -> None:
        self._by_key: dict[K, tuple[str, ...]] = {}
        # None: something else than changes was among the causes, or there were too many. A key that is not here was
        # asked for by its own last run alone, if that is one of _OWN, and else not by changes alone.
        self._causes: dict[K, tuple[Version, ...] | None] = {}
        # What the last key began with: all objects of a first list have the same reason, and then share it.
        self._last: tuple[str, ...] = ("",)

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: K, reason: str) -> None:
        """Merge one more reason into those of `key`."""
        known = self._by_key.get(key)
        if type(reason) is ChangeReason:
            self._cause(key, reason.to, known)
            reason = reason.text
        elif known is not None:
            self._causes[key] = None
        if known is not None:
            self._merge(key, reason, known)
            return
        if self._last[0] is not reason:
            self._last = (reason,)
        self._by_key[key] = self._last

    def add_own(self, key: K, reason: str) -> None:
        """As `add`, for a run that the last one asked for: REQUEUE, REQUEUE_AFTER, RETRY."""
        if key in self._by_key:
            self._merge(key, reason, self._by_key[key])
        else:
            self._by_key[key] = _OWN[reason]

    def drop(self, match: Callable[[K], bool]) -> None:
        """Forget the keys that match: they have no run to come."""
        for kept in (self._by_key, self._causes):
            for key in [key for key in kept if match(key)]:
                del kept[key]

    def _cause(self, key: K, to: Version, reasons: tuple[str, ...] | None) -> None:
        if reasons is None:
            self._causes[key] = (to,)
            return
        known = self._causes.get(key, () if reasons is _OWN.get(reasons[0]) else None)
        if known is not None and to not in known:
            self._causes[key] = (*known, to) if len(known) < MAX_CAUSES else None

    def _merge(self, key: K, reason: str, known: tuple[str, ...]) -> None:
        if reason not in known and len(known) <= MAX_REASONS:
            self._by_key[key] = (*known, reason if len(known) < MAX_REASONS else MORE)

    def changes(self, key: K) -> tuple[Version, ...]:
        """The changes that the run to come of `key` is for; none if others have a part in it."""
        return self._causes.get(key) or ()

    def take(self, key: K) -> tuple[tuple[str, ...], tuple[Version, ...]]:
        """What is known of `key`, which runs now; its next run starts with none.

        Returns:
            Its reasons, and the changes that caused the run; none of these if others had a part in it.
        """
        causes = self._causes.pop(key, None) if self._causes else None
        return self._by_key.pop(key, ()), causes or ()
