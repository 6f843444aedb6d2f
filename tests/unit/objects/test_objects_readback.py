"""Which field is to blame where what was written is not what would be read; whole models are in test_objects_law."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, field_serializer

from kopylite.errors import EncodeError
from kopylite.objects.modelcodec import codec_of, to_wire
from kopylite.objects.readback import check_reads_back

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Port(BaseModel):
    number: int
    name: str = ""


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    size: int = 0


class Spec(BaseModel):
    replicas: int
    ports: list[Port] = []
    limits: dict[str, float] = {}
    begun: datetime | None = None
    pair: tuple[int, int] | None = None
    open: Open | None = None
    free: Any = None


def checked(spec: Spec, **other: Any) -> None:
    """As if it had been written with these fields instead of its own."""
    check_reads_back(spec, to_wire(spec) | other, codec_of(Spec))


SPEC = Spec(
    replicas=3,
    ports=[Port(number=1), Port(number=2, name="web")],
    limits={"cpu": 0.5},
    begun=NOON,
    pair=(1, 2),
    open=Open.model_validate({"size": 1, "more": {"a": [1, 2]}}),
    free={"a": [1, {"b": 2}]},
)


def test_what_reads_back_as_it_is_passes() -> None:
    checked(SPEC)


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"replicas": 4}, "replicas"),
        ({"unknown": 1}, "unknown"),
        ({"ports": [{"number": 1}, {"number": 2, "name": "other"}]}, "ports[1].name"),
        ({"ports": [{"number": 1}]}, "ports"),
        ({"limits": {"cpu": 0.25}}, "limits.cpu"),
        ({"limits": {"memory": 0.5}}, "limits"),
        ({"begun": None}, "begun"),
        ({"begun": "2026-01-31T12:00:01Z"}, "begun"),
        ({"pair": [1, 3]}, "pair[1]"),
        ({"open": {"size": 1, "more": {"a": [1, 3]}}}, "open.more.a[1]"),
        ({"open": {"size": 1}}, "open.more"),
        ({"open": {"size": 1, "more": {"a": [1, 2]}, "new": 1}}, "open.new"),
        ({"free": {"a": [1, {"b": 3}]}}, "free.a[1].b"),
    ],
)
def test_the_first_field_that_would_be_another_one_is_named(other: dict[str, Any], field: str) -> None:
    with pytest.raises(EncodeError, match="would not read back as it is") as caught:
        checked(SPEC, **other)
    assert caught.value.field == field
    assert str(caught.value).startswith("Spec: ")


@pytest.mark.parametrize(
    ("other", "field"),
    [({"replicas": "3"}, "replicas"), ({"ports": [{"number": 1}, {"number": None}]}, "ports[1].number")],
)
def test_what_could_not_be_read_at_all_is_told_by_its_field_and_without_its_value(
    other: dict[str, Any], field: str
) -> None:
    with pytest.raises(EncodeError, match="could not be read back") as caught:
        checked(SPEC, **other)
    assert caught.value.field == field


def test_a_part_of_a_second_may_be_cut_off_and_a_status_in_parts_may_lack_fields() -> None:
    checked(SPEC.model_copy(update={"begun": NOON.replace(microsecond=999_999)}), begun="2026-01-31T12:00:00Z")
    limits: dict[str, Any] = {"limits": {"cpu": 0.5}}
    part = Spec.model_construct(_fields_set={"limits"}, **limits)
    assert to_wire(part) == {"limits": {"cpu": 0.5}}
    with pytest.raises(EncodeError) as caught:
        check_reads_back(part, {"limits": {"cpu": "much"}}, codec_of(Spec))
    assert caught.value.field == "limits.cpu", "what is missing hides nothing"


ENDLESS: dict[str, Any] = {}
ENDLESS["self"] = ENDLESS


@pytest.mark.parametrize(
    ("free", "field", "problem"),
    [
        ({"a": [1, {"b": math.nan}]}, "free.a[1].b", "nan"),
        (ENDLESS, "object", "contains itself"),
        ([object()], "free[0]", "no JSON form"),
    ],
)
def test_what_cannot_be_written_is_looked_for_down_to_its_field(free: Any, field: str, problem: str) -> None:
    with pytest.raises(EncodeError, match=problem) as caught:
        to_wire(SPEC.model_copy(update={"free": free}))
    assert caught.value.field == field


class Odd(BaseModel):
    size: int = 0

    @field_serializer("size")
    def _written(self, size: int) -> int:
        if size < 0:
            raise ValueError("no size is below zero")
        return size


class Odds(BaseModel):
    table: dict[str, Odd] = {}
    rows: list[Odd] = []


@pytest.mark.parametrize(
    ("odds", "field"),
    [
        (Odds(table={"a": Odd(size=1), "b": Odd(size=-1)}), "table.b.size"),
        (Odds(rows=[Odd(size=1), Odd(size=-1)]), "rows[1].size"),
    ],
)
def test_why_a_part_is_not_written_is_told_in_the_words_of_its_own_serializer(odds: Odds, field: str) -> None:
    with pytest.raises(EncodeError, match="no size is below zero") as caught:
        to_wire(odds)
    assert (caught.value.field, caught.value.problem) == (field, "no size is below zero")


def test_half_a_character_is_told_by_its_field() -> None:
    with pytest.raises(EncodeError, match="surrogate") as caught:
        to_wire(SPEC.model_copy(update={"free": {"a": "\ud800"}}))
    assert caught.value.field == "free.a"
