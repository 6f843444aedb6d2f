"""Objects of other libraries, known by what they say about themselves. No library is imported here.

A pydantic class is a kind when its fields `apiVersion` (or `api_version`) and `kind` have fixed values, or when it is
named like the official client's models (`V1Deployment`). Other objects (of kr8s, of lightkube) can name an object, and
own one; to be written, their dict has to be given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from kopylite.errors import ObjectError, RegistrationError
from kopylite.objects.builtin_kinds import complete
from kopylite.objects.kinds import Kind
from kopylite.objects.models import kind_of_model
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


def foreign_wire(obj: Any) -> dict[str, Any] | None:
    """The wire form that another library's object shows as its `raw` or by `to_dict()`; None: it shows none."""
    if isinstance(obj, Unstructured | BaseModel | type):
        return None
    raw = getattr(obj, "raw", None)
    if not isinstance(raw, Mapping):
        show = getattr(obj, "to_dict", None)
        raw = show() if callable(show) else None
    if not isinstance(raw, Mapping) or not isinstance(raw.get("metadata"), Mapping):
        return None
    return dict(raw) if raw.get("apiVersion") and raw.get("kind") else None


def way_out(cls: type) -> str:
    """How to give an object of a class that is no kind; "" if nobody knows."""
    if cls.__module__.startswith("kubernetes.client."):
        return "; give its dict: Unstructured(ApiClient().sanitize_for_serialization(obj))"
    if hasattr(cls, "raw"):
        return "; give its dict: Unstructured(obj.raw)"
    return "; give its dict: Unstructured(obj.to_dict())" if hasattr(cls, "to_dict") else ""


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
