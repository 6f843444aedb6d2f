"""A CRD from its creation to its end, and the scale of its objects."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/widgets.example.com"


def widget(name: str, **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": {"size": 1}}


async def test_a_crd_is_served_with_the_answer_to_its_creation(widgets: Any) -> None:
    conditions = {c["type"]: c["status"] for c in (await widgets.get(CRD))["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    await widgets.create(WIDGETS, widget("w"))


async def test_the_server_owns_the_status_that_it_writes(widgets: Any) -> None:
    managers = {(m["manager"], m.get("subresource")) for m in (await widgets.get(CRD))["metadata"]["managedFields"]}
    assert ("kube-apiserver", "status") in managers


async def test_a_new_schema_holds_from_the_answer_on(widgets: Any) -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/minimum"
    change = [{"op": "replace", "path": path, "value": 5}]
    status, _ = await widgets.call("PATCH", CRD, change, content_type="application/json-patch+json")
    assert status == 200
    status, answer = await widgets.call("POST", WIDGETS, widget("w"))
    assert status == 422
    assert "should be greater than or equal to 5" in answer["message"]


async def test_a_deleted_crd_takes_its_objects_with_it(widgets: Any) -> None:
    await widgets.create(WIDGETS, widget("w"))
    status, answer = await widgets.call("DELETE", CRD)
    assert status == 200
    assert answer["metadata"]["deletionTimestamp"]
    assert (await widgets.respond("GET", WIDGETS)).status == 404
    assert (await widgets.call("GET", CRD))[0] == 404


async def test_finalizers_of_objects_hold_the_crd_while_nothing_new_may_come(widgets: Any) -> None:
    await widgets.create(WIDGETS, widget("w", finalizers=["a.b/c"]))
    await widgets.call("DELETE", CRD)
    held = await widgets.get(CRD)
    terminating = next(c for c in held["status"]["conditions"] if c["type"] == "Terminating")
    assert terminating["reason"] == "InstanceDeletionInProgress"
    status, answer = await widgets.call("POST", WIDGETS, widget("new"))
    assert status == 403
    assert "create not allowed while custom resource definition is terminating" in answer["message"]
    status, _ = await widgets.call("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
    assert status == 200
    assert (await widgets.call("GET", CRD))[0] == 404


async def test_a_crd_in_the_data_is_served_from_the_start(widgets: Any) -> None:
    await widgets.create(WIDGETS, widget("w"))
    async with ApiServer(ApiServerOptions(listen=False), store=widgets.world.store.fork()) as twin:
        assert (await twin.handle(HttpRequest.of("GET", f"{WIDGETS}/w"))).status == 200


async def test_scale_shows_and_sets_the_declared_paths(widgets: Any) -> None:
    made = await widgets.create(WIDGETS, widget("w"))
    scale = await widgets.get(f"{WIDGETS}/w/scale")
    assert (scale["apiVersion"], scale["kind"], scale["spec"]) == ("autoscaling/v1", "Scale", {"replicas": 1})
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    scale["spec"]["replicas"] = 4
    status, answer = await widgets.call("PUT", f"{WIDGETS}/w/scale", scale)
    assert (status, answer["spec"]["replicas"]) == (200, 4)
    status, answer = await widgets.call("PUT", f"{WIDGETS}/w/scale", scale)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert (await widgets.get(f"{WIDGETS}/w"))["spec"]["size"] == 4


@pytest.mark.parametrize("replicas", [-1, 0])
async def test_a_scale_that_breaks_the_schema_is_refused(widgets: Any, replicas: int) -> None:
    await widgets.create(WIDGETS, widget("w"))
    status, _ = await widgets.call("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": replicas}})
    assert status == 422


async def test_the_scale_of_a_deployment_has_its_selector_as_text(api: Any) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    await api.create(path, {"metadata": {"name": "d"}, "spec": spec})
    assert (await api.get(f"{path}/d/scale"))["status"]["selector"] == "a=b"
    status, answer = await api.call("PATCH", f"{path}/d/scale", {"spec": {"replicas": -1}})
    assert status == 422
    assert answer["details"]["kind"] == "Scale"


def two_versions(newer: dict[str, Any]) -> dict[str, Any]:
    """A CRD whose older version has `spec.size` alone, and whose newer one, the stored one, has more."""
    size = {"type": "integer"}

    def version(name: str, **properties: Any) -> dict[str, Any]:
        spec = {"type": "object", "properties": {"size": size, **properties}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == "v2", "schema": schema}

    versions = [version("v1"), version("v2", **newer)]
    names = {"kind": "Widget", "plural": "widgets"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


async def applied(api: Any, version: str, spec: dict[str, Any], manager: str = "me") -> tuple[int, dict[str, Any]]:
    path = f"/apis/example.com/{version}/namespaces/default/widgets/a?fieldManager={manager}"
    body = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}
    answer: tuple[int, dict[str, Any]] = await api.call(
        "PATCH", path, body, content_type="application/apply-patch+yaml"
    )
    return answer


async def test_nothing_is_applied_that_a_version_in_which_a_manager_wrote_does_not_declare(api: Any) -> None:
    await api.create(CRDS, two_versions({"color": {"type": "string"}}))
    assert (await applied(api, "v1", {"size": 1}))[0] == 201
    text = ".spec.color: field not declared in schema"
    status, answer = await applied(api, "v2", {"size": 1, "color": "red"})
    step = "failed to prune fields: failed to convert merged object to last applied version"
    assert (status, answer["message"]) == (500, f"{step}: {text}")
    status, answer = await applied(api, "v2", {"color": "red"}, "other")
    assert (status, answer["message"]) == (500, f"failed to convert new object: {text}")
    # Other writes are carried out, and no books are kept of them; from then on every apply fails.
    path = "/apis/example.com/v2/namespaces/default/widgets/a"
    status, answer = await api.call("PATCH", path, {"spec": {"color": "red"}})
    assert (status, answer["spec"]) == (200, {"size": 1, "color": "red"})
    assert [e["manager"] for e in answer["metadata"]["managedFields"]] == ["me"]
    status, answer = await applied(api, "v2", {"size": 1})
    assert (status, answer["message"]) == (500, text)
    # The way out.
    await api.call("PATCH", path, {"metadata": {"managedFields": [{}]}})
    assert (await applied(api, "v2", {"size": 1, "color": "red"}))[0] == 200


async def test_nothing_is_applied_while_a_manager_wrote_in_a_version_that_is_gone(api: Any) -> None:
    crd = two_versions({})
    await api.create(CRDS, crd)
    assert (await applied(api, "v1", {"size": 1}))[0] == 201
    await api.call("PATCH", CRD, {"spec": {"versions": crd["spec"]["versions"][1:]}})
    status, answer = await applied(api, "v2", {"size": 2}, "other")
    text = "request to convert CR to an invalid group/version: example.com/v1"
    assert (status, answer["message"]) == (500, text)


async def test_what_became_one_leaf_belongs_to_those_who_owned_parts_of_it(api: Any) -> None:
    labels: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
    parts: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    crd = two_versions({"labels": labels, "parts": parts})
    crd["spec"]["versions"] = crd["spec"]["versions"][1:]
    await api.create(CRDS, crd)
    await applied(api, "v2", {"labels": {"a": "1"}, "parts": ["x"]}, "one")
    labels["x-kubernetes-map-type"] = parts["x-kubernetes-list-type"] = "atomic"
    await api.call("PATCH", CRD, {"spec": {"versions": crd["spec"]["versions"]}})
    status, answer = await applied(api, "v2", {"labels": {"b": "2"}, "parts": ["y"]}, "two")
    assert (status, [c["field"] for c in answer["details"]["causes"]]) == (409, [".spec.labels", ".spec.parts"])


async def test_nothing_is_applied_to_what_no_longer_fits_its_schema(api: Any) -> None:
    crd = two_versions({"color": {"type": "string"}})
    crd["spec"]["versions"] = crd["spec"]["versions"][1:]
    await api.create(CRDS, crd)
    await applied(api, "v2", {"color": "red"})
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] = {
        "type": "integer"
    }
    await api.call("PATCH", CRD, {"spec": {"versions": crd["spec"]["versions"]}})
    status, answer = await applied(api, "v2", {"color": 1})
    what = "failed to create typed live object (default/a; example.com/v2, Kind=Widget)"
    text = f"{what}: .spec.color: expected numeric (int or float), got string"
    assert (status, answer["message"]) == (500, text)
