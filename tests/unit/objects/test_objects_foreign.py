"""Classes in the manner of the pydantic libraries for built-in kinds, without installing one."""

from __future__ import annotations

import json
from typing import ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kopylite.errors import ObjectError, RegistrationError
from kopylite.objects import Kind, Unstructured, adapter_of, key_of, kind_of, meta_of, set_controller_reference

CONFIG = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Reference(BaseModel):
    model_config = CONFIG

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(BaseModel):
    model_config = CONFIG

    name: str | None = None
    namespace: str | None = None
    owner_references: list[Reference] | None = None


class Deployment(BaseModel):
    """Like kubex: constants for apiVersion and kind."""

    model_config = CONFIG

    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["Deployment"] = Field(default="Deployment", alias="kind")
    metadata: Metadata


class V1ConfigMap(BaseModel):
    """Like the official client: named after the kind, unknown fields forbidden."""

    model_config = ConfigDict(extra="forbid")
    openapi_types: ClassVar[dict[str, str]] = {}

    metadata: Metadata | None = None
    data: dict[str, str] | None = None


class Required(BaseModel):
    apiVersion: Literal["example.com/v1"]
    kind: Literal["Thing"]


def test_constants_say_the_kind() -> None:
    assert kind_of(Deployment) == Kind("apps/v1", "Deployment", "deployments", True)
    assert kind_of(Required) == Kind("example.com/v1", "Thing")


def test_the_name_says_the_kind() -> None:
    assert kind_of(V1ConfigMap) == Kind("v1", "ConfigMap", "configmaps", True)


def test_unknown_fields_are_kept_even_where_the_library_forbids_them() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a": "b"},
        "later": {"x": 1},
    }
    adapter = adapter_of(V1ConfigMap)
    assert adapter.encode(adapter.decode(json.dumps(document).encode())) == document


def test_objects_have_key_and_metadata_and_take_owners() -> None:
    deployment = adapter_of(Deployment).decode(b'{"metadata":{"name":"d","namespace":"ns","uid":"1"}}')
    owner = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "c", "namespace": "ns", "uid": "u"})
    set_controller_reference(owner, deployment)
    assert key_of(deployment) == ("ns", "d")
    assert meta_of(deployment) == {
        "name": "d",
        "namespace": "ns",
        "uid": "1",
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "c",
                "uid": "u",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


class Bare(BaseModel):
    apiVersion: str = "v1"
    kind: str = "Pod"
    metadata: dict[str, str] = {}


def test_a_class_without_a_place_for_owners_says_so() -> None:
    owner = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "c", "uid": "u"})
    with pytest.raises(ObjectError, match="no metadata for them"):
        set_controller_reference(owner, Bare(metadata={"name": "p"}))


def test_a_class_without_constants_is_refused() -> None:
    class Anything(BaseModel):
        apiVersion: str
        kind: Literal["A", "B"]

    with pytest.raises(RegistrationError, match="have no fixed values"):
        kind_of(Anything)
