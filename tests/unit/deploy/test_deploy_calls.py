from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.client import ApiRequest
from kopylite.deploy.calls import APPLY, ApiCall, call_of, calls_of


@pytest.mark.parametrize(
    ("method", "path", "params", "expected"),
    [
        ("GET", "/api/v1/namespaces/a/pods", {}, ApiCall("", "pods", "list", "a")),
        ("GET", "/api/v1/pods", {"watch": "true"}, ApiCall("", "pods", "watch", "")),
        ("GET", "/api/v1/pods", {"watch": "false"}, ApiCall("", "pods", "list", "")),
        ("GET", "/api/v1/namespaces/a/pods/p/log", {}, ApiCall("", "pods/log", "get", "a")),
        ("GET", "/api/v1/namespaces/a", {}, ApiCall("", "namespaces", "get", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", {}, ApiCall("", "namespaces/finalize", "update", "")),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments",
            {},
            ApiCall("apps", "deployments", "deletecollection", "a"),
        ),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments/d", {}, ApiCall("apps", "deployments", "delete", "a")),
        ("PATCH", "/apis/x.io/v1/things/t/status", {}, ApiCall("x.io", "things/status", "patch", "")),
        ("POST", "/apis/x.io/v1/namespaces/a/things", {}, ApiCall("x.io", "things", "create", "a")),
        ("GET", "/version", {}, None),
        ("GET", "/apis/apps/v1", {}, None),
        ("GET", "/", {}, None),
    ],
)
def test_a_request_is_the_call_that_the_server_takes_it_for(
    method: str, path: str, params: dict[str, str], expected: ApiCall | None
) -> None:
    assert call_of(ApiRequest(method, path, params)) == expected


def test_a_namespace_that_is_the_objects_own_stands_for_any() -> None:
    request = ApiRequest("POST", "/api/v1/namespaces/a/pods")
    assert call_of(request, "a") == ApiCall("", "pods", "create", "*")
    assert call_of(request, "b") == ApiCall("", "pods", "create", "a")
    assert call_of(request, "") == ApiCall("", "pods", "create", "*")  # of an object in no namespace: it chose one
    assert call_of(ApiRequest("GET", "/api/v1/nodes/n"), "a") == ApiCall("", "nodes", "get", "")


def test_an_apply_may_create() -> None:
    request = ApiRequest("PATCH", "/api/v1/namespaces/a/pods/p", content_type=APPLY)
    assert {call.verb for call in calls_of(request)} == {"patch", "create"}
    request = ApiRequest("PATCH", "/api/v1/namespaces/a/pods/p/status", content_type=APPLY)
    assert {call.verb for call in calls_of(request)} == {"patch"}


@pytest.mark.parametrize(
    ("body", "bound"),
    [
        (b'{"roleRef": {"kind": "ClusterRole", "name": "edit"}}', [("clusterroles", "edit")]),
        (b'{"roleRef": {"kind": "Role", "name": "own"}}', [("roles", "own")]),
        (b'{"roleRef": {"kind": "Other", "name": "x"}}', []),
        (b'{"roleRef": {"kind": "Role"}}', []),
        (b'{"roleRef": null}', []),
        (b'[{"op": "remove", "path": "/subjects"}]', []),
        (b"{", []),
        (None, []),
    ],
)
def test_who_binds_a_role_needs_that_right_of_the_role(body: bytes | None, bound: list[tuple[str, str]]) -> None:
    group = "rbac.authorization.k8s.io"
    path = f"/apis/{group}/v1/namespaces/a/rolebindings"
    found = calls_of(ApiRequest("POST", path, body=body), "a")
    assert found[0] == ApiCall(group, "rolebindings", "create", "*")
    assert found[1:] == [ApiCall(group, resource, "bind", "*", name) for resource, name in bound]
    assert calls_of(ApiRequest("POST", f"/apis/{group}/v1/clusterroles", body=body)) == [
        ApiCall(group, "clusterroles", "create", "")
    ]


@given(st.text("/a%?*é", max_size=40), st.sampled_from(["GET", "PUT", "BREW"]), st.none() | st.text("ab", max_size=2))
def test_any_path_is_a_call_or_none(path: str, method: str, own: str | None) -> None:
    found = call_of(ApiRequest(method, path), own)
    assert found is None or (found.resource and found.verb)


@given(
    st.sampled_from(["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]),
    st.sampled_from(["", "ns"]),
    st.sampled_from(["", "apps"]),
)
def test_the_embedded_server_reads_a_request_the_same_way(verb: str, namespace: str, group: str) -> None:
    from kopylite.apiserver.request.request import HttpRequest, parse_target

    method = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
    path = f"/apis/{group}/v1" if group else "/api/v1"
    path += f"/namespaces/{namespace}/things" if namespace else "/things"
    path += "/x" if verb in ("get", "update", "patch", "delete") else ""
    params = {"watch": "1"} if verb == "watch" else {}
    ours = call_of(ApiRequest(method.get(verb, "GET"), path, params))
    theirs = parse_target(HttpRequest(method.get(verb, "GET"), path, {name: [value] for name, value in params.items()}))
    assert ours == ApiCall(theirs.group, theirs.resource, theirs.verb, theirs.namespace)
    assert theirs.verb == verb
