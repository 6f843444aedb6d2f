from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from kopylite.codegen.models import models_of
from kopylite.crds import crd_of, crds_of
from kopylite.errors import RegistrationError
from kopylite.objects import CustomResource
from kopylite.objects.yamlwrite import to_yaml
from tests.zoo import Cluster, Full, FullV2


class Spec(BaseModel):
    size: int = 1


def kind(version: str, **options: Any) -> Any:
    namespace = {"__module__": __name__}
    return type("Thing", (CustomResource[Spec, None],), namespace, group="example.com", version=version, **options)


def test_all_options_reach_the_crd() -> None:
    crd = crd_of(Full, FullV2)
    assert crd["metadata"] == {"name": "fulls.zoo.example.com"}
    spec = crd["spec"]
    assert (spec["group"], spec["scope"]) == ("zoo.example.com", "Namespaced")
    assert spec["names"] == {
        "kind": "Full",
        "listKind": "FullList",
        "plural": "fulls",
        "singular": "full",
        "shortNames": ["fl"],
        "categories": ["all"],
    }
    second, first = spec["versions"]
    assert [(v["name"], v["served"], v["storage"]) for v in spec["versions"]] == [
        ("v2", True, False),
        ("v1", True, True),
    ]
    assert first["deprecated"] is True
    assert first["deprecationWarning"].startswith("zoo.example.com/v1 Full is deprecated")
    assert "deprecated" not in second
    assert first["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert first["additionalPrinterColumns"] == [
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {
            "name": "Age",
            "type": "date",
            "jsonPath": ".metadata.creationTimestamp",
            "description": "since its creation",
            "priority": 1,
        },
    ]
    assert first["selectableFields"] == [{"jsonPath": ".spec.config"}]
    schema = first["schema"]["openAPIV3Schema"]
    assert schema["description"] == "Everything that a class keyword can say."
    assert schema["x-kubernetes-validations"] == [
        {"rule": "self.spec.replicas < 100", "message": "at most 99 replicas"}
    ]
    assert "required" not in schema
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert crd_of(Cluster)["spec"]["scope"] == "Cluster"


def test_a_kind_without_status_has_no_such_field_and_subresource() -> None:
    version = crd_of(kind("v1"))["spec"]["versions"][0]
    assert "status" not in version["schema"]["openAPIV3Schema"]["properties"]
    assert "subresources" not in version


def test_a_status_gets_no_defaults_from_the_server() -> None:
    status = crd_of(Full)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert status["properties"]["replicas"] == {"type": "integer", "format": "int64"}


def test_versions_come_in_the_order_of_preference() -> None:
    names = ["v1alpha1", "v2", "v1", "v1beta2", "v1beta1", "v10", "other"]
    crd = crd_of(*[kind(name, storage=name == "v1") for name in names])
    ordered = [version["name"] for version in crd["spec"]["versions"]]
    assert ordered == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "other"]


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ([{"version": "v1"}, {"version": "v2"}], r"exactly one version is stored, not 2 \(v2, v1\)"),
        ([{"version": "v1", "storage": False}], r"not 0 \(none\)"),
        ([{"version": "v1"}, {"version": "v1", "storage": False}], "two classes declare the same version"),
        (
            [{"version": "v1"}, {"version": "v2", "storage": False, "scope": "Cluster"}],
            "version v2 says scope='Cluster'",
        ),
    ],
)
def test_versions_that_do_not_fit_together_are_refused(versions: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(RegistrationError, match=problem):
        crd_of(*[kind(**options) for options in versions])


def test_each_kind_gets_one_crd() -> None:
    crds = crds_of([FullV2, Cluster, Full, Full])
    assert [crd["metadata"]["name"] for crd in crds] == ["clusters.zoo.example.com", "fulls.zoo.example.com"]


def test_a_class_that_is_no_kind_is_refused() -> None:
    with pytest.raises(RegistrationError, match="is no kind yet"):
        crd_of(CustomResource[Spec, None])


def test_the_yaml_reads_back_the_same_and_has_no_anchors() -> None:
    crds = crds_of([Full, FullV2, Cluster])
    shared = {"a": ["x"]}
    text = to_yaml([*crds, {"first": shared, "second": shared, "text": "two\nlines"}])
    assert list(yaml.safe_load_all(text))[:2] == crds
    assert "&" not in text
    assert "text: |-\n" in text


def test_annotations_and_a_status_without_its_own_subresource() -> None:
    class Odd(
        CustomResource[Spec, Spec],
        group="example.com",
        version="v1",
        annotations={"api-approved.kubernetes.io": "https://example.com/1"},
        status_subresource=False,
    ):
        pass

    crd = crd_of(Odd)
    assert crd["metadata"]["annotations"] == {"api-approved.kubernetes.io": "https://example.com/1"}
    assert "subresources" not in crd["spec"]["versions"][0]
    again = models_of(crd)
    assert "status_subresource=False," in again
    assert "annotations={'api-approved.kubernetes.io': 'https://example.com/1'}," in again
