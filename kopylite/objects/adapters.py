"""Adapters: one way to read, write and name objects, whatever Python type they are held in.

A kind is named by a `Kind` (objects are `Unstructured`), by a `CustomResource` class, by a model class of
kubernetes_asyncio such as `V1Deployment`, or by a model class of another library that carries its apiVersion
and kind (see `foreign`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, overload

import msgspec
from pydantic import BaseModel

from kopylite.boundary import read
from kopylite.errors import DecodeError, RegistrationError
from kopylite.objects.apimodel import ObjectMeta
from kopylite.objects.builtin_kinds import builtin_kind, complete
from kopylite.objects.foreign import declared, foreign_wire, is_foreign, kind_of_foreign, rebuilt
from kopylite.objects.kinds import Kind
from kopylite.objects.meta import ObjectKey
from kopylite.objects.modelcodec import ModelCodec, codec_of
from kopylite.objects.models import ClientModelAdapter, is_client_model, with_micro_times
from kopylite.objects.reading import READ, read_from
from kopylite.objects.resource import CustomResource
from kopylite.objects.secretadapter import SecretAdapter, is_secret
from kopylite.objects.unstructured import Unstructured, fill_kind, unreadable
from kopylite.objects.wirevalues import wire_value

T = TypeVar("T")
T_co = TypeVar("T_co")
ModelT = TypeVar("ModelT", bound=BaseModel)

KindLike = Kind | type[T]


class Adapter(Protocol[T]):
    """Reads and writes the objects of one kind as instances of T."""

    @property
    def kind(self) -> Kind: ...

    def decode(self, raw: bytes) -> T:
        """The object in a JSON text; a new one at each call.

        Raises:
            DecodeError: naming the object and the fields that do not fit T.
        """
        ...

    def encode(self, obj: T) -> dict[str, Any]:
        """The wire form, apiVersion and kind included. The dict may share parts with an Unstructured `obj`.

        Raises:
            EncodeError: naming a field whose value would not read back as it is.
        """
        ...


_decode_dict = msgspec.json.Decoder(dict[str, Any]).decode  # made once: `decode(raw, type=dict)` makes one each time


class UnstructuredAdapter:
    """Objects as the dicts that they are on the wire."""

    __slots__ = ("kind",)

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def decode(self, raw: bytes) -> Unstructured:
        obj = Unstructured(read(_decode_dict, raw, self._refuse))
        obj._read = raw
        return fill_kind(obj, self.kind)

    def _refuse(self, raw: bytes, error: Exception) -> DecodeError:
        return unreadable(raw, error, str(self.kind))

    def encode(self, obj: Unstructured) -> dict[str, Any]:
        named = {**obj, "apiVersion": self.kind.api_version, "kind": self.kind.kind}
        return wire_value(named, name=self.kind.kind)  # type: ignore[no-any-return]


class ModelAdapter(Generic[ModelT]):
    """Objects as instances of a pydantic class: a CustomResource, or another library's model."""

    __slots__ = ("_codec", "kind")

    def __init__(self, kind: Kind, codec: ModelCodec[ModelT]) -> None:
        self.kind = kind
        self._codec = codec

    def decode(self, raw: bytes) -> ModelT:
        try:
            obj = self._codec.decode(raw)
        except DecodeError as error:
            if error.object is not None:
                fill_kind(error.object, self.kind)
            raise
        obj.__dict__[READ] = raw  # as read_from, which each read would call
        return obj

    def encode(self, obj: ModelT) -> dict[str, Any]:
        wire = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        return wire | {name: part for name, part in self._codec.encode(obj).items() if name not in wire}


class ForeignModelAdapter(ModelAdapter[ModelT]):
    """Objects as instances of another library's pydantic class, which has one type for both of the server's times."""

    __slots__ = ()

    def encode(self, obj: ModelT) -> dict[str, Any]:
        return with_micro_times(super().encode(obj))


class ForeignAdapter:
    """One object of another library, by the wire form that it shows, and others of its class."""

    __slots__ = ("_example", "kind")

    def __init__(self, example: Any) -> None:
        self._example = example
        self.kind = kind_of(example)

    def decode(self, raw: bytes) -> Any:
        obj = rebuilt(self._example, adapter_of(self.kind).decode(raw))
        read_from(obj, raw)
        return obj

    def encode(self, obj: Any) -> dict[str, Any]:
        return wire_value(foreign_wire(obj), name=self.kind.kind)  # type: ignore[no-any-return]


@overload
def adapter_of(kind: Kind) -> Adapter[Unstructured]: ...
@overload
def adapter_of(kind: type[T]) -> Adapter[T]: ...
def adapter_of(kind: Kind | type[Any]) -> Adapter[Any]:
    """The adapter for a kind.

    Raises:
        RegistrationError: the class is no kind.
    """
    if isinstance(kind, (type, Kind)):
        return _adapter(kind)  # type: ignore[arg-type]  # mypy takes a class for something without a hash
    raise RegistrationError(f"{kind!r} is no kind: use a Kind, a CustomResource class or a V1... model class")


