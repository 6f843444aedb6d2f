"""Objects of other libraries, known by what they say about themselves. No library is imported here.

A pydantic class is a kind when its fields `apiVersion` (or `api_version`) and `kind` have fixed values, or when it is
named like the official client's models (`V1Deployment`). Objects of kr8s, lightkube and dynamic clients are no
instances of a kind's class: each shows its wire form by itself (`raw`, `to_dict()`), names what it is in there or by
its class, and takes the server's answer the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from kopylite.boundary import say
from kopylite.errors import DecodeError, ObjectError, RegistrationError
from kopylite.objects.builtin_kinds import complete
from kopylite.objects.kinds import Kind
from kopylite.objects.models import is_client_model, kind_of_model, with_micro_times
from kopylite.objects.unstructured import Unstructured


def kind_of_foreign(cls: type[BaseModel]) -> Kind:
    """The Kind that a pydantic class declares.

    Raises:
        RegistrationError: it declares none.
    """
    api_version, kind = _constant(cls, "api_version", "apiVersion"), _constant(cls, "kind")
    if api_version and kind:
        return complete(Kind(api_version, kind))
    if hasattr(cls, "openapi_types"):
        return kind_of_model(cls)
    raise RegistrationError(
        f"{cls.__module__}.{cls.__qualname__} is no kind: its fields apiVersion and kind have no fixed values"
    )


def set_foreign_owner_references(obj: BaseModel, entries: list[Any]) -> None:
    """Replace the owner references of an instance by these, which are in wire form.

    Raises:
        ObjectError: its metadata has no such field.
    """
    metadata = getattr(obj, "metadata", None)
    for name in ("owner_references", "ownerReferences"):
        if isinstance(metadata, BaseModel) and name in type(metadata).model_fields:
            annotation: Any = type(metadata).model_fields[name].annotation
            field: TypeAdapter[Any] = TypeAdapter(annotation)
            setattr(metadata, name, field.validate_python(entries))
            return
    raise ObjectError(f"cannot write owner references into a {type(obj).__qualname__}: it has no metadata for them")


def is_foreign(obj: Any) -> bool:
    """Whether an object is to be taken by the wire form that it shows."""
    return _is_foreign(type(obj))  # type: ignore[arg-type]  # mypy takes a class for something without a hash


@lru_cache(maxsize=1024)  # each read and write asks more than once, and pydantic's isinstance() is no cheap one
def _is_foreign(cls: type) -> bool:
    if cls is dict or issubclass(cls, (Unstructured, BaseModel, type)) or is_client_model(cls):
        return False
    return isinstance(getattr(cls, "raw", None), property) or callable(getattr(cls, "to_dict", None))


def foreign_wire(obj: Any) -> dict[str, Any]:
    """The wire form of a foreign object, with apiVersion and kind; it may share parts with the object.

    Raises:
        RegistrationError: it shows none, or does not say what it is.
    """
    wire = _shown(obj)
    api_version, kind = wire.get("apiVersion"), wire.get("kind")
    if not (api_version and kind):
        api_version, kind = declared(type(obj)) or (api_version, kind)
    if not (isinstance(api_version, str) and isinstance(kind, str) and api_version and kind):
        raise RegistrationError(
            f"an object of {_name(obj)} says no apiVersion and kind: set both in it, or give its dict with both, "
            'Unstructured(apiVersion="...", kind="...", ...)'
        )
    if not isinstance(wire.get("metadata"), Mapping):
        raise RegistrationError(f"an object of {_name(obj)}, {kind}, has no metadata: it needs a name")
    return with_micro_times(_plain(wire | {"apiVersion": api_version, "kind": kind}, obj))


def rebuilt(obj: Any, document: dict[str, Any]) -> Any:
    """Another object of a foreign object's class that holds `document`; an Unstructured where the class has no way.

    What holds a client besides (as kr8s' objects do) keeps it.
    """
    cls = type(obj)
    raw = getattr(cls, "raw", None)
    make = getattr(cls, "from_dict", None)
    try:
        if isinstance(raw, property) and raw.fset is not None:
            made = copy.copy(obj)
            made.raw = document
            return made
        if callable(make):
            return make(document)
    except Exception as error:
        raise DecodeError(f"{_name(obj)} does not take what the server has answered: {say(error)}") from error
    return Unstructured(document)


def set_owners_of_foreign(obj: Any, entries: list[Any]) -> None:
    """Replace the owner references in a foreign object by these, which are in wire form.

    Raises:
        ObjectError: its metadata can be reached by no way that is known.
    """
    shown = obj if isinstance(obj, dict) else getattr(obj, "raw", None)
    metadata = shown.get("metadata") if isinstance(shown, Mapping) else getattr(obj, "metadata", None)
    if isinstance(metadata, MutableMapping):
        metadata["ownerReferences"] = entries
        return
    make = getattr(type(metadata), "from_dict", None)
    if not callable(make):
        raise ObjectError(f"cannot write owner references into a {_name(obj)}: it has no metadata for them")
    metadata = make({**_shown(metadata), "ownerReferences": entries})
    if isinstance(obj, dict):
        obj["metadata"] = metadata
    else:
        obj.metadata = metadata


def _shown(obj: Any) -> dict[str, Any]:
    try:
        shown = getattr(obj, "raw", None)
        if not isinstance(shown, Mapping):
            shown = obj.to_dict()
    except Exception as error:
        raise RegistrationError(f"an object of {_name(obj)} does not show its dict: {say(error)}") from error
    if not isinstance(shown, Mapping):
        raise RegistrationError(f"an object of {_name(obj)} shows a {type(shown).__name__} for its dict")
    return dict(shown)


def _plain(value: Any, obj: Any) -> Any:
    """Maps and lists as Python's own: a library's may answer for keys that they do not have."""
    try:
        return _as_json(value)
    except RecursionError:
        raise RegistrationError(f"an object of {_name(obj)} is nested too deep, or contains itself") from None


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _as_json(part) for name, part in value.items()}
    return [_as_json(part) for part in value] if isinstance(value, list | tuple) else value


def declared(cls: type) -> tuple[str, str] | None:
    """apiVersion and kind that a class of kr8s' or lightkube's stands for; None: it says none."""
    resource = getattr(getattr(cls, "_api_info", None), "resource", cls)  # lightkube's, or the class itself
    group, version, kind = (getattr(resource, name, None) for name in ("group", "version", "kind"))
    if not (isinstance(version, str) and isinstance(kind, str) and version and kind):
        return None
    return f"{group}/{version}" if isinstance(group, str) and group else version, kind


def _name(obj: Any) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def _constant(cls: type[BaseModel], *names: str) -> str | None:
    for name in names:
        field = cls.model_fields.get(name)
        if field is None:
            continue
        if isinstance(field.default, str):
            return field.default
        if get_origin(field.annotation) is Literal:
            values = get_args(field.annotation)
            return str(values[0]) if len(values) == 1 else None
    return None
