"""CustomResource: an API object as a pydantic model, and the class keywords that declare its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import NoneType
from typing import Any, ClassVar, Generic, Literal, TypedDict, TypeVar, Unpack, get_args, get_origin

import msgspec
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticUndefined

from kopylite.errors import RegistrationError
from kopylite.objects.apimodel import ApiModel, ObjectMeta, OwnerRef
from kopylite.objects.kinds import Kind
from kopylite.objects.marks import Rule

SpecT = TypeVar("SpecT")
StatusT = TypeVar("StatusT")


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`. `path` is a JSONPath like ".spec.replicas"; priority > 0 needs `-o wide`."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale sub-resource: JSONPaths of the fields that `kubectl scale` and autoscalers use."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""


class ResourceOptions(TypedDict, total=False):
    """The class keywords of a CustomResource; `Declaration` explains them."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    scope: Literal["Namespaced", "Cluster"]
    short_names: Sequence[str]
    categories: Sequence[str]
    served: bool
    storage: bool
    deprecated: bool | str
    columns: Sequence[PrinterColumn]
    selectable_fields: Sequence[str]
    scale: Scale | None
    status_subresource: bool | None
    rules: Sequence[Rule]
    annotations: Mapping[str, str]
    foreign: bool


class Declaration(msgspec.Struct, frozen=True):
    """What the class keywords of a CustomResource say.

    Args:
        group: the API group, e.g. "example.com".
        version: e.g. "v1" or "v1beta1".
        kind: the class name unless given.
        plural: the name in URLs; the English plural of the lower-case kind unless given.
        singular: the lower-case kind unless given.
        list_kind: the kind with "List" appended unless given.
        scope: "Namespaced" (the default) or "Cluster".
        short_names: e.g. ["ma"] for `kubectl get ma`.
        categories: e.g. ["all"] for `kubectl get all`.
        served: whether the server offers this version.
        storage: whether objects are stored in this version; of several versions exactly one is.
        deprecated: True, or the warning that users of this version get.
        columns: what `kubectl get` prints beside the name.
        selectable_fields: JSONPaths usable in field selectors, e.g. ".spec.config".
        scale: the scale sub-resource, if any.
        status_subresource: whether the status is written apart from the rest; None: where there is a status.
        rules: validations of the whole object, in CEL.
        annotations: of the CustomResourceDefinition itself.
        foreign: somebody else installs that, so no command writes it for a cluster: neither `kopylite crd` nor
            `kopylite manifests`. A development cluster and a sweep have it nevertheless.
    """

    group: str
    version: str
    kind: str
    plural: str = ""
    singular: str = ""
    list_kind: str = ""
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    served: bool = True
    storage: bool = True
    deprecated: bool | str = False
    columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    scale: Scale | None = None
    status_subresource: bool | None = None
    rules: tuple[Rule, ...] = ()
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    foreign: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def as_kind(self) -> Kind:
        return Kind(self.api_version, self.kind, self.plural, self.scope == "Namespaced")


