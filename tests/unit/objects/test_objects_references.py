from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from kopylite.objects import Quantity, to_wire
from kopylite.objects.references import (
    Conditions,
    Int32,
    IntOrString,
    KeySelector,
    LocalObjectReference,
    ObjectReference,
    ResourceRequirements,
    Toleration,
    TypedLocalObjectReference,
)


@pytest.mark.parametrize(
    ("model", "wire"),
    [
        (LocalObjectReference, {"name": "a"}),
        (ObjectReference, {"apiVersion": "v1", "kind": "Pod", "namespace": "n", "name": "a", "uid": "u",
                           "resourceVersion": "7", "fieldPath": "spec.containers{web}"}),
        (TypedLocalObjectReference, {"apiGroup": "apps", "kind": "Deployment", "name": "a"}),
        (KeySelector, {"name": "s", "key": "password", "optional": True}),
        (ResourceRequirements, {"limits": {"cpu": "500m"}, "requests": {"memory": "1Gi"}}),
        (Toleration, {"key": "k", "operator": "Exists", "value": "v", "effect": "NoExecute", "tolerationSeconds": 300}),
    ],
)  # fmt: skip
def test_each_field_is_read_and_written_under_the_name_of_the_api(model: type[BaseModel], wire: dict[str, Any]) -> None:
    assert to_wire(model.model_validate(wire)) == wire


@pytest.mark.parametrize("model", [LocalObjectReference, ObjectReference, TypedLocalObjectReference, KeySelector])
def test_a_reference_is_replaced_as_a_whole(model: type[BaseModel]) -> None:
    assert model.model_json_schema()["x-kubernetes-map-type"] == "atomic"


@pytest.mark.parametrize(("model", "wire"), [(TypedLocalObjectReference, {"name": "a"}), (KeySelector, {"name": "s"})])
def test_what_a_reference_is_nothing_without_is_required(model: type[BaseModel], wire: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="Field required"):
        model.model_validate(wire)


def test_amounts_are_quantities() -> None:
    needs = ResourceRequirements.model_validate({"requests": {"cpu": "0.5"}})
    assert needs.requests["cpu"] == Quantity("500m")
    assert needs.limits == {}


def test_the_marks_of_fields_are_in_their_schemas() -> None:
    class Spec(BaseModel):
        port: IntOrString
        number: Int32
        conditions: Conditions = []

    fields = Spec.model_json_schema()["properties"]
    assert fields["port"]["x-kubernetes-int-or-string"] is True
    assert fields["number"] == {"format": "int32", "title": "Number", "type": "integer"}
    assert fields["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert Spec(port="http", number=1).port == "http"
    assert Spec(port=80, number=1).port == 80
