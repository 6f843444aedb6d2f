from __future__ import annotations

import copy
import enum
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, Literal

import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, computed_field, field_validator, model_validator

from kopylite.errors import DecodeError, EncodeError
from kopylite.objects import CustomResource, MicroTime, Time, adapter_of, to_wire
from kopylite.objects.modelcodec import ModelCodec, codec_of
from kopylite.objects.wirevalues import wire_value


class Part(BaseModel):
    part_name: str = ""
    weight: int = 1


class Robot(BaseModel):
    serial: int
    nick_name: str | None = None
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    spare: Part = Part()
    retired: bool | None = False


def wire(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_wire_names_are_camel_case_at_every_depth() -> None:
    raw = wire(serial=1, nickName="r", parts=[{"partName": "arm"}], byName={"a_b": {"partName": "leg"}})
    robot = codec_of(Robot).decode(raw)
    assert robot.parts[0].part_name == "arm"
    assert robot.by_name["a_b"].part_name == "leg"
    assert codec_of(Robot).encode(robot) == json.loads(raw)


def test_python_names_are_accepted_too() -> None:
    assert codec_of(Robot).decode(wire(serial=1, nick_name="r", parts=[{"part_name": "arm"}])).nick_name == "r"


def test_unknown_fields_survive_at_every_depth() -> None:
    raw = wire(serial=1, parts=[{"partName": "arm", "bolts": [1, None]}], byName={"x": {"y": None}}, future={"a_b": 1})
    robot = codec_of(Robot).decode(raw)
    robot.parts[0].weight = 9
    assert codec_of(Robot).encode(robot) == json.loads(raw) | {
        "parts": [{"partName": "arm", "bolts": [1, None], "weight": 9}]
    }


def test_a_model_that_forbids_unknown_fields_is_obeyed_unless_told_otherwise() -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")

        known: int = 0

    with pytest.raises(DecodeError, match="other: Extra inputs"):
        codec_of(Closed).decode(wire(other=1))
    codec: ModelCodec[Closed] = ModelCodec(Closed.__pydantic_core_schema__, keep_all=True)
    assert codec.encode(codec.decode(wire(other=1))) == {"other": 1}


def test_defaults_that_nobody_set_are_not_written() -> None:
    assert codec_of(Robot).encode(Robot(serial=1)) == {"serial": 1}
    assert codec_of(Robot).encode(Robot(serial=1, retired=False)) == {"serial": 1, "retired": False}


def test_defaults_that_were_changed_in_place_are_written() -> None:
    robot = Robot(serial=1)
    robot.parts.append(Part(part_name="arm"))
    robot.spare.weight = 5
    robot.by_name["x"] = Part()
    assert codec_of(Robot).encode(robot) == {
        "serial": 1,
        "parts": [{"partName": "arm"}],
        "spare": {"weight": 5},
        "byName": {"x": {}},
    }


def test_a_null_that_means_absent_is_left_out_and_any_other_is_kept() -> None:
    robot = codec_of(Robot).decode(wire(serial=1, nickName=None, retired=None))
    assert codec_of(Robot).encode(robot) == {"serial": 1, "retired": None}


def test_null_lists_maps_and_models_are_empty_ones() -> None:
    robot = codec_of(Robot).decode(wire(serial=1, parts=None, byName=None, spare=None))
    assert (robot.parts, robot.by_name, robot.spare) == ([], {}, Part())


def test_an_unwanted_null_counts_as_absent() -> None:
    assert codec_of(Robot).decode(wire(serial=1, parts=[{"weight": None}])).parts[0].weight == 1
    with pytest.raises(DecodeError, match="serial: Field required"):
        codec_of(Robot).decode(wire(serial=None))


def test_a_null_item_of_a_list_is_an_error() -> None:
    class Words(BaseModel):
        words: list[str]

    with pytest.raises(DecodeError, match=r"words\[1\]: Input should be a valid string"):
        codec_of(Words).decode(wire(words=["a", None]))


@pytest.mark.parametrize("value", ["5", 5.0, True])
def test_a_value_of_another_type_is_refused_as_on_the_server(value: Any) -> None:
    with pytest.raises(DecodeError, match="serial: Input should be a valid integer"):
        codec_of(Robot).decode(wire(serial=value))


class Machine(CustomResource[Robot, None], group="example.com", version="v1"):
    pass


def test_the_error_names_object_and_field() -> None:
    raw = wire(
        kind="Machine", metadata={"name": "m", "namespace": "ns"}, spec={"serial": 1, "parts": [{"weight": "x"}]}
    )
    with pytest.raises(DecodeError) as caught:
        adapter_of(Machine).decode(raw)
    assert str(caught.value).startswith("Machine ns/m does not fit its model: spec.parts[0].weight: Input should be")


def test_the_error_names_a_few_fields_and_counts_the_rest() -> None:
    parts = [{"weight": "x"}] * 8
    with pytest.raises(DecodeError, match="and 3 more") as caught:
        codec_of(Robot).decode(wire(serial=1, parts=parts))
    assert str(caught.value).count("weight") == 5


def test_the_error_shows_no_values() -> None:
    with pytest.raises(DecodeError) as caught:
        codec_of(Robot).decode(wire(serial="hunter2"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[]", b"null", b"7"])
def test_what_is_no_object_is_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        adapter_of(Machine).decode(raw)


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_large_integers_stay_exact(number: int) -> None:
    raw = wire(serial=number, extra=number)
    assert codec_of(Robot).encode(codec_of(Robot).decode(raw)) == {"serial": number, "extra": number}


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Home(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


def test_the_tag_of_a_union_is_always_written() -> None:
    assert to_wire(Home(pet=Cat())) == {"pet": {"kind": "cat"}}
    assert codec_of(Home).decode(wire(pet={"kind": "dog"})) == Home(pet=Dog())


class Event(BaseModel):
    at: datetime
    seconds: Time | None = None
    micros: MicroTime | None = None
    took: timedelta = timedelta()
    payload: bytes = b""
    ratio: float = 0
    words: set[str] = set()


def test_times_are_written_as_the_server_reads_them() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    event = Event(at=noon, seconds=noon.replace(microsecond=5), micros=noon)
    assert to_wire(event) == {
        "at": "2026-01-31T12:00:00Z",
        "seconds": "2026-01-31T12:00:00Z",
        "micros": "2026-01-31T12:00:00.000000Z",
    }
    east = Event(at=noon.astimezone(timezone(timedelta(hours=3))))
    assert to_wire(east) == {"at": "2026-01-31T12:00:00Z"}
    assert to_wire(Event(at=noon.replace(microsecond=123456))) == {"at": "2026-01-31T12:00:00.123456Z"}


def test_durations_bytes_sets_and_whole_floats_have_their_wire_forms() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    event = Event(at=noon, took=timedelta(minutes=90), payload=b"\xff\x00", ratio=2.0, words={"c", "a", "b"})
    found = to_wire(event)
    assert (found["took"], found["payload"], found["words"]) == ("1h30m0s", "/wA=", ["a", "b", "c"])
    assert json.dumps(found["ratio"]) == "2"
    assert codec_of(Event).decode(json.dumps(found).encode()) == event


def test_a_map_is_in_wire_form_already() -> None:
    given = {"a_b": 1}
    assert to_wire(given) == given
    assert to_wire(given) is not given


def test_computed_fields_stay_in_python() -> None:
    class Square(BaseModel):
        side: int

        @computed_field  # type: ignore[prop-decorator]
        @property
        def area(self) -> int:
            return self.side**2

    assert to_wire(Square(side=3)) == {"side": 3}


def test_validators_of_the_user_run_when_an_object_is_read() -> None:
    class Range(BaseModel):
        low_end: int
        high_end: int

        @field_validator("low_end")
        @classmethod
        def positive(cls, value: int) -> int:
            return abs(value)

        @model_validator(mode="after")
        def ordered(self) -> Range:
            if self.low_end > self.high_end:
                raise ValueError("the low end is above the high end")
            return self

    assert codec_of(Range).decode(wire(lowEnd=-1, highEnd=2)).low_end == 1
    with pytest.raises(DecodeError, match="the low end is above the high end"):
        codec_of(Range).decode(wire(lowEnd=3, highEnd=2))


def test_copies_are_independent_and_keep_unknown_fields() -> None:
    robot = codec_of(Robot).decode(wire(serial=1, parts=[{"partName": "arm", "bolts": 2}]))
    twin = copy.deepcopy(robot)
    twin.parts[0].part_name = "leg"
    assert to_wire(robot)["parts"] == [{"partName": "arm", "bolts": 2}]
    assert to_wire(twin)["parts"] == [{"partName": "leg", "bolts": 2}]


def test_deprecated_fields_are_written_without_a_warning() -> None:
    class Old(BaseModel):
        name: str | None = Field(default=None, deprecated=True)

    assert to_wire(Old(name="x")) == {"name": "x"}


def test_nulls_deep_inside_lists_and_maps_are_left_out() -> None:
    class Outer(BaseModel):
        robots: list[Robot] = []
        named: dict[str, Robot] = {}

    outer = Outer(robots=[Robot(serial=1, nick_name=None)], named={"a": Robot(serial=2, nick_name=None)})
    assert to_wire(outer) == {"robots": [{"serial": 1}], "named": {"a": {"serial": 2}}}


def test_a_default_that_depends_on_other_fields_is_written() -> None:
    class Named(BaseModel):
        name: str
        aliases: list[str] = Field(default_factory=lambda data: [data["name"]])

    assert to_wire(Named(name="a")) == {"name": "a", "aliases": ["a"]}


def test_a_set_of_unlike_items_has_an_order_too() -> None:
    class Mixed(BaseModel):
        items: set[int | str]

    assert to_wire(Mixed(items={"b", 2, "a", 1})) == {"items": [1, 2, "a", "b"]}


def test_a_null_in_one_variant_of_a_union_is_reported() -> None:
    class Either(BaseModel):
        value: list[int] | dict[str, int]

    with pytest.raises(DecodeError, match="value"):
        codec_of(Either).decode(wire(value=None))


class Color(enum.Enum):
    RED = "red"


class Loose(BaseModel):
    free: Any = None


@pytest.mark.parametrize(
    ("free", "written"),
    [
        ({"to": AnyUrl("https://example.com/x")}, {"to": "https://example.com/x"}),
        ({Color.RED: 1, "b": 2}, {"red": 1, "b": 2}),
        ({"é": Color.RED}, {"é": "red"}),
        ([Color.RED, 1, Color.RED, [Color.RED]], ["red", 1, "red", ["red"]]),
        ((Color.RED,), ["red"]),
    ],
)
def test_values_of_a_free_field_are_written_and_left_as_they_are(free: Any, written: Any) -> None:
    before = copy.deepcopy(free)
    assert to_wire(Loose(free=free)) == {"free": written}
    assert wire_value({"free": free}) == {"free": written}
    assert free == before


def test_two_keys_that_would_be_one_are_refused() -> None:
    for free in ({Color.RED: 1, "red": 2}, {"red": 1, Color.RED: 2}):
        with pytest.raises(EncodeError, match="'red' twice") as caught:
            wire_value({"spec": {"free": free}})
        assert caught.value.field == "spec.free"
        with pytest.raises(EncodeError) as caught:
            to_wire(Loose(free=free))
        assert caught.value.field.startswith("free")


def test_dumping_names_the_field_that_cannot_be_written() -> None:
    class At(BaseModel):
        at: Time | None = None

    with pytest.raises(EncodeError, match="zone") as caught:
        codec_of(At).dump(At.model_construct(at=datetime(2026, 1, 31)))
    assert caught.value.field == "at"
