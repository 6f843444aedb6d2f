from __future__ import annotations

import json
import sys
import warnings
from types import ModuleType
from typing import Any

import pytest

from kopylite.codegen.models import models_of
from kopylite.codegen.names import class_name, python_name, singular
from kopylite.crds import SchemaWarning, crd_of
from kopylite.crds.changes import compare_crds
from kopylite.errors import UsageError
from kopylite.objects import adapter_of
from kopylite.objects.quantity import PATTERN, USUAL_PATTERN
from tests.zoo import ZOO, Cluster, Full


def crd(spec: dict[str, Any], **version: Any) -> dict[str, Any]:
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties, "required": ["spec"]}},
                    **version,
                }
            ],
        },
    }


INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def load(source: str) -> dict[str, Any]:
    """Run the source as a module; pydantic looks for it among the loaded ones."""
    module = ModuleType(f"generated_{len(sys.modules)}")
    sys.modules[module.__name__] = module
    exec(compile(source, "generated.py", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


EXAMPLE = {
    "description": "What is wanted.",
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "description": "The image."},
        "clusterIP": {"type": "string", "maxLength": 15},
        "replicas": {"type": "integer", "format": "int32", "default": 1, "minimum": 0},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"x-kubernetes-int-or-string": True}},
            },
        },
        "mode": {"type": "string", "enum": ["On", "Off"]},
        "started": {"type": "string", "format": "date-time"},
        "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def test_the_source_reads_like_written_by_hand() -> None:
    assert (
        models_of(crd(EXAMPLE))
        == '''\
"""Thing of example.com/v1, from its CustomResourceDefinition."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from kopylite.objects import ApiModel, CustomResource, Int32, IntOrString, list_map
from pydantic import Field


class Port(ApiModel):
    name: str
    port: IntOrString | None = None


class ThingSpec(ApiModel):
    """What is wanted."""

    image: str = Field(description='The image.')
    cluster_ip: Annotated[str, Field(max_length=15)] | None = Field(default=None, alias='clusterIP')
    replicas: Annotated[Int32, Field(ge=0)] = 1
    ports: Annotated[list[Port], list_map('name')] = Field(default_factory=list)
    mode: Literal['On', 'Off'] | None = None
    started: datetime | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class Thing(
    CustomResource[ThingSpec, None],
    group='example.com',
    version='v1',
    foreign=True,
):
    pass
'''
    )


def test_descriptions_can_be_left_out() -> None:
    source = models_of(crd(EXAMPLE), descriptions=False)
    assert "The image." not in source
    assert "What is wanted." not in source


def test_the_classes_read_and_write_objects() -> None:
    thing = load(models_of(crd(EXAMPLE)))["Thing"]
    document = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": {"image": "x", "clusterIP": "1.2.3.4", "ports": [{"name": "http", "port": "web"}], "other": 1},
    }
    adapter = adapter_of(thing)
    found = adapter.decode(json.dumps(document).encode())
    assert found.spec.cluster_ip == "1.2.3.4"
    assert adapter.encode(found) == document


@pytest.mark.parametrize("kind", [*ZOO, Full, Cluster], ids=lambda kind: str(kind.__name__))
@pytest.mark.filterwarnings("ignore::kopylite.crds.schema.SchemaWarning")
def test_the_way_to_source_and_back_keeps_every_kind_of_the_zoo(kind: Any) -> None:
    original = crd_of(kind)
    again = crd_of(load(models_of(original))[kind.__name__])
    assert [str(change) for change in compare_crds(original, again) if change.dangerous] == []
    assert again["spec"]["names"] == original["spec"]["names"]


def test_the_stored_version_is_taken_unless_another_is_named() -> None:
    two = crd({"type": "object", "properties": {"a": {"type": "string"}}})
    second = {**two["spec"]["versions"][0], "name": "v2", "storage": False}
    two["spec"]["versions"].append(second)
    assert "version='v1'" in models_of(two)
    assert "version='v2'" in models_of(two, "v2")
    with pytest.raises(UsageError, match="has no version v3; it has v1, v2"):
        models_of(two, "v3")