class CustomResource(ApiModel, Generic[SpecT, StatusT]):
    """Base of your own kinds: `class MyApp(CustomResource[MyAppSpec, MyAppStatus], group=..., version=...)`.

    Spec and Status may be plain pydantic models in snake_case; on the wire their fields are camelCase. `None` as
    Status: the kind has no status. A Status whose fields all have defaults is never None in Python: a new
    object has none on the wire, and reads as `MyAppStatus()`; for any other Status say `MyAppStatus | None`.

    The fields that the model does not know are kept for updates.
    """

    model_config = ConfigDict(protected_namespaces=())

    declaration: ClassVar[Declaration | None] = None

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: SpecT
    status: StatusT = Field(default=None, validate_default=False)  # type: ignore[assignment]

    def __init_subclass__(cls, **options: Unpack[ResourceOptions]) -> None:
        super().__init_subclass__()
        if options:
            cls.declaration = _declare(cls, options)

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        if cls.declaration is not None:
            _set_defaults(cls, cls.declaration)
            super().__pydantic_on_complete__()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """ "" for cluster-scoped objects."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    @property
    def generation(self) -> int:
        return self.metadata.generation

    @property
    def labels(self) -> dict[str, str]:
        """The map of the metadata itself: what is put into it is written with the object."""
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """As `labels`."""
        return self.metadata.annotations

    @property
    def finalizers(self) -> list[str]:
        return self.metadata.finalizers

    @property
    def owner_references(self) -> list[OwnerRef]:
        return self.metadata.owner_references

    @property
    def deletion_timestamp(self) -> datetime | None:
        """None while nobody has asked for the deletion."""
        return self.metadata.deletion_timestamp


def _declare(cls: type[CustomResource[Any, Any]], options: ResourceOptions) -> Declaration:
    inherited = cls.declaration
    values: dict[str, Any] = {} if inherited is None else msgspec.structs.asdict(inherited)
    unknown = sorted(set(options) - set(ResourceOptions.__annotations__))
    if unknown:
        raise RegistrationError(
            f"{cls.__name__}: unknown class keyword {unknown[0]!r}; known: {', '.join(ResourceOptions.__annotations__)}"
        )
    values |= {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    if not values.get("group") or not values.get("version"):
        raise RegistrationError(
            f'{cls.__name__} needs both group= and version=, e.g. group="example.com", version="v1"'
        )
    kind = values.setdefault("kind", cls.__name__)
    values["plural"] = values.get("plural") or plural_of(kind)
    values["singular"] = values.get("singular") or kind.lower()
    values["list_kind"] = values.get("list_kind") or f"{kind}List"
    return Declaration(**values)


def plural_of(kind: str) -> str:
    """The resource name for a kind: its English plural, in lower case. Settings and Redis stay as they are."""
    word = kind.lower()
    if word.endswith(("ss", "us", "as", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word if word.endswith("s") else f"{word}s"


def _set_defaults(cls: type[CustomResource[Any, Any]], declaration: Declaration) -> None:
    """Give the class its apiVersion and kind, and an empty spec and status where these are complete when empty."""
    model_fields = cls.model_fields
    defaults: dict[str, dict[str, Any]] = {
        "api_version": {"default": declaration.api_version},
        "kind": {"default": declaration.kind},
    }
    for name in ("spec", "status"):
        if isinstance(model_fields[name].annotation, TypeVar) or model_fields[name].annotation is BaseModel:
            raise RegistrationError(
                f"{cls.__name__}: name the models of spec and status, or None where there is no status: "
                f"class {cls.__name__}(CustomResource[Spec, Status], ...)"
            )
        empty = _empty_value(model_fields[name].annotation)
        if empty is not None:
            defaults[name] = empty
        elif name == "status":
            raise RegistrationError(
                f"{cls.__name__}: a new object has no status, so give every status field a default, "
                "or declare the status as `... | None`"
            )
    schema_fields = _fields_schema(cls.__pydantic_core_schema__, cls)["fields"]
    for name, default in defaults.items():
        model_fields[name].default = default.get("default", PydanticUndefined)
        model_fields[name].default_factory = default.get("default_factory")
        schema = schema_fields[name]["schema"]
        inner = schema["schema"] if schema["type"] == "default" else schema
        schema_fields[name]["schema"] = {"type": "default", "schema": inner, **default}


def _empty_value(annotation: Any) -> dict[str, Any] | None:
    """How to make a value of this type from nothing; None: that is impossible."""
    origin = get_origin(annotation) or annotation
    if origin in (Any, None, NoneType) or NoneType in get_args(annotation):
        return {"default": None}
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        complete = not any(field.is_required() for field in origin.model_fields.values())
        # A third of what calling the class takes: most objects come without a status, and each read makes one.
        return {"default_factory": lambda: annotation.__pydantic_validator__.validate_json(b"{}")} if complete else None
    return {"default_factory": dict} if origin is dict else None


def _fields_schema(schema: Any, cls: type) -> Any:
    """The part of a finished core schema that lists the fields of the model class."""
    if schema["type"] == "definitions":
        candidates = [schema["schema"], *schema["definitions"]]
        schema = next(
            part for part in candidates if part.get("cls") is cls or part["type"] not in ("definition-ref", "model")
        )
    while schema["type"] != "model-fields":
        schema = schema["schema"]
    return schema
