"""Authentication, RBAC, reviews and service account tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kopylite.apiserver.access.authentication import Authenticator, certificate_user, impersonated
from kopylite.apiserver.access.authorization import AllowAll
from kopylite.apiserver.request.request import ADMIN, Request, User
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.errors import Forbidden, Unauthorized
from tests.unit.apiserver.conftest import Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ALICE = User("alice", ("system:authenticated",))


@pytest.fixture
async def guarded() -> AsyncIterator[Api]:
    async with ApiServer(ApiServerOptions(listen=False, rbac=True)) as server:
        yield Api(server)


async def grant(api: Api, rules: list[dict[str, Any]], *, namespace: str = "", subject: Any = None) -> None:
    kind = "Role" if namespace else "ClusterRole"
    where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    plural = f"{kind.lower()}s"
    await api.create(f"{where}/{plural}", {"metadata": {"name": "r"}, "rules": rules})
    subject = subject or {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": kind, "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    await api.create(
        f"{where}/{kind.lower()}bindings", {"metadata": {"name": "b"}, "roleRef": ref, "subjects": [subject]}
    )


def rule(*verbs: str, resources: tuple[str, ...] = ("configmaps",), **more: Any) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [""], "resources": list(resources), **more}


async def test_what_no_binding_grants_is_forbidden_in_the_servers_words(guarded: Api) -> None:
    status, answer = await guarded.call("GET", f"{CONFIG_MAPS}/a", user=ALICE)
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'configmaps "a" is forbidden: User "alice" cannot get resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    assert (await guarded.call("GET", f"{CONFIG_MAPS}/a", user=ADMIN))[0] == 404


async def test_a_cluster_role_grants_everywhere_and_a_role_in_its_namespace(guarded: Api) -> None:
    await grant(guarded, [rule("get", "list")], namespace="default")
    assert (await guarded.call("GET", CONFIG_MAPS, user=ALICE))[0] == 200
    assert (await guarded.call("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, user=ALICE))[0] == 403
    assert (await guarded.call("GET", "/api/v1/configmaps", user=ALICE))[0] == 403
    await grant(guarded, [rule("list")])
    assert (await guarded.call("GET", "/api/v1/configmaps", user=ALICE))[0] == 200


async def test_resource_names_and_sub_resources_are_told_apart(guarded: Api) -> None:
    await grant(guarded, [rule("get", resourceNames=["a"]), rule("update", resources=("namespaces/status",))])
    assert (await guarded.call("GET", f"{CONFIG_MAPS}/a", user=ALICE))[0] == 404
    assert (await guarded.call("GET", f"{CONFIG_MAPS}/b", user=ALICE))[0] == 403
    namespace = await guarded.get("/api/v1/namespaces/default")
    assert (await guarded.call("PUT", "/api/v1/namespaces/default/status", namespace, user=ALICE))[0] == 200
    assert (await guarded.call("PUT", "/api/v1/namespaces/default", namespace, user=ALICE))[0] == 403


async def test_a_list_of_one_name_needs_only_the_right_to_that_name(guarded: Api) -> None:
    await grant(guarded, [rule("list", resourceNames=["a"])])
    assert (await guarded.call("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Da", user=ALICE))[0] == 200
    assert (await guarded.call("GET", CONFIG_MAPS, user=ALICE))[0] == 403


async def test_everybody_known_may_look_around_and_ask_about_himself(guarded: Api) -> None:
    for path in ("/api", "/apis", "/apis/apps/v1", "/version", "/openapi/v3"):
        assert (await guarded.respond("GET", path, user=ALICE)).status == 200
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await guarded.create(path, review, user=ALICE))["status"] == {"allowed": False}
    await grant(guarded, [rule("get")])
    assert (await guarded.create(path, review, user=ALICE))["status"]["allowed"] is True
    assert (await guarded.respond("GET", "/api", user=User())).status == 403
    assert (await guarded.respond("GET", "/healthz", user=User())).status == 200


async def test_a_service_account_token_acts_for_its_account_until_it_ends(guarded: Api) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await guarded.create(accounts, {"metadata": {"name": "robot"}})
    request = await guarded.create(f"{accounts}/robot/token", {"spec": {"expirationSeconds": 600}})
    token = request["status"]["token"]
    user = guarded.server.assembly.token_user(token)
    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"
    await grant(guarded, [rule("get")], subject={"kind": "ServiceAccount", "name": "robot", "namespace": "default"})
    assert (await guarded.call("GET", f"{CONFIG_MAPS}/a", user=user))[0] == 404
    for forged in ("", "a.b.c", token[:-2] + "xx"):
        assert guarded.server.assembly.token_user(forged) is None
    await guarded.call("DELETE", f"{accounts}/robot")
    assert guarded.server.assembly.token_user(token) is None


async def test_a_short_lived_token_is_refused(api: Any) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": "robot"}})
    status, answer = await api.call("POST", f"{accounts}/robot/token", {"spec": {"expirationSeconds": 1}})
    assert status == 422
    assert "may not specify a duration less than 10 minutes" in answer["message"]


def test_credentials_are_weighed_token_first() -> None:
    authenticator = Authenticator({"good": User("bob", ("team",))})
    assert authenticator.authenticate({"authorization": "Bearer good"}, None).groups == ("team", "system:authenticated")
    for headers in ({}, {"authorization": "Bearer bad"}, {"authorization": "Basic good"}):
        with pytest.raises(Unauthorized):
            authenticator.authenticate(headers, None)
    assert Authenticator({}, anonymous=True).authenticate({}, None).name == "system:anonymous"
    subject = {"subject": ((("organizationName", "a"),), (("commonName", "carol"),), (("organizationName", "b"),))}
    assert certificate_user(subject).groups == ("a", "b", "system:authenticated")


def test_impersonation_needs_the_right_and_takes_the_groups() -> None:
    class Nobody:
        def allows(self, user: User, target: Any) -> bool:
            return False

    request = Request.of("GET", "/x", headers={"Impersonate-User": "alice", "Impersonate-Extra-scope": "s"})
    user = impersonated(request, ["g"], AllowAll())
    assert (user.name, user.groups, user.extra) == ("alice", ("g", "system:authenticated"), {"scope": ("s",)})
    with pytest.raises(Forbidden, match="cannot impersonate resource"):
        impersonated(request, ["g"], Nobody())
    assert impersonated(Request.of("GET", "/x"), [], Nobody()) is ADMIN
