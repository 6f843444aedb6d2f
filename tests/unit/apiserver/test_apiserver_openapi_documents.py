"""OpenAPI v3 documents: what kubectl needs of them, in the form that a real kube-apiserver 1.37 gives it."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.builtin.strategies import builtin_resources
from kopylite.apiserver.crd import definitions as crds
from kopylite.apiserver.openapi.documents import OpenApi
from kopylite.apiserver.resources.registry import Registry
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.schema.publish import published
from kopylite.clock import SystemClock
from tests.unit.apiserver.conftest import finished

META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def widget_crd(description: str = "A widget.") -> dict[str, Any]:
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                    },
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": description,
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {
                                        "color": {"type": "string", "default": "red"},
                                        "port": {"x-kubernetes-int-or-string": True},
                                    },
                                }
                            },
                        }
                    },
                }
            ],
        },
    }


def registry(crd: dict[str, Any] | None = None) -> Registry:
    found = Registry()
    for resource in builtin_resources(StrategyContext(SystemClock(), lambda storage: [])):
        found.add(resource)
    for resource in crds.crd_resources(crds.establish(crd or widget_crd(), [], "now")):
        found.add(resource)
    return found


@pytest.fixture(scope="module")
def openapi() -> OpenApi:
    return OpenApi(registry(), 37)


def operation(openapi: OpenApi, key: str, path: str, method: str) -> dict[str, Any]:
    document = finished(openapi.document(key))
    found: dict[str, Any] = document["paths"][path][method]
    return found


def test_the_index_names_each_document_with_its_hash(openapi: OpenApi) -> None:
    paths = openapi.index()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= paths.keys()
    address = paths["apis/example.com/v1"]["serverRelativeURL"]
    assert address == f"/openapi/v3/apis/example.com/v1?hash={openapi.hash('apis/example.com/v1')}"


@pytest.mark.parametrize("key", ["apis/nope/v1", "api/v2", "apis/apps/v2", "nope", "apis/v1", ""])
def test_what_is_not_served_has_no_document(openapi: OpenApi, key: str) -> None:
    assert not openapi.served(key)


def test_a_hash_changes_with_the_schema_and_not_otherwise() -> None:
    one, same, other = (OpenApi(registry(widget_crd(text)), 37) for text in ("a", "a", "b"))
    assert one.hash("apis/example.com/v1") == same.hash("apis/example.com/v1")
    assert one.hash("apis/example.com/v1") != other.hash("apis/example.com/v1")
    assert one.hash("apis/apps/v1") == other.hash("apis/apps/v1")


def test_a_document_is_made_anew_when_its_resources_change() -> None:
    served = registry()
    openapi = OpenApi(served, 37)
    before = finished(openapi.document("apis/example.com/v1"))
    assert finished(openapi.document("apis/example.com/v1")) is before
    for resource in crds.crd_resources(crds.establish(widget_crd("other"), [], "now")):
        served.add(resource)
    after = finished(openapi.document("apis/example.com/v1"))
    assert after is not None
    assert after["components"]["schemas"]["com.example.v1.Widget"]["description"] == "other"


def test_the_patch_types_tell_kubectl_how_to_apply(openapi: OpenApi) -> None:
    path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    custom = operation(openapi, "apis/example.com/v1", path, "patch")
    assert "application/strategic-merge-patch+json" not in custom["requestBody"]["content"]
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    builtin = operation(openapi, "apis/apps/v1", path, "patch")
    assert "application/strategic-merge-patch+json" in builtin["requestBody"]["content"]


def test_a_patch_names_its_kind_and_parameters(openapi: OpenApi) -> None:
    path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    patch = operation(openapi, "apis/example.com/v1", path, "patch")
    gvk = {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert patch["x-kubernetes-group-version-kind"] == gvk
    assert [p["name"] for p in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert patch["operationId"] == "patchExampleComV1NamespacedWidget"


def test_a_custom_schema_is_published_whole(openapi: OpenApi) -> None:
    document = finished(openapi.document("apis/example.com/v1"))
    schemas = document["components"]["schemas"]
    widget = schemas["com.example.v1.Widget"]
    assert widget["description"] == "A widget."
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    assert widget["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]
    assert widget["properties"]["metadata"] == {"allOf": [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]}
    spec = widget["properties"]["spec"]["properties"]
    assert spec["color"] == {"type": "string", "default": "red"}
    assert spec["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    items = schemas["com.example.v1.WidgetList"]["properties"]["items"]
    assert items == {"type": "array", "items": {"$ref": "#/components/schemas/com.example.v1.Widget"}}


@pytest.mark.parametrize("key", ["apis/example.com/v1", "apis/apps/v1", "api/v1"])
def test_every_reference_leads_somewhere(openapi: OpenApi, key: str) -> None:
    document = finished(openapi.document(key))
    missing = set(references(document)) - document["components"]["schemas"].keys()
    assert missing == set()


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"].removeprefix("#/components/schemas/")] if isinstance(value.get("$ref"), str) else []
        return own + [name for inner in value.values() for name in references(inner)]
    return [name for inner in value for name in references(inner)] if isinstance(value, list) else []


def test_built_in_schemas_carry_their_merge_keys_and_nothing_of_our_own(openapi: OpenApi) -> None:
    document = finished(openapi.document("apis/apps/v1"))
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-type"] == "map"
    assert "x-kopylite" not in str(document)


def test_scale_answers_with_its_own_kind(openapi: OpenApi) -> None:
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
    get = operation(openapi, "apis/apps/v1", path, "get")
    assert get["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    schema = get["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"}


def test_namespaced_kinds_can_be_listed_everywhere(openapi: OpenApi) -> None:
    get = operation(openapi, "api/v1", "/api/v1/pods", "get")
    assert get["operationId"] == "listCoreV1PodForAllNamespaces"
    document = finished(openapi.document("api/v1"))
    assert "/api/v1/namespaces/{name}" in document["paths"]
    assert "/api/v1/namespaces/{namespace}/pods/{name}/exec" not in document["paths"]


def test_descriptions_can_be_added() -> None:
    openapi = OpenApi(registry(), 37, lambda name, schema: {**schema, "description": f"about {name}"})
    document = finished(openapi.document("apis/apps/v1"))
    deployment = document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    assert deployment["description"] == "about io.k8s.api.apps.v1.Deployment"


def test_custom_kinds_describe_their_type_and_metadata_like_all_others() -> None:
    def describe(name: str, schema: dict[str, Any]) -> dict[str, Any]:
        if not name.endswith(".ConfigMap"):
            return schema
        properties = {field: {**inner, "description": f"the {field}"} for field, inner in schema["properties"].items()}
        return {**schema, "properties": properties}

    document = finished(OpenApi(registry(), 37, describe).document("apis/example.com/v1"))
    properties = document["components"]["schemas"]["com.example.v1.Widget"]["properties"]
    assert properties["kind"] == {"type": "string", "description": "the kind"}
    assert properties["metadata"]["description"] == "the metadata"
    assert "description" not in properties["spec"]


class TestPublishing:
    def test_embedded_resources_get_their_type_and_metadata(self) -> None:
        schema = {"properties": {"e": {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["kind"]}}}
        embedded = published(schema)["properties"]["e"]
        assert set(embedded["properties"]) == {"apiVersion", "kind", "metadata"}
        assert embedded["required"] == ["kind", "apiVersion"]

    def test_int_or_string_is_spelled_out_once(self) -> None:
        both = [{"type": "integer"}, {"type": "string"}]
        flag = {"x-kubernetes-int-or-string": True}
        properties = {
            "a": flag,
            "b": {**flag, "anyOf": both},
            "c": {**flag, "allOf": [{"pattern": "x"}]},
            "d": {**flag, "allOf": [{"anyOf": both}, {"pattern": "x"}]},
        }
        result = published({"properties": properties})["properties"]
        assert result["a"]["anyOf"] == result["b"]["anyOf"] == both
        assert result["c"]["allOf"] == result["d"]["allOf"] == [{"anyOf": both}, {"pattern": "x"}]

    def test_the_schema_of_the_crd_stays_as_it_is(self) -> None:
        schema: dict[str, Any] = {"properties": {"a": {"x-kubernetes-int-or-string": True}}}
        published(schema)
        assert schema == {"properties": {"a": {"x-kubernetes-int-or-string": True}}}
