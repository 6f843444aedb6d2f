"""What is written reads back equal, or it is refused with the field's path: when the class is made, or before a body
is sent."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import math
import uuid
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    NaiveDatetime,
    PlainSerializer,
    Secret,
    SecretBytes,
    SecretStr,
    create_model,
)
from typing_extensions import TypedDict

from kopylite.crds import crd_of
from kopylite.errors import EncodeError, RegistrationError
from kopylite.objects import ApiModel, CustomResource, Quantity, Time, adapter_of, to_wire
from kopylite.objects.modelcodec import codec_of
from kopylite.objects.wirevalues import wire_value

JsonText: TypeAlias = Json[Any]
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Weight(enum.Enum):
    ONE = 1.0
    HALF = 0.5


class Pair(enum.Enum):
    A = (1, 2)


class Animal(BaseModel):
    name: str


class Dog(Animal):
    tricks: int = 0


def model(annotation: Any, **options: Any) -> type[BaseModel]:
    made: type[BaseModel] = create_model("Holder", value=(annotation, Field(**options)))
    return made


def written(annotation: Any, value: Any) -> bytes:
    """What a field with this value is sent as."""
    cls = model(annotation)
    return json.dumps(to_wire(cls.model_construct(_fields_set={"value"}, value=value))["value"]).encode()


@pytest.mark.parametrize(
    ("annotation", "value", "wire"),
    [
        (SecretStr, SecretStr("s3cret"), '"s3cret"'),
        (SecretBytes, SecretBytes(b"\xff"), '"/w=="'),
        (Secret[int], Secret[int](3), "3"),
        (SecretStr | None, SecretStr("s3cret"), '"s3cret"'),
        (list[SecretStr], [SecretStr("a")], '["a"]'),
        (dict[str, SecretStr], {"k": SecretStr("a")}, '{"k": "a"}'),
        (NaiveDatetime, datetime(2026, 1, 31, 12), '"2026-01-31T12:00:00Z"'),
        (datetime, NOON.astimezone(timezone(timedelta(hours=2))), '"2026-01-31T12:00:00Z"'),
        (Weight, Weight.ONE, "1"),
        (Weight, Weight.HALF, "0.5"),
        (JsonText, {"a": 1}, '"{\\"a\\":1}"'),
        (set[int], {2, 1}, "[1, 2]"),
        (bytes, b"\xff", '"/w=="'),
        (Decimal, Decimal("1.10"), '"1.10"'),
        (timedelta, timedelta(seconds=1.5), '"1.5s"'),
        (uuid.UUID, uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Path, Path("/a"), '"/a"'),
        (dict[int, str], {1: "a"}, '{"1": "a"}'),
        (Quantity, Quantity("1Gi"), '"1Gi"'),
        (tuple[int, str], (1, "a"), '[1, "a"]'),
        (collections.deque[int], collections.deque([1]), "[1]"),
    ],
)
def test_what_is_written_reads_back_equal(annotation: Any, value: Any, wire: str) -> None:
    assert written(annotation, value) == wire.encode()
    read = codec_of(model(annotation)).decode(b'{"value": %s}' % wire.encode())
    assert read.value == value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (float, math.nan, "value is nan, which JSON does not have"),
        (float | None, math.inf, "value is inf"),
        (list[float], [1.0, -math.inf], r"value\[1\] is -inf"),
        (dict[str, list[float]], {"a": [math.nan]}, r"value\.a\[0\] is nan"),
        (Any, {"a": [math.nan]}, r"value\.a\[0\] is nan"),
        (Any, (n for n in range(3)), "value is a generator, which can be read only once"),
        (dict[str, Any], {"a": iter([])}, r"value\.a is a list_iterator"),
        (list[int], (n for n in range(3)), "value would not read back as it is"),
        (datetime, datetime(2026, 1, 31), "value is a time without a zone"),
        (Time, datetime(2026, 1, 31), "value is a time without a zone"),
        (Any, datetime(2026, 1, 31), "value is a time without a zone"),
        (Any, SecretStr("s3cret"), "value is a secret"),
        (Any, {1: 2}, "value has a key that is no text"),
        (Any, object(), "value is a object, which has no JSON form"),
        (Any, Decimal("NaN"), "value is NaN"),
        (Any, 2**63, "value is an integer beyond 64 bits"),
        (Pair, Pair.A, "value could not be read back"),
        (Weight, 1.0, "value would not read back"),
        (int, "1", "value could not be read back"),
        (str, 5, "value could not be read back"),
        (int, 1.5, "value could not be read back"),
        (Annotated[int, Field(ge=0)], -1, "value could not be read back"),
        (Decimal, Decimal("NaN"), "value could not be read back"),
        (dict[str | None, int], {None: 1}, "value would not read back"),
        (dict[tuple[int, int], int], {(1, 2): 1}, "value"),
        (str, "\ud800", "value has a lone surrogate"),
        (Annotated[int, BeforeValidator(lambda v: v + 1)], 3, "value would not read back"),
        (Annotated[datetime, PlainSerializer(lambda v: "noon")], NOON, "value could not be read back"),
        (Annotated[str, PlainSerializer(lambda v: "***")], "s3cret", "value would not read back"),
        (Animal, Dog(name="a", tricks=3), "value would not read back"),
        (list[Animal], [Dog(name="a")], r"value\[0\] would not read back"),
    ],
)
def test_what_would_be_another_value_is_refused_by_its_path(annotation: Any, value: Any, problem: str) -> None:
    with pytest.raises(EncodeError, match=f"Holder: {problem}") as caught:
        written(annotation, value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"validation_alias": "wire"}, r"Holder\.value is written as 'value' and read as 'wire'.*alias='wire'"),
        ({"serialization_alias": "wire"}, r"written as 'wire' and read as 'value'"),
        ({"validation_alias": AliasChoices("a", "b")}, r"written as 'value' and read as 'a' or 'b'"),
        (
            {"validation_alias": AliasChoices("a", "b"), "serialization_alias": "b"},
            r"written as 'b' and read as 'a' or",
        ),
        ({"validation_alias": AliasPath("a", "b")}, "read as a part of another"),
        ({"exclude": True}, "never written"),
    ],
)
def test_a_class_that_would_lose_a_value_is_refused_when_it_is_made(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(RegistrationError, match=problem):
        codec_of(model(int, **options))
    holder = model(int, **options)
    with pytest.raises(RegistrationError, match=problem):
        type("Thing", (CustomResource[holder, None],), {"__module__": __name__}, group="a.b", version="v1")  # type: ignore[valid-type]


def test_names_that_are_the_same_on_both_sides_are_fine() -> None:
    for options in (
        {"alias": "wire"},
        {"validation_alias": "wire", "serialization_alias": "wire"},
        {"validation_alias": AliasChoices("wire", "old"), "serialization_alias": "wire"},
    ):
        cls = model(int, **options)
        assert to_wire(cls.model_construct(_fields_set={"value"}, value=1)) == {"wire": 1}
        assert codec_of(cls).decode(b'{"wire": 1}').value == 1  # type: ignore[attr-defined]


def test_two_fields_with_one_wire_name_are_refused() -> None:
    class Both(BaseModel):
        max_surge: int = 0
        maxSurge: int = 0

    class Aliased(BaseModel):
        a: int = Field(default=0, alias="x")
        b: int = Field(default=0, alias="x")

    class Typed(TypedDict):
        max_surge: int
        maxSurge: int

    for cls in (Both, Aliased, model(Typed)):
        with pytest.raises(RegistrationError, match="on the wire: one of them would be lost"):
            codec_of(cls)


def test_a_field_that_can_be_read_only_once_is_refused() -> None:
    with pytest.raises(RegistrationError, match="only once"):
        codec_of(model(Iterable[int]))


@pytest.mark.parametrize(
    ("default", "problem"),
    [
        (SecretStr("s3cret"), "is a secret, which everybody could read in the CRD"),
        (math.nan, "is nan"),
        (datetime(2026, 1, 31), "is a time without a zone"),
    ],
)
def test_a_default_that_no_crd_should_have_is_refused(default: Any, problem: str) -> None:
    inner = create_model("Inner", token=(type(default), default))
    spec = create_model("Spec", inner=(inner, ...))
    cls: Any = type("Thing", (CustomResource[spec, None],), {"__module__": __name__}, group="a.b", version="v1")
    with pytest.raises(RegistrationError, match=f"Thing: the default of spec.inner.token {problem}") as caught:
        crd_of(cls)
    assert "s3cret" not in str(caught.value)


def test_an_empty_secret_may_be_a_default() -> None:
    spec = create_model("Spec", token=(SecretStr, SecretStr("")))
    cls: Any = type("Thing", (CustomResource[spec, None],), {"__module__": __name__}, group="a.b", version="v1")
    schema = crd_of(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["properties"]["token"]["default"] == ""


def test_a_status_written_in_part_may_lack_fields() -> None:
    class Status(BaseModel):
        phase: str
        ready: int

    part: dict[str, Any] = {"phase": "Up"}
    assert to_wire(Status.model_construct(_fields_set={"phase"}, **part)) == part


def test_what_a_factory_made_is_written() -> None:
    class Spec(BaseModel):
        id: uuid.UUID = Field(default_factory=uuid.uuid4)
        same: int = Field(default_factory=int)

    spec = Spec()
    assert to_wire(spec) == {"id": str(spec.id)}


def test_extras_follow_the_same_law() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    with pytest.raises(EncodeError, match=r"Open: other"):
        to_wire(Open(other=math.nan))
    assert to_wire(Open(other=[1, {"a": "b"}])) == {"other": [1, {"a": "b"}]}


def test_an_object_with_itself_inside_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(EncodeError):
        wire_value({"a": endless})
    with pytest.raises(EncodeError):
        written(Any, endless)


@dataclasses.dataclass
class Spot:
    at: datetime


class Struct(msgspec.Struct):
    size: int


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (1.0, 1), (1.5, 1.5), (Weight.ONE, 1), (NOON, "2026-01-31T12:00:00Z"), (date(2026, 1, 31), "2026-01-31"),
        (time(1, 2), "01:02:00"), (timedelta(minutes=90), "1h30m0s"), (b"\xff", "/w=="), ({3, 1}, [1, 3]),
        ((1, 2), [1, 2]), (Decimal("1.50"), "1.50"), (Path("a/b"), "a/b"), (Quantity("1Gi"), "1Gi"),
        (Spot(NOON), {"at": "2026-01-31T12:00:00Z"}), (Struct(1), {"size": 1}), (Name("a"), "a"),
        (collections.OrderedDict(a=1.0), {"a": 1}), (collections.UserDict(a=1), {"a": 1}),
        (Dog(name="a"), {"name": "a"}), ({Name("k"): 1}, {"k": 1}),
    ],
)  # fmt: skip
def test_values_in_a_map_become_what_the_api_writes(value: Any, wire: Any) -> None:
    found = wire_value({"spec": value})["spec"]
    assert (type(found), found) == (type(wire), wire)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=20,
)


@given(JSON)
def test_json_is_passed_on_as_it_is(value: Any) -> None:
    assert wire_value(value) is value


BAD = st.sampled_from([math.nan, math.inf, datetime(2026, 1, 1), 2**64, "\ud800", object(), SecretStr("a"), {1: 1}])


@given(JSON, BAD, st.lists(st.sampled_from(["a", 0]), max_size=5))
def test_a_bad_value_anywhere_is_found_and_named(value: Any, bad: Any, steps: list[Any]) -> None:
    document = bad
    for step in reversed(steps):
        document = {"before": value, step: document} if step else [document, value]
    path = "".join("[0]" if step == 0 else f".{step}" for step in steps).removeprefix(".") or "object"
    with pytest.raises(EncodeError) as caught:
        wire_value(document, name="Thing a/b")
    assert str(caught.value).startswith(f"Thing a/b: {path}")


class Spec(ApiModel):
    weight: float = 0
    mode: Literal["a", "b"] = "a"
    anything: Any = None


class Thing(CustomResource[Spec, Spec], group="law.example.com", version="v1"):
    pass


def test_a_whole_object_is_refused_by_its_path() -> None:
    thing = Thing(spec=Spec())
    thing.spec.weight = math.nan
    with pytest.raises(EncodeError, match=r"Thing: spec\.weight is nan"):
        adapter_of(Thing).encode(thing)
    thing.spec.weight = 1.0
    thing.status.anything = {"at": [datetime(2026, 1, 1)]}
    with pytest.raises(EncodeError, match=r"Thing: status\.anything\.at\[0\] is a time without a zone"):
        adapter_of(Thing).encode(thing)
