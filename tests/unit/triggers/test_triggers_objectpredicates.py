from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic import BaseModel

from kopylite.boundary import name_of
from kopylite.cache import Delta
from kopylite.controller import ControllerSpec, watch
from kopylite.errors import RegistrationError, UsageError
from kopylite.objects import CustomResource, Kind
from kopylite.reconcile import Context, Request
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import (
    Event,
    Predicate,
    event_of,
    field_changed,
    generation_changed,
    guard_of,
    predicate,
    when,
)
from kopylite.triggers.objectpredicates import MISSING_TO_WARN
from tests.unit.cache.things import thing

THING = Kind("example.com/v1", "Thing")


class ThingSpec(BaseModel):
    id: int = 0
    parts: list[dict[str, Any]] = []


class Thing(CustomResource[ThingSpec, None], group="example.com", version="v1"):
    pass


def update(old: Any, new: Any, **both: Any) -> Event:
    return event_of(Delta(thing(version=1, spec=old, **both), thing(version=2, spec=new, **both)))


CREATE = event_of(Delta(None, thing(spec={"id": 3})))
DELETE = event_of(Delta(thing(spec={"id": 3}), None))


@pytest.mark.parametrize("kind", [Thing, THING])
def test_a_function_of_two_objects_judges_updates_and_all_else_passes(kind: Any) -> None:
    def differs(old: Any, new: Any) -> bool:
        assert type(new) is type(old)
        return bool((old.spec.id, 1) != (new.spec.id, 1) if isinstance(old, Thing) else old.spec != new.spec)

    judges = when(differs).bound_to(kind)
    assert judges(update({"id": 1}, {"id": 2}))
    assert not judges(update({"id": 1}, {"id": 1}))
    assert judges(CREATE)
    assert judges(DELETE)


def test_a_function_of_one_object_judges_every_event_by_both_states() -> None:
    third = 3
    judges = when(lambda obj, wanted=third: obj.spec.get("id") == wanted).bound_to(THING)
    assert judges(CREATE)
    assert judges(DELETE)
    assert judges(update({"id": 3}, {"id": 1})), "that it stopped matching is news"
    assert judges(update({"id": 1}, {"id": 3}))
    assert not judges(update({"id": 1}, {"id": 2}))


def test_of_metadata_alone_the_function_gets_dicts() -> None:
    judges = when(lambda old, new: old["metadata"] != new["metadata"]).bound_to(Thing, metadata_only=True)
    assert not judges(update(None, None))


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("spec.id", {"id": 1, "x": 1}, {"id": 1, "x": 2}, False),
        ("spec.id", {"id": 1}, {"id": 2}, True),
        ("spec.id", {"id": 1}, {"id": True}, True),
        ("spec.id", {"id": None}, {}, False),
        ("spec.id", {"id": 1}, None, True),
        ("spec.parts.name", {"parts": [{"name": "a", "n": 1}]}, {"parts": [{"name": "a", "n": 2}]}, False),
        ("spec.parts.name", {"parts": [{"name": "a"}]}, {"parts": [{"name": "a"}, {"name": "b"}]}, True),
        ("spec.parts", {"parts": [{"a": 1, "b": 2}]}, {"parts": [{"b": 2, "a": 1}]}, False),
        ("status.phase", {}, {}, False),
    ],
)
def test_a_field_is_compared_by_its_json_value(path: str, old: Any, new: Any, *, changed: bool) -> None:
    for judges in (field_changed(path), field_changed("metadata.name", path).bound_to(THING)):
        assert judges(update(old, new)) is changed
        assert judges(CREATE)
        assert judges(DELETE)


def test_a_name_with_dots_stands_in_brackets() -> None:
    judges = field_changed("metadata.annotations['example.com/team']")
    old = thing(annotations={"example.com/team": "a", "x": "1"})
    assert not judges(event_of(Delta(old, thing(version=2, annotations={"example.com/team": "a", "x": "2"}))))
    assert judges(event_of(Delta(old, thing(version=2, annotations={"example.com/team": "b", "x": "1"}))))


async def reconcile(ctx: Context, request: Request) -> None:
    return None


