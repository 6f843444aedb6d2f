"""The model zoo: one kind for each thing that a field can be.

`python -m tests.zoo > tests/unit/crds/zoo.yaml` writes the expected schemas anew; read the difference.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
import ipaddress
import uuid
import warnings
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Literal

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypedDict

from kopylite.crds import SchemaWarning
from kopylite.crds.schema import schema_of
from kopylite.objects import (
    Conditions,
    CustomResource,
    Duration,
    Int32,
    IntOrString,
    KeySelector,
    LabelSelector,
    LocalObjectReference,
    MicroTime,
    ObjectReference,
    PrinterColumn,
    Quantity,
    ResourceRequirements,
    Rule,
    Scale,
    Time,
    Toleration,
    TypedLocalObjectReference,
    embedded_resource,
    immutable,
    list_atomic,
    list_map,
    list_set,
    map_atomic,
    preserve_unknown,
)
from kopylite.objects.yamlwrite import to_yaml

GROUP = "zoo.example.com"
ZOO: list[type[CustomResource[Any, Any]]] = []
# Kinds of which the server checks less than Python: it accepts more.
LOOSE: set[str] = set()


def animal(spec: type[BaseModel]) -> type[BaseModel]:
    """Make a kind of a spec, named after it."""
    kind = type(
        spec.__name__,
        (CustomResource[spec, None],),  # type: ignore[valid-type]
        {"__module__": __name__},
        group=GROUP,
        version="v1",
    )
    ZOO.append(kind)
    return spec


def loose(spec: type[BaseModel]) -> type[BaseModel]:
    LOOSE.add(spec.__name__)
    return animal(spec)


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Port(BaseModel):
    """A port of the service."""

    name: str
    container_port: int = Field(ge=1, le=65535)
    protocol: Literal["TCP", "UDP"] = "TCP"


@animal
class Texts(BaseModel):
    plain: str
    short: str = Field(default="a", min_length=1, max_length=3)
    pattern: str = Field(default="abc", pattern=r"^[a-z]+$")


@animal
class Integers(BaseModel):
    plain: int
    small: Int32 = 0
    bounded: int = Field(default=3, ge=1, le=5)
    exclusive: int = Field(default=3, gt=1, lt=5)
    even: int = Field(default=2, multiple_of=2)


@animal
class Numbers(BaseModel):
    plain: float
    percentage: float = Field(default=0.5, ge=0, le=1)


@animal
class Booleans(BaseModel):
    plain: bool
    enabled: bool = True


@animal
class Bytes(BaseModel):
    data: bytes
    preset: bytes = b"kopylite"


@animal
class Moments(BaseModel):
    at: datetime
    day: date | None = None
    start: Time | None = None
    exact: MicroTime | None = None


@loose
class Clocks(BaseModel):
    """Time of day has no format on the server."""

    wake: time


@animal
class Durations(BaseModel):
    timeout: timedelta
    interval: Duration = timedelta(minutes=90)


@animal
class Identifiers(BaseModel):
    id: uuid.UUID


@loose
class Addresses(BaseModel):
    """The two libraries read odd URLs differently."""

    url: AnyUrl
    host: ipaddress.IPv4Address | None = None


@animal
class Amounts(BaseModel):
    price: decimal.Decimal


@animal
class Literals(BaseModel):
    mode: Literal["on", "off"]
    number: Literal[1, 2] = 1
    fixed: Literal["only"] = "only"


@animal
class MixedLiterals(BaseModel):
    value: Literal["auto", 1]


@animal
class Enums(BaseModel):
    color: Color
    level: Level = Level.LOW


@animal
class Optionals(BaseModel):
    text: str | None = None
    number: int | None = Field(default=None, ge=0)
    color: Color | None = None
    port: Port | None = None
    items: list[str] | None = None


@animal
class Nullables(BaseModel):
    """Null is a value of its own here."""

    text: str | None
    number: int | None = 5
    color: Color | None
    choice: Literal[1, None] = 1


@animal
class NullItems(BaseModel):
    texts: list[str | None] = []
    colors: list[Color | None] = []
    named: dict[str, int | None] = {}


@animal
class Ports(BaseModel):
    port: int | str
    strategy: IntOrString = "25%"


@animal
class ShortTexts(BaseModel):
    """A union of texts is a text with alternatives."""

    value: Annotated[str, Field(max_length=2)] | Annotated[str, Field(pattern="^long-")]


@animal
class NumbersOrIntegers(BaseModel):
    value: int | float


@loose
class Anything(BaseModel):
    """Types that have no union in a schema."""

    value: bool | str
    shape: list[str] | dict[str, str] | None = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(default=9, ge=1, le=9)
    name: str


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str = Field(max_length=5)
    tricks: list[str]


@animal
class Tagged(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


@animal
class TaggedItems(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []


class FromImage(BaseModel):
    image: str


class FromSource(BaseModel):
    repository: str
    branch: str = "main"


@animal
class Untagged(BaseModel):
    source: FromImage | FromSource


@animal
class Lists(BaseModel):
    texts: list[str]
    some: list[int] = Field(default=[1], min_length=1, max_length=3)
    nested: list[list[int]] = []


@animal
class Sets(BaseModel):
    unique: set[int]
    colors: frozenset[Color] = frozenset()


@animal
class Tuples(BaseModel):
    pair: tuple[int, int]
    many: tuple[str, ...] = ()


@loose
class MixedTuples(BaseModel):
    pair: tuple[int, str]


@animal
class Maps(BaseModel):
    labels: dict[str, str]
    counts: dict[str, Annotated[int, Field(ge=0)]] = {}
    ports: dict[str, Port] = {}
    some: dict[str, str] = Field(default={"a": "b"}, max_length=2)


@loose
class KeyedMaps(BaseModel):
    """The server does not look at keys."""

    by_number: dict[int, str] = {}
    by_name: dict[Annotated[str, Field(pattern="^[a-z]+$")], str] = {}


@animal
class Free(BaseModel):
    """Values of any shape."""

    anything: Any
    later: Any = None
    values: dict[str, Any] = {}
    items: list[Any] = []


@animal
class Nested(BaseModel):
    """Models within models."""

    port: Port
    ports: list[Port] = []
    inline: Port = Port(name="http", container_port=80)


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@loose
class Recursive(BaseModel):
    root: Tree


class Names(RootModel[list[str]]):
    pass


class Percentage(RootModel[Annotated[int, Field(ge=0, le=100)]]):
    pass


@animal
class Roots(BaseModel):
    names: Names
    percentage: Percentage = Percentage(50)


@animal
class Aliases(BaseModel):
    cluster_ip: str = Field(alias="clusterIP")
    from_: str = "here"
    max_surge_percent: int = 1


@animal
class Descriptions(BaseModel):
    """What the whole is about.

    With a second paragraph.
    """

    size: int = Field(default=1, description="How large it is.", examples=[3], title="Size")
    old: str | None = Field(default=None, description="The old name.", deprecated=True)


@animal
class OpenFields(BaseModel):
    model_config = ConfigDict(extra="allow")

    known: str


@loose
class ClosedFields(BaseModel):
    """The server drops unknown fields instead of refusing them."""

    model_config = ConfigDict(extra="forbid")

    known: str


class Point(TypedDict):
    pos_x: int
    pos_y: int


@dataclasses.dataclass
class Area:
    start_at: Point
    label: str = ""


@animal
class OtherModels(BaseModel):
    """Typed dicts and dataclasses."""

    area: Area


@animal
class Merged(BaseModel):
    """How server-side apply merges lists and maps."""

    ports: Annotated[list[Port], list_map("name")] = []
    names: Annotated[list[str], list_set] = []
    steps: Annotated[list[str], list_atomic] = []
    selector: Annotated[dict[str, str], map_atomic] = {}


@animal
class Embedded(BaseModel):
    template: Annotated[dict[str, Any], embedded_resource]
    raw: Annotated[Port, preserve_unknown]


@animal
class Immutable(BaseModel):
    storage_class: Annotated[str, immutable]


@animal
class Ruled(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [Rule("self.low <= self.high", "low comes before high").to_dict()]
        }
    )

    low: int
    high: int


@animal
class Resources(BaseModel):
    memory: Quantity
    cpu: Quantity = Quantity("500m")
    resources: ResourceRequirements = ResourceRequirements()


@animal
class Selectors(BaseModel):
    selector: LabelSelector
    tolerations: list[Toleration] = []


@animal
class References(BaseModel):
    secret: LocalObjectReference
    key: KeySelector | None = None
    owner: TypedLocalObjectReference | None = None
    target: ObjectReference | None = None


@animal
class DefaultFactories(BaseModel):
    """Python makes these itself; the server need not know."""

    names: list[str] = Field(default_factory=lambda: ["a"])
    port: Port = Field(default_factory=lambda: Port(name="http", container_port=80))


class FullSpec(BaseModel):
    replicas: int = Field(default=1, ge=0)
    config: str | None = None


class FullStatus(BaseModel):
    replicas: int = 0
    selector: str = ""
    conditions: Conditions = []


class Full(
    CustomResource[FullSpec, FullStatus],
    group=GROUP,
    version="v1",
    plural="fulls",
    short_names=["fl"],
    categories=["all"],
    columns=[
        PrinterColumn("Replicas", ".spec.replicas", "integer"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date", priority=1, description="since its creation"),
    ],
    selectable_fields=[".spec.config"],
    scale=Scale(label_selector=".status.selector"),
    rules=[Rule("self.spec.replicas < 100", message="at most 99 replicas")],
    deprecated="zoo.example.com/v1 Full is deprecated; use v2",
):
    """Everything that a class keyword can say."""


class FullV2(CustomResource[FullSpec, FullStatus], group=GROUP, version="v2", kind="Full", storage=False):
    """The next version."""


class Cluster(CustomResource[FullSpec, FullStatus | None], group=GROUP, version="v1", scope="Cluster"):
    """A kind without a namespace."""


def spec_schemas() -> dict[str, Any]:
    """The schema of each kind's spec, by kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        return {kind.__name__: schema_of(kind)["properties"]["spec"] for kind in ZOO}


if __name__ == "__main__":
    print(to_yaml([{kind: schema} for kind, schema in spec_schemas().items()]), end="")
