"""Requests as other people's software sends them: empty is absent, odd methods, watches from anywhere."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kopylite.apiserver.request.request import Request
from tests.unit.apiserver.conftest import Api

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"


async def apply(
    api: Api, path: str, body: dict[str, Any], *, manager: str = "m", force: bool = False
) -> tuple[int, Any]:
    query = f"?fieldManager={manager}&force={str(force).lower()}"
    return await api.call("PATCH", path + query, body, content_type=APPLY)


def config(data: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": {"k": data}}


async def test_an_apply_with_an_empty_version_is_one_without(api: Api) -> None:
    assert (await apply(api, f"{CONFIG_MAPS}/a", config("1", resourceVersion="", uid="")))[0] == 201
    for version in ("", "0", None):
        assert (await apply(api, f"{CONFIG_MAPS}/a", config(f"v{version}", resourceVersion=version)))[0] == 200
    assert (await apply(api, f"{CONFIG_MAPS}/a", config("2", resourceVersion="1")))[0] == 409


async def test_a_conflict_about_fields_goes_before_one_about_versions(api: Api) -> None:
    await apply(api, f"{CONFIG_MAPS}/a", config("1"))
    status, answer = await apply(api, f"{CONFIG_MAPS}/a", config("2", resourceVersion="1"), manager="n")
    assert (status, answer["details"]["causes"][0]["reason"]) == (409, "FieldManagerConflict")


async def test_only_a_create_that_is_stored_minds_a_version(api: Api) -> None:
    body = {"metadata": {"name": "b", "resourceVersion": "7"}}
    status, answer = await api.call("POST", f"{CONFIG_MAPS}?dryRun=All", body)
    assert (status, answer["metadata"]["resourceVersion"]) == (201, "7")
    assert (await api.call("POST", CONFIG_MAPS, body))[0] == 500
    assert (await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "b", "resourceVersion": "0"}}))[0] == 201


async def test_a_scale_is_applied_and_owned(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    await api.create(path, {"metadata": {"name": "d"}, "spec": spec})
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    assert (await apply(api, f"{path}/d/scale", scale))[0] == 409
    status, answer = await apply(api, f"{path}/d/scale", scale, force=True)
    assert (status, answer["spec"]) == (200, {"replicas": 3})
    stored = await api.get(f"{path}/d")
    owners = {entry["manager"]: entry["fieldsV1"] for entry in stored["metadata"]["managedFields"]}
    assert owners.pop("m") == {"f:spec": {"f:replicas": {}}}
    assert all("f:replicas" not in fields["f:spec"] for fields in owners.values())


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("HEAD", CONFIG_MAPS),
        ("HEAD", f"{CONFIG_MAPS}/a"),
        ("PUT", "/api"),
        ("HEAD", "/api/v1"),
        ("POST", "/apis/apps/v1"),
    ],
)
async def test_a_method_without_a_route_is_not_allowed(api: Api, method: str, path: str) -> None:
    assert (await api.respond(method, path)).status == 405


async def test_groups_of_definitions_are_in_the_order_of_their_names(api: Api) -> None:
    for group in ("zz.example.com", "aa.example.com"):
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"plural": "things", "kind": "Thing"}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await api.create(path, {"metadata": {"name": f"things.{group}"}, "spec": spec})
    groups = [group["name"] for group in (await api.get("/apis"))["groups"]]
    assert groups[-2:] == ["aa.example.com", "zz.example.com"]


@pytest.mark.parametrize("query", ["", "&resourceVersion=0"])
async def test_a_watch_from_anywhere_says_at_once_where_the_beginning_ends(api: Api, query: str) -> None:
    response = await api.server.handle(Request.of("GET", f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true{query}"))
    assert response.stream is not None
    event = msgspec.json.decode(await anext(response.stream))
    await response.stream.aclose()
    assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize("query", ["limit=", "timeoutSeconds=", "limit=x"])
async def test_a_number_that_is_empty_is_none(api: Api, query: str) -> None:
    assert (await api.call("GET", f"{CONFIG_MAPS}?{query}"))[0] == 400


def definition(schema: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "things.example.org", **metadata}, "spec": spec}


async def test_a_definition_says_no_schema_version_and_its_finalizers_need_no_domain(api: Api) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for schema in ({"$schema": "x"}, {"properties": {"a": {"type": "string", "$schema": "x"}}}):
        status, answer = await api.call("POST", path, definition({"type": "object", **schema}))
        assert (status, answer["details"]["causes"][0]["field"]) == (422, "spec.validation.openAPIV3Schema")
    assert (await api.call("POST", path, definition({"type": "object"}, finalizers=["plain"])))[0] == 201


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "format": "ipv4"}, ["1.2.3.4", "::ffff:1.2.3.4"], ["::1", "fe80::1%1.2"]),
        ({"type": "string", "format": "cidr"}, ["fe80::/64"], ["fe80::1%eth0/64"]),
        ({"type": "integer"}, [2**63 - 1, -(2**63)], [2**63, -(2**63) - 1]),
        ({"type": "number"}, [2**63, 2**64], ["1"]),
    ],
)
async def test_values_are_what_go_takes_them_for(
    api: Api, schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.create(path, definition({"type": "object", "properties": {"a": schema}}))
    things = "/apis/example.org/v1/namespaces/default/things?dryRun=All"
    head = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}}
    for value, status in [*((v, 201) for v in good), *((v, 422) for v in bad)]:
        body = json.dumps({**head, "a": value}).encode()
        assert (await api.call("POST", things, body))[0] == status, value