@pytest.mark.parametrize(
    "predicates",
    [
        field_changed("spec.idd"),
        generation_changed & field_changed("spec.idd"),
        generation_changed | ~field_changed("spec.id", "spec.idd"),
    ],
)
def test_a_field_that_the_class_does_not_have_is_refused_at_the_declaration(predicates: Predicate) -> None:
    with pytest.raises(RegistrationError, match=r"controller 'a': field_changed: 'spec.idd'.*did you mean 'id'\?"):
        ControllerSpec(name="a", kind=Thing, reconcile=reconcile, predicates=predicates)
    with pytest.raises(RegistrationError, match=r"watch\(Thing\): field_changed"):
        watch(Thing, predicates=predicates)
    ControllerSpec(name="a", kind=THING, reconcile=reconcile, predicates=predicates)


def test_a_field_that_is_not_watched_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"'spec\.id' is not watched"):
        watch(THING, predicates=field_changed("spec.id"), metadata_only=True)
    watch(THING, predicates=field_changed("metadata.labels"), metadata_only=True)


@pytest.mark.parametrize("wrong", [(), ("",), ("spec..id",), (5,)])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    with pytest.raises(RegistrationError, match="field_changed"):
        field_changed(*wrong)


def test_a_field_that_no_object_has_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    judges = field_changed("spec.idd", "spec.id").bound_to(THING)
    for number in range(5 * MISSING_TO_WARN):
        assert len(caplog.records) == (number >= MISSING_TO_WARN)
        judges(update({"id": number}, {"id": number + 1}))
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "field_changed('spec.idd')" in record.message
    assert "Thing.example.com/v1" in record.message


def test_a_field_that_some_object_has_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    judges = field_changed("spec.optional").bound_to(THING)
    for number in range(5 * MISSING_TO_WARN):
        judges(update({"optional": 1} if number == 3 else {}, {}))
    assert not caplog.records


@pytest.mark.parametrize(
    "failing",
    [
        when(lambda old, new: old.spec["absent"] != new.spec["absent"]).bound_to(THING),
        when(lambda old, new: old.spec.id != new.spec.id).bound_to(Thing),  # of an object that does not fit
        predicate(lambda event: event.new.spec["id"] == 1),  # type: ignore[union-attr]
    ],
)
def test_what_fails_passes_and_is_told_once(failing: Predicate, caplog: pytest.LogCaptureFixture) -> None:
    guard = guard_of(failing, VirtualClock())
    for number in range(10):
        assert guard.call(lambda: "Thing ns/a", False, update({"id": "odd"}, {"id": "odd", "n": number})) is False
        assert guard.call(lambda: "Thing ns/a", True, update({"id": "odd"}, {"id": "odd", "n": number})) is True
    [record] = caplog.records
    assert record.message.startswith(f"predicate {failing.__name__} failed on Thing ns/a")  # type: ignore[attr-defined]


def test_a_function_of_records_is_told_what_looks_into_objects() -> None:
    with pytest.raises(AttributeError, match=r"no 'spec'.*when\(lambda old, new"):
        _ = thing().spec


@pytest.mark.parametrize("wrong", [lambda: True, lambda a, b, c: True, 5, None])
def test_a_function_of_another_form_is_refused(wrong: Any) -> None:
    with pytest.raises(RegistrationError, match="when"):
        when(wrong)


def test_an_async_function_is_refused() -> None:
    async def judge(old: Any, new: Any) -> bool:
        return True

    with pytest.raises(RegistrationError, match="is async"):
        when(judge)  # type: ignore[arg-type]


def test_a_predicate_that_needs_no_kind_is_bound_to_any() -> None:
    assert generation_changed.bound_to(THING) is generation_changed
    with pytest.raises(UsageError):
        (~field_changed("spec.idd")).bound_to(Thing)


def test_a_predicate_over_objects_is_named_after_its_function() -> None:
    def big(thing: Any) -> bool:
        return True

    for judges in (when(big), when(big).bound_to(THING), when(big).bound_to(THING, metadata_only=True)):
        assert name_of(judges) == f"when({name_of(big)})"
