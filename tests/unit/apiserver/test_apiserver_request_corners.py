"""Requests as other people's software sends them: empty is absent, odd methods, watches from anywhere."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from kopylite.apiserver.request.request import HttpRequest
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
    response = await api.server.handle(HttpRequest.of("GET", f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true{query}"))
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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", 'invalid duration "x"'),
        ("5", 'missing unit in duration "5"'),
        ("1e3s", 'unknown unit "e" in duration "1e3s"'),
        (".s", 'invalid duration ".s"'),
        ("-", 'invalid duration "-"'),
        ("9999999h", 'invalid duration "9999999h"'),
        ("9" * 5000, f'missing unit in duration "{"9" * 5000}"'),
    ],
)
@pytest.mark.parametrize("path", ["/version", CONFIG_MAPS, f"{CONFIG_MAPS}/absent", "/apis/nowhere"])
async def test_a_timeout_that_is_no_duration_is_refused_first(api: Api, path: str, text: str, problem: str) -> None:
    status, answer = await api.call("GET", f"{path}?timeout={text}")
    assert (status, answer["message"]) == (400, f"invalid timeout specified in the request URL - time: {problem}")


@pytest.mark.parametrize("text", ["", "0", "-1s", "1h2m3.5s", "5s&timeout=x"])
async def test_a_timeout_that_is_a_duration_is_taken(api: Api, text: str) -> None:
    assert (await api.call("GET", f"{CONFIG_MAPS}?timeout={text}"))[0] == 200


async def test_what_comes_in_is_looked_at_before_what_shall_go_out(api: Api) -> None:
    await api.config_map("a")
    for path in (f"{CONFIG_MAPS}/a", "/apis/apps/v1/namespaces/default/deployments/absent/scale"):
        status, _ = await api.call("PATCH", path, {}, content_type="x/y", accept="text/html")
        assert status == 415
    status, _ = await api.call("GET", "/apis/apps/v1/namespaces/default/deployments/absent/scale", accept="text/html")
    assert status == 406
    for path in (REVIEWS, "/api/v1/namespaces/default/bindings", "/api/v1/namespaces/default/pods/a/eviction"):
        assert (await api.call("POST", path, {"spec": 1, "metadata": 1}, accept="text/html"))[0] == 406


async def test_a_scale_of_another_namespace_is_refused_before_its_kind_is_looked_for(api: Api) -> None:
    scale = {"metadata": {"name": "a", "namespace": "other"}, "spec": {"replicas": 1}}
    status, answer = await api.call("PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", scale)
    assert (status, answer["message"][:13]) == (400, "the namespace")


# ruff: noqa: E501 - texts of the real server
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("path", "api_version", "kind", "reason"),
    [
        (REVIEWS, "v1", "Pod", "converting (v1.Pod) to (authorization.SelfSubjectAccessReview): unknown conversion"),
        (REVIEWS, "authorization.k8s.io/v1", "Foo", 'no kind "Foo" is registered for version "authorization.k8s.io/v1"'),
        ("/api/v1/namespaces/default/pods/a/eviction", "v1", "Eviction", 'no kind "Eviction" is registered for version "v1"'),
        ("/api/v1/namespaces/default/pods/a/binding", "v1", "Pod", "converting (v1.Pod) to (core.Binding)"),
        ("/api/v1/namespaces/default/serviceaccounts/a/token", "", "Foo", 'no kind "Foo" is registered for version "authen'),
    ],
)  # fmt: skip
async def test_another_kind_than_the_paths_own_is_refused(
    api: Api, path: str, api_version: str, kind: str, reason: str
) -> None:
    body = {"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}}
    status, answer = await api.call("POST", path, body)
    assert status == 400
    assert f"{kind} in version" in answer["message"]
    assert reason in answer["message"]


async def test_bindings_bind_the_pod_that_they_name(api: Api) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    await api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await api.create("/api/v1/namespaces/default/pods", pod)
    path = "/api/v1/namespaces/default/bindings"
    for body, code, text in (
        ({"target": {"name": "n"}}, 400, "Name parameter required."),
        ({"metadata": {"name": "a"}}, 400, "target.name: Required value"),
        ({"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "n"}}, 400, 'target.kind: Unsupported value: "Pod"'),
        ({"metadata": {"name": "b"}, "target": {"name": "n"}}, 404, 'pods "b" not found'),
    ):  # fmt: skip
        status, answer = await api.call("POST", path, body)
        assert status == code
        assert text in answer["message"]
    assert (await api.call("POST", path, {"metadata": {"name": "a"}, "target": {"name": "n"}}))[0] == 201
    assert (await api.get("/api/v1/namespaces/default/pods/a"))["spec"]["nodeName"] == "n"


@pytest.mark.parametrize("below", ["exec", "attach", "portforward", "proxy"])
async def test_a_connection_is_never_dry(api: Api, below: str) -> None:
    status, answer = await api.call("POST", f"/api/v1/namespaces/default/pods/a/{below}?dryRun=")
    assert (status, answer["message"]) == (400, "dryRun is not supported")


@pytest.mark.parametrize("kind", ["a" * 5000, "../../../../../etc/passwd", "../kinds/resources", "a\x00b", "é"])
async def test_a_kind_is_never_a_path(api: Api, kind: str) -> None:
    for path, api_version in (
        (REVIEWS, "v1"),
        (CONFIG_MAPS, "apps/v1"),
        (CONFIG_MAPS, f"{kind}/v1"),
        (CONFIG_MAPS, kind),
    ):
        status, _ = await api.call("POST", path, {"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}})
        assert status == 400


@pytest.mark.parametrize("start", ["../../c", "a//b", "//a", "a/", "a/../b", "./a", ".", ".."])
async def test_a_continue_token_is_no_way_out_of_its_collection(api: Api, start: str) -> None:
    token = base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).encode())
    status, answer = await api.call("GET", f"{CONFIG_MAPS}?limit=2&continue={token.decode().rstrip('=')}")
    said = f"invalid continue token: continue key is not valid: {start}"
    assert (status, answer["message"]) == (400, said)


@pytest.mark.parametrize(("token", "found"), [("W10", "array"), ("MQ", "number"), ("ImEi", "string")])
async def test_a_continue_token_that_is_no_object_is_refused(api: Api, token: str, found: str) -> None:
    status, answer = await api.call("GET", f"{CONFIG_MAPS}?continue={token}")
    assert (status, f"cannot unmarshal {found} into" in answer["message"]) == (400, True)


@pytest.mark.parametrize(("selector", "count"), [("%3D", 2), ("!%3D", 2), ("%3D,metadata.name%3Da", 1)])
async def test_a_field_selector_of_nothing_selects_everything(api: Api, selector: str, count: int) -> None:
    for name in "ab":
        await api.config_map(name)
    assert len((await api.get(f"{CONFIG_MAPS}?fieldSelector={selector}"))["items"]) == count
    assert (await api.call("GET", f"{CONFIG_MAPS}?fieldSelector=%3Dx"))[0] == 400
