"""assert_converts: what it finds in converters, and what it says."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from kopylite import App, CustomResource, Kind, Unstructured
from kopylite.errors import UsageError
from kopylite.testing import assert_converts
from samples.shop.operator import OldOrder, Order


class BoxSpec(BaseModel):
    size: Annotated[int, Field(ge=0, le=1000)] = 1
    tags: list[str] = []
    note: str | None = None


class Box(CustomResource[BoxSpec, None], group="stable.example.com", version="v2"):
    """The storage version."""


class OldBoxSpec(BaseModel):
    width: Annotated[int, Field(ge=0, le=1000)] = 1
    tags: list[str] = []
    note: str | None = None


class OldBox(CustomResource[OldBoxSpec, None], group="stable.example.com", version="v1", kind="Box", storage=False):
    """The other one."""


def faithful(box: Any, to: Any) -> Any:
    spec = box.spec
    if to is OldBox:
        return OldBox(spec=OldBoxSpec(width=spec.size, tags=spec.tags, note=spec.note))
    return Box(spec=BoxSpec(size=spec.width, tags=spec.tags, note=spec.note))


def app_of(function: Callable[[Any, Any], Any]) -> App:
    app = App("boxes")
    app.converter(Box, versions=[OldBox])(function)
    return app


def test_the_converters_of_the_samples_hold() -> None:
    assert_converts(Order)
    assert_converts(OldOrder)


def test_a_faithful_converter_holds_whichever_version_names_it() -> None:
    app = app_of(faithful)
    assert_converts(Box)
    as_on_the_wire = {"apiVersion": "stable.example.com/v1", "kind": "Box", "spec": {"width": 3}}
    assert_converts(OldBox, app=app, examples=[Box(spec=BoxSpec(size=3)), as_on_the_wire])


def forgets(box: Any, to: Any) -> Any:
    made = faithful(box, to)
    made.spec.note = None
    return made


def cuts(box: Any, to: Any) -> Any:
    made = faithful(box, to)
    if to is OldBox:
        made.spec.width = min(made.spec.width, 255)
    return made


def reorders(box: Any, to: Any) -> Any:
    made = faithful(box, to)
    made.spec.tags.sort()
    return made


def crashes(box: Any, to: Any) -> Any:
    if to is OldBox and box.spec.size == 7:
        raise ZeroDivisionError("seven")
    return faithful(box, to)


def annotates(box: Any, to: Any) -> Any:
    made = faithful(box, to)
    made.metadata.annotations = {"size": "1"}
    return made


def tires() -> Callable[[Any, Any], Any]:
    calls: list[None] = []

    def convert(box: Any, to: Any) -> Any:
        calls.append(None)
        if len(calls) > 4:
            raise RuntimeError("tired")
        return faithful(box, to)

    return convert


def other_version(box: Any, to: Any) -> Any:
    return box


def remembers() -> Callable[[Any, Any], Any]:
    seen: list[Any] = []

    def convert(box: Any, to: Any) -> Any:
        seen.append(box)
        made = faithful(box, to)
        made.spec.note = str(len(seen))
        return made

    return convert


# What no search finds each time.
GIVEN: dict[Callable[[Any, Any], Any], list[Box]] = {
    crashes: [Box(spec=BoxSpec(size=7))],
    reorders: [Box(spec=BoxSpec(tags=["b", "a"]))],
}


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (forgets, ["Box: v", 'loses spec.note, which was ""', "note: ''"]),
        (cuts, ["v2 -> v1 -> v2 changes spec.size from 256 to 255", "size: 256"]),
        (reorders, ['v2 -> v1 -> v2 changes spec.tags[0] from "b" to "a"']),
        (crashes, ["v2 -> v1 fails: ZeroDivisionError: seven", "size: 7"]),
        (annotates, ["changes metadata.annotations; metadata is kept as it came"]),
        (other_version, ["the converter was asked for stable.example.com/v"]),
        (tires(), ["fails: ", "RuntimeError"]),
        (remembers(), ["makes another object of the same one the second time"]),
    ],
)
def test_what_is_lost_is_named_with_the_smallest_object(function: Callable[[Any, Any], Any], texts: list[str]) -> None:
    app = app_of(function)
    with pytest.raises(AssertionError) as caught:
        assert_converts(Box, app=app, examples=GIVEN.get(function, ()))
    for text in texts:
        assert text in str(caught.value)


KIND, OLD_KIND = Kind("a.example.com/v1", "A", "as", True), Kind("a.example.com/v1beta1", "A", "as", True)


def test_kinds_are_tried_with_examples_and_unknown_fields_count() -> None:
    app = App("kinds")

    @app.converter(KIND, versions=[OLD_KIND])
    def convert(obj: Unstructured, to: Kind) -> Unstructured:
        return Unstructured({**obj, "apiVersion": to.api_version, "spec": {"a": obj["spec"]["a"]}})

    with pytest.raises(UsageError, match=r"give examples=\[\.\.\.\]"):
        assert_converts(KIND)
    example = {"apiVersion": KIND.api_version, "kind": "A", "spec": {"a": 1}}
    assert_converts(OLD_KIND, examples=[example])
    with pytest.raises(AssertionError, match=r"A: v1 -> v1beta1 -> v1 loses spec\.b, which was false"):
        assert_converts(KIND, examples=[{**example, "spec": {"a": 1, "b": False}}])
    with pytest.raises(UsageError, match="an example is a v1 ConfigMap"):
        assert_converts(KIND, examples=[{"apiVersion": "v1", "kind": "ConfigMap"}])


def test_a_field_that_the_class_does_not_know_is_lost() -> None:
    app_of_boxes = app_of(faithful)
    unknown = {"apiVersion": "stable.example.com/v1", "kind": "Box", "spec": {"width": 1, "depth": {"cm": 2}}}
    with pytest.raises(AssertionError, match=r"loses spec\.depth, which was \{\"cm\": 2\}"):
        assert_converts(Box, app=app_of_boxes, examples=[unknown])


def test_which_app_is_meant_has_to_be_known() -> None:
    first, second = app_of(faithful), app_of(forgets)
    with pytest.raises(UsageError, match="several Apps convert it; say which: app="):
        assert_converts(Box)
    with pytest.raises(UsageError, match="app 'other' does not convert it"):
        assert_converts(Box, app=App("other"))
    assert_converts(Box, app=first)
    del second


def test_without_hypothesis_there_have_to_be_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of(faithful)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "hypothesis" else find(name))
    with pytest.raises(UsageError, match="hypothesis is not installed"):
        assert_converts(Box, app=app)
    assert_converts(Box, app=app, examples=[Box(spec=BoxSpec())])
