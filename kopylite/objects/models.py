"""Models of kubernetes_asyncio and of the official client (`V1Deployment` and the like) as kinds.

Both are made by one generator and look alike (the official client's newest are pydantic models, and not read here).
Whoever holds such a class has paid for the library's import already. Objects are built straight from the classes' own
tables, about ten times faster than the library's deserializer. Unlike there, fields that the class does not know are
kept for updates, and times are written as the API server's types want them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from kopylite.boundary import read
from kopylite.errors import DecodeError, RegistrationError
from kopylite.objects.builtin_kinds import builtin_kinds
from kopylite.objects.kinds import Kind
from kopylite.objects.reading import read_from
from kopylite.objects.unstructured import Unstructured, fill_kind, misfit, unreadable
from kopylite.objects.wireformats import format_time
from kopylite.objects.wirevalues import wire_value

ModelT = TypeVar("ModelT")

_LIBRARIES = ("kubernetes_asyncio.client.", "kubernetes.client.")
# AppsV1Thing, V1Thing, V1beta1Thing: the group's first label where a kind has several groups, version, kind.
_CLASS_NAME = re.compile(r"([A-Z][a-z]+)?(V\d+(?:(?:alpha|beta)\d+)?)([A-Z]\w*)")
# Fields of the API type MicroTime: exactly six digits of a second. All other times are whole seconds.
_MICRO_TIMES = frozenset({"acquireTime", "renewTime", "eventTime", "lastObservedTime", "pingTime"})
_MICRO_KINDS = frozenset({"Event", "Lease", "LeaseCandidate"})
_WHOLE_SECOND = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
# Where an instance keeps the fields that its class does not know.
_UNKNOWN = "_kopylite_unknown_fields"
_decode_dict = msgspec.json.Decoder(dict[str, Any]).decode


def is_client_model(cls: type) -> bool:
    """Whether a class is one of the two libraries' models; imports nothing."""
    return cls.__module__.startswith(_LIBRARIES) and hasattr(cls, "openapi_types")


class ClientModelAdapter(Generic[ModelT]):
    """Objects as instances of a kubernetes_asyncio model class."""

    __slots__ = ("_cls", "kind")

    def __init__(self, cls: type[ModelT]) -> None:
        self._cls = cls
        self.kind = kind_of_model(cls)

    def decode(self, raw: bytes) -> ModelT:
        document = read(_decode_dict, raw, self._refuse)
        try:
            obj: ModelT = _build(self._cls, document, "")
        except RecursionError as error:
            raise self._refuse(raw, error) from None
        except _Misfit as problem:
            raise misfit(fill_kind(Unstructured(document), self.kind), str(problem), self.kind.kind) from None
        read_from(obj, raw)
        return obj

    def _refuse(self, raw: bytes, error: Exception) -> DecodeError:
        return unreadable(raw, error, str(self.kind))

    def encode(self, obj: ModelT) -> dict[str, Any]:
        wire = {**_dump(obj), "apiVersion": self.kind.api_version, "kind": self.kind.kind}
        return wire_value(wire, name=self.kind.kind)  # type: ignore[no-any-return]


def kind_of_model(cls: type) -> Kind:
    """The Kind that a model class is named after.

    Raises:
        RegistrationError: the class is only a part of an object (V1PodSpec), or a kind that no server has.
    """
    match = _CLASS_NAME.fullmatch(cls.__name__)
    if match:
        prefix, version, name = match.groups()
        for kind in builtin_kinds():
            if (kind.version, kind.kind) == (version.lower(), name) and prefix in (None, _prefix(kind)):
                return kind
    raise RegistrationError(f"{cls.__name__} is no kind of the Kubernetes API; name the object's own class")


def _prefix(kind: Kind) -> str:
    return (kind.group.partition(".")[0] or "core").capitalize()


class _Misfit(ValueError):
    """Path and problem of the first value that does not fit."""


class _Field:
    """One row of a class's table: attribute, wire name, type."""

    __slots__ = ("attribute", "convert", "wire_name")

    def __init__(self, attribute: str, wire_name: str, type_name: str, library: str) -> None:
        self.attribute = attribute
        self.wire_name = wire_name
        self.convert = _converter(type_name, library)


_tables: dict[type[Any], dict[str, _Field]] = {}


def _fields(cls: type[Any]) -> dict[str, _Field]:
    """The table of a class, by wire name."""
    table = _tables.get(cls)
    if table is None:
        table = _tables[cls] = {
            wire_name: _Field(attribute, wire_name, cls.openapi_types[attribute], _library_of(cls))
            for attribute, wire_name in cls.attribute_map.items()
        }
    return table


