"""What a change of a store is called."""

from __future__ import annotations

import pytest

from kopylite.cache import Delta, Record
from kopylite.triggers import Event, EventType, event_of
from tests.unit.cache.things import thing

OLD, NEW = thing(version=1), thing(version=2)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [(None, NEW, EventType.CREATE), (OLD, NEW, EventType.UPDATE), (OLD, None, EventType.DELETE)],
)
@pytest.mark.parametrize("initial", [True, False])
def test_a_delta_is_named_and_nothing_of_it_is_lost(
    old: Record | None, new: Record | None, named: EventType, initial: bool
) -> None:
    event = event_of(Delta(old, new, initial))
    assert (event.type, event.old, event.new, event.initial) == (named, old, new, initial)
    assert event.record is (new if new is not None else old), "the newest state that is known"


def test_only_an_update_that_repeats_a_state_is_unchanged() -> None:
    assert event_of(Delta(OLD, thing(version=1))).unchanged
    assert not event_of(Delta(OLD, NEW)).unchanged
    assert not event_of(Delta(None, NEW)).unchanged
    assert not event_of(Delta(OLD, None)).unchanged


def test_an_event_is_about_an_object() -> None:
    with pytest.raises(AssertionError):
        _ = Event(EventType.GENERIC, None, None).record