@lru_cache(maxsize=1024)  # every read asks for one, and what is not used any more goes
def _adapter(kind: Kind | type[Any]) -> Adapter[Any]:
    adapter = UnstructuredAdapter(complete(kind)) if isinstance(kind, Kind) else _adapter_of_class(kind)
    return SecretAdapter(adapter) if is_secret(adapter.kind) else adapter


def _adapter_of_class(cls: type[Any]) -> Adapter[Any]:
    if issubclass(cls, CustomResource):
        if cls.declaration is None:
            raise RegistrationError(
                f"{cls.__name__} is no kind yet: add group= and version=, e.g. "
                f'class {cls.__name__}(..., group="example.com", version="v1")'
            )
        return ModelAdapter(cls.declaration.as_kind, codec_of(cls))
    if issubclass(cls, BaseModel):
        # Some libraries forbid unknown fields in built-in kinds; a newer server has fields that they do not know.
        foreign = kind_of_foreign(cls)
        cls.model_rebuild()
        return ForeignModelAdapter(foreign, ModelCodec(cls.__pydantic_core_schema__, keep_all=True))
    if is_client_model(cls):
        return ClientModelAdapter(cls)
    api_version, kind = declared(cls) or ("...", "...")
    raise RegistrationError(
        f"{cls.__module__}.{cls.__qualname__} is no kind that objects are read as: use "
        f'Kind("{api_version}", "{kind}") in its place, or a class that says its apiVersion and kind'
    )


def adapter_like(obj: Any) -> Adapter[Any]:
    """The adapter for objects like this one.

    Raises:
        RegistrationError: it does not say its kind.
    """
    if is_foreign(obj):
        return ForeignAdapter(obj)
    return adapter_of(kind_of(obj) if isinstance(obj, dict) else type(obj))


def kind_of(thing: Any) -> Kind:
    """The Kind of a kind-like or of an object; plural and scope are filled in where they are known offline.

    Raises:
        RegistrationError: it is neither, or an Unstructured without apiVersion and kind.
    """
    if isinstance(thing, Kind):
        return complete(thing)
    if is_foreign(thing):
        thing = foreign_wire(thing)
    if isinstance(thing, dict):
        api_version, kind = thing.get("apiVersion"), thing.get("kind")
        if not api_version or not kind:
            raise RegistrationError("an Unstructured object needs apiVersion and kind to be sent")
        return builtin_kind(api_version, kind) or Kind(api_version, kind)
    return adapter_of(thing if isinstance(thing, type) else type(thing)).kind


def key_of(obj: Any) -> ObjectKey:
    """Namespace ("" if it has none) and name of an object in any form."""
    if is_foreign(obj) and getattr(obj, "metadata", None) is None:
        obj = foreign_wire(obj)
    metadata = obj.get("metadata") if isinstance(obj, dict) else obj.metadata
    if isinstance(metadata, dict):
        return ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
    return ObjectKey(getattr(metadata, "namespace", None) or "", getattr(metadata, "name", None) or "")


def named_key(thing: Any) -> ObjectKey | None:
    """The key that something stands for: a Request, an ObjectKey, an object of any form or library; None: none."""
    if isinstance(thing, type | str):
        return None
    name: object = ""
    if "metadata" in thing if isinstance(thing, dict) else getattr(thing, "metadata", None) is not None:
        namespace, name = key_of(thing)
    if not name:
        name, namespace = getattr(thing, "name", None), getattr(thing, "namespace", None) or ""
    return ObjectKey(namespace, name) if name and isinstance(name, str) and isinstance(namespace, str) else None


def meta_of(obj: Any) -> dict[str, Any]:
    """The metadata of an object in wire form. For an Unstructured it is the object's own dict (or a detached
    empty one), for every other form a copy."""
    if is_foreign(obj):
        return wire_of(obj).get("metadata") or {}
    if isinstance(obj, dict):
        return obj.get("metadata") or {}
    if isinstance(obj, CustomResource):
        return codec_of(ObjectMeta).dump(obj.metadata)
    metadata: dict[str, Any] = adapter_of(type(obj)).encode(obj).get("metadata") or {}
    return metadata


def identity_of(obj: Any) -> dict[str, Any]:
    """`uid` and `resourceVersion` of an object, as in its metadata; "" where it has none."""
    metadata = getattr(obj, "metadata", None)
    if type(metadata) is ObjectMeta:  # pydantic's isinstance() of the object itself takes longer than all of this
        return {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    metadata = meta_of(obj)
    return {name: metadata.get(name) or "" for name in ("uid", "resourceVersion")}


def wire_of(obj: Any) -> dict[str, Any]:
    """The wire form of an object in any form. It may share parts with an Unstructured."""
    return adapter_like(obj).encode(obj) if is_foreign(obj) or not isinstance(obj, dict) else dict(obj)