@pytest.mark.parametrize(
    "document",
    [{}, {"kind": "Pod"}, {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1"}],
)
def test_what_is_no_crd_is_refused(document: Any) -> None:
    with pytest.raises(UsageError, match="not an apiextensions"):
        models_of(document)


def test_a_crd_without_a_schema_is_refused() -> None:
    bare = crd({})
    del bare["spec"]["versions"][0]["schema"]
    with pytest.raises(UsageError, match="has no schema for v1"):
        models_of(bare)


def test_equal_schemas_share_a_class_and_different_ones_get_longer_names() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}}
    other = {"type": "object", "properties": {"y": {"type": "string"}}}
    spec = {
        "type": "object",
        "properties": {
            "part": inner,
            "left": {"type": "object", "properties": {"part": inner}},
            "right": {"type": "object", "properties": {"part": other}},
        },
    }
    source = models_of(crd(spec))
    assert source.count("class Part(") == 1
    assert source.count("class RightPart(") == 1


def test_awkward_texts_stay_what_they_are() -> None:
    text = 'a """quoted""" \\d text\n\nwith "quotes"'
    spec = {"type": "object", "description": text, "properties": {"a": {"type": "string", "description": text * 9}}}
    thing = load(models_of(crd(spec)))["Thing"]
    schema = crd_of(thing)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert schema["description"] == text
    assert schema["properties"]["a"]["description"] == text * 9


@pytest.mark.parametrize(
    ("wire", "name", "alias"),
    [
        ("replicas", "replicas", None),
        ("readyReplicas", "ready_replicas", None),
        ("clusterIP", "cluster_ip", "clusterIP"),
        ("clusterIPs", "cluster_ips", "clusterIPs"),
        ("podCIDRs", "pod_cidrs", "podCIDRs"),
        ("HTTPRoute", "http_route", "HTTPRoute"),
        ("from", "from_", None),
        ("schema", "schema_", None),
        ("copy", "copy_", None),
        ("list", "list_", None),
        ("model_x", "model_x_", "model_x"),
        ("$ref", "ref", "$ref"),
        ("a-b", "a_b", "a-b"),
        ("3d", "field_3d", "3d"),
        ("-", "field", "-"),
        ("x509SVID", "x509_svid", "x509SVID"),
    ],
)
def test_field_names_follow_python(wire: str, name: str, alias: str | None) -> None:
    assert python_name(wire) == (name, alias)


def test_class_names_follow_the_path() -> None:
    assert class_name(("Thing", "spec", "pod-template")) == "ThingSpecPodTemplate"
    assert class_name(("none",)) == "None_"
    names = {
        "ports": "port",
        "policies": "policy",
        "classes": "class",
        "boxes": "box",
        "status": "status",
        "data": "data",
    }
    assert {plural: singular(plural) for plural in names} == names


