from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.boundary import name_of
from kopylite.cache import Delta
from kopylite.errors import RegistrationError, UsageError
from kopylite.triggers import (
    Event,
    EventType,
    Predicate,
    annotations_changed,
    event_of,
    generation_changed,
    label_selector,
    labels_changed,
    predicate,
    resource_version_changed,
)
from kopylite.triggers.predicates import existence_changed
from tests.unit.cache.things import thing

CHANGED: list[Predicate] = [generation_changed, resource_version_changed, labels_changed, annotations_changed]


def update(old: dict[str, Any], new: dict[str, Any]) -> Event:
    return event_of(Delta(thing(**old), thing(**new)))


CREATE = event_of(Delta(None, thing(labels={"app": "web"})))
DELETE = event_of(Delta(thing(labels={"app": "web"}), None))
GENERIC = Event(EventType.GENERIC, None, thing())


def test_a_delta_becomes_an_event() -> None:
    record = thing()
    assert event_of(Delta(None, record, True)).type is EventType.CREATE
    assert event_of(Delta(None, record, True)).initial
    assert event_of(Delta(record, record)).type is EventType.UPDATE
    assert event_of(Delta(record, None)).type is EventType.DELETE
    assert event_of(Delta(record, None)).record is record


@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("event", [CREATE, DELETE, GENERIC])
def test_what_is_no_update_passes_all_changed_predicates(changed: Predicate, event: Event) -> None:
    assert changed(event)


@pytest.mark.parametrize(
    ("changed", "old", "same", "other"),
    [
        (generation_changed, {"generation": 1}, {"generation": 1, "version": 2}, {"generation": 2}),
        (resource_version_changed, {"version": 1}, {"version": 1}, {"version": 2}),
        (labels_changed, {"labels": None}, {"labels": {}}, {"labels": {"a": "b"}}),
        (annotations_changed, {"annotations": {"a": "b"}}, {"annotations": {"a": "b"}}, {"annotations": {"a": "c"}}),
    ],
)
def test_a_changed_predicate_drops_only_updates_without_its_change(
    changed: Predicate, old: dict[str, Any], same: dict[str, Any], other: dict[str, Any]
) -> None:
    assert not changed(update(old, same))
    assert changed(update(old, other))


def test_kinds_without_generation_pass_generation_changed() -> None:
    assert generation_changed(update({"generation": 0}, {"generation": 0, "version": 2}))


def test_a_label_selector_passes_what_matches_and_what_stopped_matching() -> None:
    web = label_selector("app=web")
    assert web(CREATE)
    assert web(DELETE)
    assert not web(event_of(Delta(None, thing())))
    assert web(update({"labels": {"app": "web"}}, {"labels": {"app": "db"}}))
    assert web(update({"labels": {"app": "db"}}, {"labels": {"app": "web"}}))
    assert not web(update({"labels": {"app": "db"}}, {"labels": None}))


def test_an_async_predicate_is_refused_where_it_is_written() -> None:
    async def waits(event: Event) -> bool:
        return False

    with pytest.raises(RegistrationError, match="is async"):
        predicate(waits)  # type: ignore[arg-type]


def test_a_wrong_label_selector_is_refused_where_it_is_written() -> None:
    with pytest.raises(UsageError):
        label_selector("app=web,")


@given(st.booleans(), st.booleans())
def test_predicates_combine_like_booleans(left: bool, right: bool) -> None:
    asked: list[str] = []

    @predicate
    def first(event: Event) -> bool:
        asked.append("first")
        return left

    @predicate
    def second(event: Event) -> bool:
        asked.append("second")
        return right

    assert (first & second)(CREATE) is (left and right)
    assert asked == (["first", "second"] if left else ["first"])
    asked.clear()
    assert (first | second)(CREATE) is (left or right)
    assert asked == (["first"] if left else ["first", "second"])
    assert (~first)(CREATE) is (not left)
    assert (~(first & second))(CREATE) is (~first | ~second)(CREATE)


def test_a_combination_is_named_in_words_that_its_author_wrote() -> None:
    @predicate
    def big(event: Event) -> bool:
        return True

    @predicate
    def red(event: Event) -> bool:
        return True

    assert name_of(big & ~red) == "big & ~red"
    assert name_of(~big | red) == "~big | red"


def test_a_label_selector_may_be_a_mapping_and_what_is_none_is_refused() -> None:
    assert label_selector({"app": "web"})(CREATE)
    assert not label_selector({"app": "web"})(event_of(Delta(None, thing(labels={"app": "db"}))))
    for wrong in (5, ["app"], {"app": 5}):
        with pytest.raises(UsageError):
            label_selector(wrong)  # type: ignore[arg-type]


def test_an_object_that_was_made_anew_under_its_name_passes_existence_changed() -> None:
    assert not existence_changed(update({"uid": "1"}, {"uid": "1", "version": 2}))
    assert existence_changed(update({"uid": "1"}, {"uid": "2"}))
    assert existence_changed(CREATE)
    assert existence_changed(DELETE)
