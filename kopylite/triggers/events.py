"""Event: a Delta with a name. What predicates and handlers look at; it never reaches a reconcile."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kopylite.cache import Delta, Record


class EventType(Enum):
    """What happened. The value completes a sentence: "MyApp ns/x created"."""

    CREATE = "created"
    UPDATE = "updated"
    DELETE = "deleted"
    GENERIC = "announced"  # from outside of the cluster, by a channel

    def __init__(self, word: str) -> None:
        self.word = word  # as the value, which costs two calls


class Event(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One change of one object.

    Attributes:
        type: what happened.
        old: the state before; None for a create. Of a delete: the last state known.
        new: the state after; None for a delete.
        initial: the object is part of the first state of its kind, so it isn't news.
    """

    type: EventType
    old: Record | None
    new: Record | None
    initial: bool = False

    @property
    def record(self) -> Record:
        """The newest state known."""
        record = self.new if self.new is not None else self.old
        assert record is not None, "an event is about an object"
        return record

    @property
    def unchanged(self) -> bool:
        """An update that shows the same resourceVersion twice."""
        old, new = self.old, self.new
        return old is not None and new is not None and old.resource_version == new.resource_version


def event_of(delta: Delta) -> Event:
    """Name a change of a store."""
    if delta.new is None:
        return Event(EventType.DELETE, delta.old, None, delta.initial)
    kind = EventType.CREATE if delta.old is None else EventType.UPDATE
    return Event(kind, delta.old, delta.new, delta.initial)