def _library_of(cls: type[Any]) -> str:
    """The package that a model class is of: `kubernetes.client`."""
    return next(library for library in _LIBRARIES if cls.__module__.startswith(library)).removesuffix(".")


@cache
def _no_validation(library: str) -> Any:
    """Settings under which the models' setters only assign: the server has validated what it stores."""
    configuration = sys.modules[library].Configuration()
    configuration.client_side_validation = False
    return configuration


def _build(cls: type[Any], document: Any, path: str) -> Any:
    if not isinstance(document, Mapping):
        raise _Misfit(f"{path.removeprefix('.') or 'object'}: expected an object")
    model = cls(local_vars_configuration=_no_validation(_library_of(cls)))
    fields = _fields(cls)
    unknown = {}
    for name, value in document.items():
        field = fields.get(name)
        if field is None:
            unknown[name] = value
        elif value is not None:
            setattr(model, field.attribute, field.convert(value, f"{path}.{name}"))
    if unknown:
        model.__dict__[_UNKNOWN] = unknown
    return model


def _converter(type_name: str, library: str) -> Callable[[Any, str], Any]:
    """The function (value, path) for a type of the library's tables: str, list[V1Pod], dict(str, datetime)..."""
    if match := re.fullmatch(r"list\[(.+)\]", type_name):
        return _list_converter(_converter(match[1], library))
    if match := re.fullmatch(r"dict[(\[]str, (.+)[)\]]", type_name):
        return _dict_converter(_converter(match[1], library))
    if type_name in ("datetime", "date"):
        return _read_time
    if type_name[:1].isupper():
        return lambda value, path: _build(_class_named(type_name, library), value, path)
    return _SCALARS.get(type_name, _as_it_is)


def _class_named(name: str, library: str) -> type[Any]:
    cls: type[Any] = getattr(sys.modules[f"{library}.models"], name)
    return cls


def _list_converter(convert: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise _Misfit(f"{path.removeprefix('.')}: expected a list")
        return [convert(item, f"{path}[{index}]") for index, item in enumerate(value)]

    return read


def _dict_converter(convert: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Misfit(f"{path.removeprefix('.')}: expected a map")
        return {key: convert(item, f"{path}.{key}") for key, item in value.items()}

    return read


def _as_it_is(value: Any, path: str) -> Any:
    return value


def _scalar(expected: tuple[type, ...], name: str) -> Callable[[Any, str], Any]:
    def read(value: Any, path: str) -> Any:
        if type(value) not in expected:
            raise _Misfit(f"{path.removeprefix('.')}: expected {name}")
        return value

    return read


_SCALARS = {
    "str": _scalar((str,), "a string"),
    "int": _scalar((int,), "an integer"),
    "float": _scalar((int, float), "a number"),
    "bool": _scalar((bool,), "a boolean"),
}


def _read_time(value: Any, path: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _Misfit(f"{path.removeprefix('.')}: expected an RFC 3339 time") from None


def _dump(value: Any, wire_name: str = "") -> Any:
    if isinstance(value, list):
        return [_dump(item) for item in value]
    if isinstance(value, dict):
        return {key: _dump(item) for key, item in value.items()}
    if isinstance(value, datetime):
        digits = "microseconds" if wire_name in _MICRO_TIMES else "seconds"
        return value if value.tzinfo is None else format_time(value, digits)  # without a zone it is refused later
    if isinstance(value, date):
        return value.isoformat()
    if not hasattr(value, "openapi_types"):
        return value
    wire = {}
    for name, field in _fields(type(value)).items():
        part = getattr(value, field.attribute)
        if part is not None:
            wire[name] = _dump(part, name)
    return wire | value.__dict__.get(_UNKNOWN, {})


def with_micro_times(wire: dict[str, Any]) -> dict[str, Any]:
    """The wire form of an object, with MicroTimes as they must be: of six digits."""
    if wire.get("kind") not in _MICRO_KINDS:
        return wire
    return {name: part if name == "metadata" else _micro(part, name) for name, part in wire.items()}


def _micro(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _micro(part, key) for key, part in value.items()}
    if name in _MICRO_TIMES and isinstance(value, str) and (found := _WHOLE_SECOND.fullmatch(value)):
        return f"{found[1]}.{(found[2] or '').ljust(6, '0')[:6]}{found[3]}"
    return value


def set_client_owner_references(obj: Any, entries: list[Any]) -> None:
    """Replace the owner references of a model instance by these, which are in wire form."""
    library = _library_of(type(obj))
    if obj.metadata is None:
        obj.metadata = _build(_class_named("V1ObjectMeta", library), {}, "")
    obj.metadata.owner_references = _converter("list[V1OwnerReference]", library)(entries, "metadata.ownerReferences")
