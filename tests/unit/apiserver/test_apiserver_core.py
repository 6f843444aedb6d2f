"""Paths, methods, forms of answers, discovery, health: what is asked before an object is looked at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from kopylite.apiserver.request import protobuf
from kopylite.apiserver.request.request import Response, User
from kopylite.apiserver.world import Disconnect

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PARTIAL = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/namespaces/default/foos", 404),
        ("GET", "/apis/apps/v2", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/configmaps/a", 404),
        ("GET", f"{CONFIG_MAPS}/a/status", 404),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("PUT", CONFIG_MAPS, 405),
        ("PATCH", CONFIG_MAPS, 405),
        ("POST", f"{CONFIG_MAPS}/a", 405),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405),
    ],
)
async def test_a_wrong_path_or_method_is_a_status_with_empty_details(
    api: Any, method: str, path: str, code: int
) -> None:
    status, answer = await api.call(method, path, {})
    assert (status, answer["code"], answer["details"]) == (code, code, {})
    assert answer["reason"] == {404: "NotFound", 405: "MethodNotAllowed"}[code]


@pytest.mark.parametrize("path", ["/foo", "/apis/unknown.io", "/apis/unknown.io/v1/things", "/healthz/nope"])
async def test_a_path_of_no_handler_is_a_plain_404(api: Any, path: str) -> None:
    response = await api.respond("GET", path)
    assert (response.status, response.body, response.content_type) == (
        404,
        b"404 page not found\n",
        "text/plain; charset=utf-8",
    )


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "ConfigMap"),
        ("*/*", "ConfigMap"),
        ("application/vnd.unknown,application/json", "ConfigMap"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", "ConfigMap"),
        (f"application/vnd.unknown;{PARTIAL},application/json;{PARTIAL}", "PartialObjectMetadata"),
    ],
)
async def test_the_first_form_that_can_be_made_is_sent(api: Any, accept: str, kind: str) -> None:
    await api.config_map("a")
    assert (await api.get(f"{CONFIG_MAPS}/a", accept=accept))["kind"] == kind


async def test_yaml_goes_in_and_out(api: Any) -> None:
    body = b"metadata:\n  name: a\ndata:\n  x: '1'\n  when: '2020-01-01'\n"
    response = await api.respond("POST", CONFIG_MAPS, body, content_type="application/yaml", accept="application/yaml")
    assert (response.status, response.content_type) == (201, "application/yaml")
    assert yaml.safe_load(response.body)["data"] == {"x": "1", "when": "2020-01-01"}


@pytest.mark.parametrize("accept", ["text/html", "application/*", "application/json;as=Table;v=v9;g=meta.k8s.io"])
async def test_a_form_that_cannot_be_made_is_not_acceptable(api: Any, accept: str) -> None:
    status, answer = await api.call("GET", CONFIG_MAPS, accept=accept)
    assert (status, answer["reason"]) == (406, "NotAcceptable")


async def test_a_body_in_an_unknown_form_is_unsupported(api: Any) -> None:
    status, answer = await api.call("POST", CONFIG_MAPS, b"x", content_type="text/plain")
    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"xx", "json parse error: invalid character 'x' looking for beginning of value (7878)"),
        (b"", "json parse error: unexpected end of JSON input (<empty>)"),
        (b'{"a":', 'json parse error: unexpected end of JSON input ({"a":)'),
        (b"[]", "json: cannot unmarshal array into Go value"),
    ],
)
async def test_a_body_that_does_not_parse_is_told_in_the_words_of_go(api: Any, body: bytes, text: str) -> None:
    status, answer = await api.call("POST", CONFIG_MAPS, body)
    assert status == 400
    assert text in answer["message"]


async def test_pretty_is_indented(api: Any) -> None:
    plain = await api.respond("GET", "/api/v1/namespaces/default")
    for headers, query in (({"user-agent": "curl/8"}, ""), ({}, "?pretty=true")):
        pretty = await api.respond("GET", f"/api/v1/namespaces/default{query}", **headers)
        assert b'\n  "kind"' in pretty.body
        assert msgspec.json.decode(pretty.body) == msgspec.json.decode(plain.body)


async def test_discovery_lists_groups_versions_and_resources(widgets: Any) -> None:
    groups = [group["name"] for group in (await widgets.get("/apis"))["groups"]]
    assert {"apps", "batch", "example.com"} <= set(groups)
    assert (await widgets.get("/apis/example.com"))["preferredVersion"]["version"] == "v1"
    listed = await widgets.get("/apis/example.com/v1")
    assert [r["name"] for r in listed["resources"]] == ["widgets", "widgets/status", "widgets/scale"]
    assert listed["resources"][2]["group"] == "autoscaling"


async def test_aggregated_discovery_repeats_its_parameters_and_knows_what_it_told(widgets: Any) -> None:
    response = await widgets.respond("GET", "/apis", accept=AGGREGATED)
    assert response.content_type == AGGREGATED
    document = msgspec.json.decode(response.body)
    (version,) = next(g for g in document["items"] if g["metadata"]["name"] == "example.com")["versions"]
    (resource,) = version["resources"]
    assert resource["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert [s["subresource"] for s in resource["subresources"]] == ["status", "scale"]
    again = await widgets.respond("GET", "/apis", accept=AGGREGATED, if_none_match=response.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    await widgets.call("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    changed = await widgets.respond("GET", "/apis", accept=AGGREGATED, if_none_match=response.headers["ETag"])
    assert changed.status == 200


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery_has_the_same_content_in_each_form(widgets: Any, path: str) -> None:
    answers = {
        form: await widgets.respond("GET", path, accept=AGGREGATED.replace("application/json", form))
        for form in ("application/json", "application/yaml", protobuf.PROTOBUF)
    }
    for form, answer in answers.items():
        assert answer.content_type == AGGREGATED.replace("application/json", form)
        assert answer.headers["ETag"] == answers["application/json"].headers["ETag"]
    json_form = msgspec.json.decode(answers["application/json"].body)
    assert yaml.safe_load(answers["application/yaml"].body) == json_form
    decoded = protobuf.decode(answers[protobuf.PROTOBUF].body)
    names = [group.get("metadata", {}).get("name", "") for group in json_form["items"]]
    assert [group.get("metadata", {}).get("name", "") for group in decoded["items"]] == names
    (first, *_), (same, *_) = json_form["items"][-1]["versions"], decoded["items"][-1]["versions"]
    assert [r["resource"] for r in same["resources"]] == [r["resource"] for r in first["resources"]]


@pytest.mark.parametrize("change", [("v=v2", "v=v2beta1"), ("/json", "/xml"), ("as=APIGroupDiscoveryList", "as=Table")])
async def test_aggregated_discovery_has_no_other_forms(api: Any, change: tuple[str, str]) -> None:
    assert (await api.respond("GET", "/apis", accept=AGGREGATED.replace(*change))).status == 406


async def test_the_version_is_the_emulated_one(api: Any) -> None:
    api.world.minor = 34
    info = await api.get("/version")
    assert (info["major"], info["minor"], info["gitVersion"]) == ("1", "34", "v1.34.0")


async def test_health_endpoints_say_ok_and_readyz_fails_while_stopping(api: Any) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
        assert (await api.respond("GET", path)).body == b"ok"
    verbose = await api.respond("GET", "/readyz?verbose")
    assert b"[+]ping ok" in verbose.body
    await api.server.__aexit__(None, None, None)
    assert (await api.respond("GET", "/readyz")).status == 500
    assert (await api.respond("GET", "/livez")).status == 200


async def test_hooks_answer_instead_or_change_the_answer_or_cut_the_line(api: Any) -> None:
    async def busy(request: Any) -> Response | None:
        return Response(429, b"busy", "text/plain") if request.path == "/busy" else None

    async def lost(request: Any, response: Response) -> Response:
        if request.path == "/lost":
            raise Disconnect
        return response

    api.world.hooks.before.append(busy)
    api.world.hooks.after.append(lost)
    assert (await api.respond("GET", "/busy")).body == b"busy"
    with pytest.raises(Disconnect):
        await api.respond("GET", "/lost")


async def test_the_log_keeps_what_was_asked(api: Any) -> None:
    api.core.log.clear()
    api.core.log.bodies = True
    await api.config_map("a")
    await api.call("GET", f"{CONFIG_MAPS}/none", user=User("alice"))
    created, missed = list(api.core.log)
    assert (created.target.verb, created.target.resource, created.status) == ("create", "configmaps", 201)
    assert b'"name":"a"' in created.body.replace(b" ", b"")
    assert b"resourceVersion" in created.answer
    assert (missed.user, missed.target.name, missed.status) == ("alice", "none", 404)


async def test_a_table_shows_what_kubectl_shows(api: Any) -> None:
    await api.config_map("a", data={"x": "1", "y": "2"})
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = await api.get(CONFIG_MAPS, accept=accept)
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 2]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    table = await api.get(f"{CONFIG_MAPS}?includeObject=Object", accept=accept)
    assert table["rows"][0]["object"]["data"] == {"x": "1", "y": "2"}
    table = await api.get(f"{CONFIG_MAPS}?includeObject=None", accept=accept)
    assert table["rows"][0].get("object") is None
