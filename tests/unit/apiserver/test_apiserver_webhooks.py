"""Admission webhooks, called by the embedded server over TLS."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from kopylite.apiserver.server import ApiServer, ApiServerOptions
from tests.unit.apiserver.conftest import CONFIG_MAPS, CRDS, WIDGETS, Api, widget_crd
from tests.webhookserver import WebhookServer, webhook_server

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps"], "operations": ["*"]}
MAP: dict[str, Any] = {"metadata": {"name": "a"}}


@pytest.fixture
async def hooks() -> AsyncIterator[WebhookServer]:
    async with webhook_server() as running:
        yield running


class Registered:
    """Registers webhooks, one configuration each, in the order of their names."""

    def __init__(self, api: Api, hooks: WebhookServer) -> None:
        self._api = api
        self._hooks = hooks
        self._count = 0

    async def __call__(self, path: str, *, mutating: bool = False, **spec: Any) -> None:
        self._count += 1
        kind = "Mutating" if mutating else "Validating"
        webhook = {
            "name": f"{path.replace('/', '-')}.example.com", "rules": [RULE], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": self._hooks.client_config(path), **spec,
        }  # fmt: skip
        body = {"metadata": {"name": f"c{self._count}"}, "webhooks": [webhook]}
        await self._api.create(f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations", body)


@pytest.fixture
def register(api: Api, hooks: WebhookServer) -> Registered:
    return Registered(api, hooks)


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("deny", 400, 'admission webhook "deny.example.com" denied the request without explanation'),
        ("deny-message", 400, 'admission webhook "deny-message.example.com" denied the request: not today'),
        ("deny-reason", 400, 'admission webhook "deny-reason.example.com" denied the request: Because'),
        ("deny-403", 403, 'admission webhook "deny-403.example.com" denied the request: no'),
        ("deny-200", 400, 'admission webhook "deny-200.example.com" denied the request: no'),
        ("http-500", 500, 'failed calling webhook "http-500.example.com": failed to call webhook: an error on the'),
        ("http-404", 500, "the server could not find the requested resource"),
        ("wrong-uid", 500, "received invalid webhook response: expected response.uid="),
        ("no-response", 500, "received invalid webhook response: webhook response was absent"),
        ("patch-label", 500, "validating webhook may not return response.patch"),
        ("bad-json", 500, "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value"),
        ("empty", 500, "0-length response with status code: 200 and content type: text/plain; charset=utf-8"),
        ("wrong-kind", 500, 'no kind "Other" is registered for version "admission.k8s.io/v1"'),
        ("wrong-version", 500, "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"),
    ],
)  # fmt: skip
async def test_a_request_is_denied(api: Api, register: Registered, path: str, code: int, message: str) -> None:
    await register(path)
    status, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert status == code
    assert message in answer["message"]


async def test_failures_can_be_ignored(api: Api, register: Registered) -> None:
    await register("http-500", failurePolicy="Ignore")
    await register("bad-json", failurePolicy="Ignore", mutating=True)
    assert (await api.call("POST", CONFIG_MAPS, MAP))[0] == 201


async def test_a_webhook_that_nobody_reaches_is_named_with_its_url(api: Api, register: Registered) -> None:
    await register("allow", clientConfig={"url": "https://127.0.0.1:1/x"})
    _, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert answer["message"] == (
        'Internal error occurred: failed calling webhook "allow.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


async def test_a_slow_webhook_has_its_time(api: Api, register: Registered) -> None:
    await register("slow", timeoutSeconds=1)
    _, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert answer["message"].endswith('/slow?timeout=1s": context deadline exceeded')


async def test_a_stranger_s_certificate_is_refused(api: Api, register: Registered, hooks: WebhookServer) -> None:
    async with webhook_server() as other:
        await register("allow", clientConfig={"url": f"{hooks.url}/allow", "caBundle": other.bundle})
        _, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert answer["message"].endswith(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )


async def test_mutations_add_up_in_the_order_of_their_configurations(api: Api, register: Registered) -> None:
    await register("patch-label", mutating=True)
    await register("patch-label-2", mutating=True)
    created = await api.create(CONFIG_MAPS, MAP)
    assert created["metadata"]["labels"] == {"hook": "was-here", "second": "too"}


async def test_a_webhook_that_wants_to_is_asked_again_after_later_changes(api: Api, register: Registered) -> None:
    await register("patch-counter", mutating=True, reinvocationPolicy="IfNeeded")
    await register("patch-data", mutating=True)
    created = await api.create(CONFIG_MAPS, MAP)
    assert created["metadata"]["labels"] == {"n": "2"}


async def test_a_webhook_is_told_everything(api: Api, register: Registered, hooks: WebhookServer) -> None:
    await register("warn")
    await api.create(CONFIG_MAPS, MAP)
    response = await api.respond("PATCH", f"{CONFIG_MAPS}/a?dryRun=All&fieldManager=me", {"data": {"x": "y"}})
    assert response.warnings == ["mind the gap"]
    _, request = hooks.requests[-1]
    assert request["operation"] == "UPDATE"
    assert request["dryRun"] is True
    assert request["name"] == "a"
    assert request["namespace"] == "default"
    assert request["object"]["data"] == {"x": "y"}
    assert "data" not in request["oldObject"]
    assert request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["options"] == {
        "kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "me",
    }  # fmt: skip
    assert request["userInfo"]["username"] == "kubernetes-admin"
    await api.call("DELETE", f"{CONFIG_MAPS}/a")
    _, request = hooks.requests[-1]
    assert (request["operation"], request["object"]) == ("DELETE", None)
    assert request["oldObject"]["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({}, True),
        ({"rules": [{**RULE, "operations": ["UPDATE"]}]}, False),
        ({"rules": [{**RULE, "scope": "Cluster"}]}, False),
        ({"rules": [{**RULE, "scope": "Namespaced"}]}, True),
        ({"rules": [{**RULE, "resources": ["*/status"]}]}, False),
        ({"rules": [{**RULE, "resources": ["*/*"]}]}, True),
        ({"rules": [{**RULE, "apiGroups": ["apps"]}]}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}, False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'a'"}]}, True),
        ({"matchConditions": [{"name": "a", "expression": "request.operation == 'DELETE'"}]}, False),
        ({"matchConditions": [{"name": "a", "expression": "authorizer.path('/x').check('get').allowed()"}]}, True),
        ({"matchConditions": [{"name": "a", "expression": "authorizer.requestResource.check('x').allowed()"}]}, True),
    ],
)  # fmt: skip
async def test_who_is_asked(
    api: Api, register: Registered, hooks: WebhookServer, spec: dict[str, Any], asked: bool
) -> None:
    await register("allow", **spec)
    await api.create(CONFIG_MAPS, MAP)
    assert bool(hooks.requests) is asked


async def test_a_condition_without_a_value_refuses(api: Api, register: Registered) -> None:
    await register("allow", matchConditions=[{"name": "a", "expression": "object.data.x == 'a'"}])
    status, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert status == 403
    assert "resulted in error: no such key: data" in answer["message"]


async def test_configurations_are_no_subject_of_webhooks(api: Api, register: Registered, hooks: WebhookServer) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    await register("deny", rules=[rule])
    await register("deny", rules=[rule], mutating=True)
    assert hooks.requests == []
    assert (await api.call("DELETE", f"{CONFIGURATIONS}/validatingwebhookconfigurations/c1"))[0] == 200


async def test_a_custom_resource_is_pruned_defaulted_and_checked_after_a_mutation(
    api: Api, register: Registered
) -> None:
    size = {"type": "integer", "maximum": 100}
    spec = {
        "type": "object",
        "default": {},
        "properties": {"size": size, "color": {"type": "string", "default": "red"}},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    await api.create(CRDS, widget_crd(schema=schema, subresources={}))
    rules = [{**RULE, "resources": ["widgets"]}]
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}
    await register("patch-unknown", mutating=True, rules=rules)
    await register("patch-spec", mutating=True, rules=rules)
    created = await api.create(WIDGETS, widget)
    assert created["spec"] == {"size": 7, "color": "red"}
    assert "unknown" not in created
    await register("patch-spec-big", mutating=True, rules=rules)
    status, answer = await api.call("POST", WIDGETS, {**widget, "metadata": {"name": "b"}})
    assert status == 422
    assert "spec.size" in answer["message"]


async def test_another_version_s_rule_matches_with_conversion(
    api: Api, register: Registered, hooks: WebhookServer
) -> None:
    rules = [{**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}]
    await register("allow", rules=rules)
    body = {
        "metadata": {"name": "a"},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
    }
    await api.create("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", body)
    _, request = hooks.requests[0]
    assert request["kind"]["version"] == "v1"
    assert request["requestKind"]["version"] == "v2"
    assert request["object"]["apiVersion"] == "autoscaling/v1"


async def test_a_service_is_reached_at_a_local_port(hooks: WebhookServer) -> None:
    async with webhook_server(names=("hook.ops.svc",)) as served:
        options = ApiServerOptions(listen=False, webhook_services={"ops/hook": served.port})
        async with ApiServer(options) as server:
            api = Api(server)
            register = Registered(api, served)
            service = {"namespace": "ops", "name": "hook", "path": "/deny-message"}
            await register("deny", clientConfig={"service": service, "caBundle": served.bundle})
            status, answer = await api.call("POST", CONFIG_MAPS, MAP)
            assert (status, answer["message"].endswith("not today")) == (400, True)
            await register("gone", clientConfig={"service": {**service, "name": "gone"}}, failurePolicy="Fail")
            await api.call("DELETE", f"{CONFIGURATIONS}/validatingwebhookconfigurations/c1")
            status, answer = await api.call("POST", CONFIG_MAPS, MAP)
            assert answer["message"].endswith(
                'Post "https://gone.ops.svc:443/deny-message?timeout=10s": service "gone" not found'
            )


async def test_audit_annotations_are_in_the_log(api: Api, register: Registered) -> None:
    await register("audit")
    await api.create(CONFIG_MAPS, MAP)
    assert list(api.core.log)[-1].audit == {"audit.example.com/key": "value"}


async def test_what_mutating_webhooks_did_is_in_the_audit_log(api: Api, register: Registered) -> None:
    await register("allow", mutating=True)
    await register("patch-label", mutating=True)
    await api.create(CONFIG_MAPS, MAP)
    noted = {key.partition(".")[0] + key[-1]: json.loads(value) for key, value in list(api.core.log)[-1].audit.items()}
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"hook": "was-here"}}]
    assert noted["mutation0"]["mutated"] is False
    assert noted["mutation1"] == {**noted["mutation1"], "webhook": "patch-label.example.com", "mutated": True}
    assert noted["patch1"] == {**noted["patch1"], "patch": patch, "patchType": "JSONPatch"}
    assert set(noted) == {"mutation0", "mutation1", "patch1"}


async def test_a_configuration_that_goes_while_another_is_asked_is_no_fault(
    api: Api, register: Registered, hooks: WebhookServer
) -> None:
    await register("slow", mutating=True)
    await register("z-last", mutating=True)
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(api.create, CONFIG_MAPS, MAP)
        with anyio.fail_after(10):
            while not hooks.requests:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        for name in [obj["metadata"]["name"] for obj in (await api.call("GET", path))[1]["items"]]:
            await api.call("DELETE", f"{path}/{name}")


async def test_services_that_are_made_at_once_share_no_address(
    api: Api, register: Registered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopylite.apiserver.builtin.services.CLUSTER_IPS", ipaddress.IPv4Network("10.0.0.0/23"))
    await register("allow", rules=[{**RULE, "resources": ["services"]}])
    made: list[Any] = []

    async def create(number: int) -> None:
        body = {"metadata": {"name": f"s{number}"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        made.append((await api.create("/api/v1/namespaces/default/services", body))["spec"])

    async with anyio.create_task_group() as group:
        for number in range(60):
            group.start_soon(create, number)
    assert len({spec["clusterIP"] for spec in made}) == 60
    assert len({spec["ports"][0]["nodePort"] for spec in made}) == 60
