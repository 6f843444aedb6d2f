from __future__ import annotations

import runpy
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from kopylite.client.fields import Field, fields_of
from kopylite.objects import CustomResource, Kind, builtin_kinds, list_map
from samples.bucket.operator import Bucket

REPOSITORY = Path(__file__).parent.parent.parent.parent
DEPLOYMENT = Kind("apps/v1", "Deployment")


def at(kind: Kind | type[Any], path: str) -> Field:
    field = fields_of(kind, kind if isinstance(kind, Kind) else kind.declaration.as_kind)
    for step in path.split("."):
        field = field.each if step == "*" else field.child(step)
    return field


CONTAINER = "spec.template.spec.containers.*"


def test_the_table_is_what_the_embedded_servers_data_says() -> None:
    made = runpy.run_path(str(REPOSITORY / "scripts" / "extract_fields.py"))
    assert made["TARGET"].read_text() == made["text"](), "run scripts/extract_fields.py"


def test_every_built_in_kind_is_in_the_table() -> None:
    for kind in builtin_kinds():
        assert fields_of(kind, kind).child("metadata").child("ownerReferences").keys == ("uid",), kind


def test_lists_have_their_keys() -> None:
    assert at(DEPLOYMENT, "spec.template.spec.containers").keys == ("name",)
    ports = at(DEPLOYMENT, f"{CONTAINER}.ports")
    assert ports.key_of({"containerPort": 80}) == ports.key_of({"containerPort": 80, "protocol": "TCP"})
    assert ports.key_of({"name": "x"}) is None
    assert at(DEPLOYMENT, "metadata.finalizers").keys == ()
    assert at(DEPLOYMENT, f"{CONTAINER}.args").keys is None
    assert at(DEPLOYMENT, "status.conditions").keys == ("type",)
    for kind in (Bucket, Kind("example.com/v1", "Whatever")):
        assert at(kind, "status.conditions").keys == ("type",)
        assert at(kind, "metadata.finalizers").keys == ()


class Part(BaseModel):
    name: str
    size: int = 3


class ThingSpec(BaseModel):
    parts: Annotated[list[Part], list_map("name")] = []
    plain: list[Part] = []


class Thing(CustomResource[ThingSpec, None], group="fields.example.com", version="v1"):
    pass


def test_a_classes_schema_is_known() -> None:
    assert at(Thing, "spec.parts").keys == ("name",)
    assert at(Thing, "spec.plain").keys is None
    assert at(Thing, "spec.parts.*.size").is_default(3, {})
    assert not at(Thing, "spec.parts.*.size").same(None, 0), "custom resources keep zero values"


@pytest.mark.parametrize(
    ("path", "stored", "desired"),
    [
        (f"{CONTAINER}.resources.limits.cpu", "1", "1000m"),
        (f"{CONTAINER}.resources.limits.cpu", "500m", 0.5),
        ("spec.template.spec.volumes.*.emptyDir.sizeLimit", "1Gi", "1024Mi"),
        (f"{CONTAINER}.env.*.valueFrom.resourceFieldRef.divisor", "1m", "0.001"),
        ("spec.paused", None, False),
        ("spec.template.spec.priorityClassName", None, ""),
        (f"{CONTAINER}.env.*.value", None, ""),
        ("spec.minReadySeconds", None, 0),
        (f"{CONTAINER}.ports.*.protocol", "TCP", ""),
        ("metadata.creationTimestamp", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00.5+01:00"),
    ],
)
def test_what_the_server_takes_for_the_same(path: str, stored: Any, desired: Any) -> None:
    assert at(DEPLOYMENT, path).same(stored, desired)


@pytest.mark.parametrize(
    ("path", "stored", "desired"),
    [
        ("spec.replicas", None, 0),
        ("spec.replicas", 1, 0),
        ("spec.replicas", 1, True),
        ("spec.paused", True, False),
        ("spec.template.spec.automountServiceAccountToken", None, False),
        ("spec.template.spec.terminationGracePeriodSeconds", 30, 0),
        (f"{CONTAINER}.image", "1", "1000m"),
        (f"{CONTAINER}.resources.limits.cpu", "1", "1001m"),
        (f"{CONTAINER}.resources.limits.cpu", "1", "no quantity"),
        ("spec.template.spec.volumes.*.emptyDir.sizeLimit", None, "0"),
    ],
)
def test_what_the_server_takes_for_another(path: str, stored: Any, desired: Any) -> None:
    assert not at(DEPLOYMENT, path).same(stored, desired)
