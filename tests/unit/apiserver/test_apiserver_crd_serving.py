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