def test_what_kubectl_prints_and_sub_resources_and_quantities_come_back_as_they_were() -> None:
    spec = {
        "type": "object",
        "properties": {
            "usual": {"x-kubernetes-int-or-string": True, "pattern": USUAL_PATTERN, "anyOf": INT_OR_STRING},
            "exact": {"x-kubernetes-int-or-string": True, "pattern": PATTERN},
            "digits": {"type": "string", "pattern": r"^\d+[\w.]*$"},
        },
    }
    columns = [
        {"name": "Size", "type": "string", "jsonPath": ".spec.usual", "description": "How large.", "priority": 1}
    ]
    old = crd(spec, subresources={"status": {}}, additionalPrinterColumns=columns, served=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        new = crd_of(load(models_of(old))["Thing"])
    version = new["spec"]["versions"][0]
    assert [str(change) for change in compare_crds(old, new) if change.dangerous] == []
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"] == columns
    assert version["served"] is False


def test_several_crds_give_one_module_whose_classes_are_told_apart() -> None:
    first, second = crd(EXAMPLE), crd({"type": "object", "properties": {"ports": {"type": "string"}}})
    second["spec"]["names"] = {"kind": "Port", "plural": "ports"}
    module = load(models_of([first, second]))
    assert module["Thing"].declaration.kind == "Thing"
    assert module["Port"].declaration.kind == "Port"
    assert [crd_of(module[name])["spec"]["names"]["plural"] for name in ("Thing", "Port")] == ["things", "ports"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda crd: crd["spec"].update(group="A.b"), "spec.group must be a DNS name"),
        (lambda crd: crd["spec"]["names"].update(kind="a b"), "spec.names.kind must be a DNS label"),
        (lambda crd: crd["spec"]["versions"][0].update(name="V1"), r"spec.versions\[0\].name must be a DNS label"),
        (lambda crd: crd["spec"].update(versions=[]), "spec.versions must be a list that is not empty"),
        (lambda crd: crd["spec"].update(scope="Galaxy"), "spec.scope must be one of Namespaced, Cluster"),
    ],
)
def test_names_that_no_server_would_accept_are_refused(change: Any, message: str) -> None:
    document = crd(EXAMPLE)
    change(document)
    with pytest.raises(UsageError, match=message):
        models_of(document)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("postgresql", "postgresql"), ("list", "List"), ("None", "None_"), ("My-Kind", "MyKind"), ("Any", "Any2")],
)
def test_a_kind_is_called_as_it_is_where_python_allows_it(kind: str, name: str) -> None:
    document = crd(EXAMPLE)
    document["spec"]["names"] = {"kind": kind, "plural": "things"}
    cls = load(models_of(document))[name]
    assert crd_of(cls)["spec"]["names"]["kind"] == kind


def test_a_limit_that_no_whole_number_can_have_is_left_to_the_server() -> None:
    odd = {"type": "integer", "minimum": 0.5, "maximum": 1e300, "multipleOf": 0.5}
    plain = {"type": "integer", "minimum": 1.0, "exclusiveMinimum": True, "format": "int64"}
    spec = {"type": "object", "properties": {"odd": odd, "plain": plain}}
    source = models_of(crd(spec))
    assert "odd: Annotated[int, Mark({'minimum': 0.5, 'maximum': 1e+300, 'multipleOf': 0.5})]" in source
    assert "plain: Annotated[int, Field(gt=1.0)]" in source
    properties = crd_of(load(source)["Thing"])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties["spec"]["properties"]["odd"].items() >= odd.items()


@pytest.mark.parametrize(
    "names",
    [("fooBar", "foo_bar"), ("foo_bar", "fooBar"), ("FooBar", "foo_bar", "foo-bar"), ("",), ("", "-", "field", "$")],
)
def test_a_field_is_not_called_as_another_one_is_on_the_wire(names: tuple[str, ...]) -> None:
    spec = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    adapter = adapter_of(load(models_of(crd(spec)))["Thing"])
    document = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    document["spec"] = {name: f"of {name}" for name in names}
    thing = adapter.decode(json.dumps(document).encode())
    assert adapter.encode(thing) == document
    assert adapter.encode(type(thing)(metadata={"name": "a"}, spec=thing.spec)) == document


def test_a_default_may_hold_null_in_a_list_or_map() -> None:
    part = {"type": "object", "properties": {"x": {"type": "string"}}, "nullable": True}
    spec = {
        "type": "object",
        "properties": {
            "parts": {"type": "array", "items": part, "default": [None, {"x": "y"}]},
            "named": {"type": "object", "additionalProperties": part, "default": {"a": None}},
        },
    }
    thing = load(models_of(crd(spec)))["Thing"](metadata={"name": "a"}, spec={})
    assert thing.spec.parts[0] is None
    assert thing.spec.parts[1].x == "y"
    assert thing.spec.named == {"a": None}
