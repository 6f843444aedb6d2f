"""Authentication, RBAC, reviews and service account tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kopylite.apiserver.access.authentication import (
    API_AUDIENCE,
    Authenticator,
    TokenIdentity,
    TokenRefused,
    certificate_user,
)
from kopylite.apiserver.access.authorization import AllowAll, Decision, SubjectRules
from kopylite.apiserver.access.impersonation import Impersonator
from kopylite.apiserver.request.request import ADMIN, Target, User
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.errors import Forbidden, Unauthorized
from kopylite.testing import VirtualClock
from tests.unit.apiserver.conftest import Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
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


def identify(api: Api, token: str, *audiences: str) -> TokenIdentity:
    return api.server.assembly.authenticator.identify(token, audiences)


async def issue(api: Api, spec: dict[str, Any] | None = None) -> str:
    request = await api.create(f"{ACCOUNTS}/robot/token", {"spec": spec or {}})
    return str(request["status"]["token"])


async def test_a_service_account_token_acts_for_its_account_until_it_ends(guarded: Api) -> None:
    await guarded.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    token = await issue(guarded, {"expirationSeconds": 600})
    user = identify(guarded, token).user
    assert user.name == "system:serviceaccount:default:robot"
    await grant(guarded, [rule("get")], subject={"kind": "ServiceAccount", "name": "robot", "namespace": "default"})
    assert (await guarded.call("GET", f"{CONFIG_MAPS}/a", user=user))[0] == 404
    for forged in ("", "a.b.c", token[:-2] + "xx", "\udc80.\udc80", "." * 1000):
        with pytest.raises(TokenRefused, match=r"^invalid bearer token$"):
            identify(guarded, forged)
    await guarded.call("DELETE", f"{ACCOUNTS}/robot")
    with pytest.raises(TokenRefused, match='serviceaccounts "robot" not found'):
        identify(guarded, token)
    await guarded.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    with pytest.raises(TokenRefused, match="does not match claim"):
        identify(guarded, token)


async def test_a_token_ends_a_minute_after_its_time() -> None:
    clock = VirtualClock()
    async with ApiServer(ApiServerOptions(listen=False), clock=clock) as server:
        api = Api(server)
        await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        token = await issue(api, {"expirationSeconds": 600})
        clock.advance(659)
        assert identify(api, token).audiences == (API_AUDIENCE,)
        clock.advance(2)
        with pytest.raises(TokenRefused, match="has expired"):
            identify(api, token)


async def test_a_token_is_for_its_audiences_only(api: Api) -> None:
    await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    token = await issue(api, {"audiences": ["vault", "db"]})
    assert identify(api, token, "db", "other").audiences == ("db",)
    with pytest.raises(TokenRefused, match="invalid for the target audiences"):
        identify(api, token)
    assert identify(api, api.server.token).user.name == ADMIN.name
    with pytest.raises(TokenRefused):
        identify(api, api.server.token, "vault")


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
async def test_a_token_ends_with_the_object_that_it_is_bound_to(api: Api, kind: str) -> None:
    await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    where = "/api/v1/nodes" if kind == "Node" else f"/api/v1/namespaces/default/{kind.lower()}s"
    spec = {"spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "x"}, **(spec if kind == "Pod" else {})}
    await api.create(where, body)
    token = await issue(api, {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": "x"}})
    assert identify(api, token).user.name == "system:serviceaccount:default:robot"
    await api.call("DELETE", f"{where}/x?gracePeriodSeconds=0")
    with pytest.raises(TokenRefused, match="invalidated"):
        identify(api, token)
    await api.create(where, body)
    with pytest.raises(TokenRefused, match="does not match"):
        identify(api, token)


async def test_a_short_lived_token_is_refused(api: Any) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": "robot"}})
    status, answer = await api.call("POST", f"{accounts}/robot/token", {"spec": {"expirationSeconds": 1}})
    assert status == 422
    assert "may not specify a duration less than 10 minutes" in answer["message"]


def test_credentials_are_read_as_upstream_does() -> None:
    authenticator = Authenticator({"good": User("bob", ("team",))})
    assert authenticator.authenticate({"authorization": "Bearer good"}, None).groups == ("team", "system:authenticated")
    for headers in ({}, {"authorization": "Bearer bad"}, {"authorization": "Basic good"}):
        with pytest.raises(Unauthorized):
            authenticator.authenticate(headers, None)
    assert Authenticator({}, anonymous=True).authenticate({}, None).name == "system:anonymous"
    subject = {"subject": ((("organizationName", "a"),), (("commonName", "carol"),), (("organizationName", "b"),))}
    assert certificate_user(subject).groups == ("a", "b", "system:authenticated")


class Nobody:
    """Allows what it is told to: (verb, resource, name)."""

    def __init__(self, *allowed: tuple[str, str, str]) -> None:
        self._allowed = allowed

    def authorize(self, user: User, target: Target) -> Decision:
        return Decision((target.verb, target.resource, target.name) in self._allowed)

    def rules(self, user: User, namespace: str) -> SubjectRules:
        raise NotImplementedError


LIST = Target("list", "/api/v1/pods", "", "v1", "pods")


def test_impersonation_keeps_every_value_of_every_header() -> None:
    headers = [
        ("impersonate-user", "alice"),
        ("impersonate-group", "g"),
        ("impersonate-group", "h"),
        ("impersonate-uid", "u"),
        ("impersonate-extra-scope", "s"),
        ("impersonate-extra-scope", "t"),
        ("impersonate-extra-example.com%2frole", "r"),
    ]
    user = Impersonator(AllowAll(), 37).user(headers, ADMIN, LIST)
    extra = {"scope": ("s", "t"), "example.com/role": ("r",)}
    assert user == User("alice", ("g", "h", "system:authenticated"), "u", extra)


def test_impersonation_needs_a_right_to_each_thing_that_it_asks_for() -> None:
    asked = {"user": "alice", "group": "g", "uid": "u", "extra-scope": "s"}
    headers = [(f"impersonate-{key}", value) for key, value in asked.items()]
    rights = [("impersonate", *pair) for pair in (("users", "alice"), ("groups", "g"), ("uids", "u"))]
    rights.append(("impersonate", "userextras", "s"))
    assert Impersonator(Nobody(*rights), 37).user(headers, ALICE, LIST).uid == "u"
    for missing in rights:
        with pytest.raises(Forbidden):
            Impersonator(Nobody(*(right for right in rights if right != missing)), 37).user(headers, ALICE, LIST)
    assert Impersonator(Nobody(), 37).user([("accept", "x")], ADMIN, LIST) is ADMIN


def test_constrained_impersonation_is_of_one_user_for_one_verb_and_comes_with_1_36() -> None:
    rights = [("impersonate:user-info", "users", "bob"), ("impersonate-on:user-info:list", "pods", "")]
    headers = [("impersonate-user", "bob")]
    assert Impersonator(Nobody(*rights), 36).user(headers, ALICE, LIST).name == "bob"
    for minor, target in ((35, LIST), (36, Target("delete", "/api/v1/pods", "", "v1", "pods"))):
        with pytest.raises(Forbidden):
            Impersonator(Nobody(*rights), minor).user(headers, ALICE, target)


async def test_nobody_grants_more_than_he_holds(guarded: Api) -> None:
    roles = {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}
    manage = {**roles, "verbs": ["create", "update", "get"]}
    await grant(guarded, [rule("get"), manage])
    where = f"{RBAC}/namespaces/default/roles"
    role = {"metadata": {"name": "mine"}, "rules": [rule("get")]}
    assert (await guarded.call("POST", where, role, user=ALICE))[0] == 201
    status, answer = await guarded.call("PUT", f"{where}/mine", {**role, "rules": [rule("get", "list")]}, user=ALICE)
    assert status == 403
    assert answer["message"].endswith(
        'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}'
    )
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "all"}, "roleRef": ref, "subjects": []}
    assert (await guarded.call("POST", f"{RBAC}/clusterrolebindings", binding, user=ALICE))[0] == 403
    assert (await guarded.call("POST", f"{RBAC}/clusterrolebindings", binding, user=ADMIN))[0] == 201


async def test_without_rbac_nobody_is_kept_from_granting(api: Api) -> None:
    body = {"metadata": {"name": "all"}, "rules": [rule("*", resources=("*",))]}
    assert (await api.call("POST", f"{RBAC}/clusterroles", body, user=ALICE))[0] == 201


async def test_a_request_for_a_certificate_says_who_asks(api: Api) -> None:
    pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJCi0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="
    spec = {"request": pem, "signerName": "example.com/a", "usages": ["client auth"], "username": "boss"}
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    made = await api.create(path, {"metadata": {"name": "a"}, "spec": spec}, user=ALICE)
    assert (made["spec"]["username"], made["spec"]["groups"]) == ("alice", ["system:authenticated"])
