"""References to other objects, and the resource parts of a container, as CRDs often embed them."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from kopylite.objects.apimodel import ApiModel
from kopylite.objects.condition import Condition
from kopylite.objects.marks import Mark, int_or_string, list_map
from kopylite.objects.quantity import Quantity

_ATOMIC = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

IntOrString = Annotated[int | str, int_or_string]
"""A number or a text, such as a port (80 or "http") or an amount (3 or "25%")."""

Int32 = Annotated[int, Mark({"format": "int32"})]
"""A whole number of 32 bits."""

Conditions = Annotated[list[Condition], list_map("type")]
"""`status.conditions`: one entry a type, merged by type in server-side apply."""


class LocalObjectReference(ApiModel, defer_build=True):
    """An object in the same namespace; its kind is fixed by the field."""

    model_config = _ATOMIC

    name: str = ""


class ObjectReference(ApiModel, defer_build=True):
    """An object anywhere."""

    model_config = _ATOMIC

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class TypedLocalObjectReference(ApiModel, defer_build=True):
    """An object of any kind in the same namespace."""

    model_config = _ATOMIC

    api_group: str | None = None
    kind: str
    name: str


class KeySelector(ApiModel, defer_build=True):
    """A key of a Secret or ConfigMap in the same namespace."""

    model_config = _ATOMIC

    name: str = ""
    key: str
    optional: bool | None = None


class ResourceRequirements(ApiModel, defer_build=True):
    """What a container asks for (`requests`) and may use at most (`limits`)."""

    limits: dict[str, Quantity] = Field(default_factory=dict)
    requests: dict[str, Quantity] = Field(default_factory=dict)


class Toleration(ApiModel, defer_build=True):
    """A taint that pods may ignore."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None
