"""What admission adds to pods and refuses of them: pod security, limit ranges, runtime classes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kopylite.apiserver.admission.pod_standards import violations
from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions

Object = dict[str, Any]
PODS = "/api/v1/namespaces/a/pods"
CONTAINER: Object = {"name": "a", "image": "a"}


async def answer(server: ApiServer, method: str, path: str, obj: Object, kind: str = "") -> tuple[Any, list[str]]:
    headers = {"Content-Type": kind} if kind else {}
    response = await server.handle(HttpRequest.of(method, path, body=json.dumps(obj).encode(), headers=headers))
    return json.loads(response.body), [value for name, value in response.headers.items() if name == "Warning"]


async def namespace(server: ApiServer, **labels: str) -> None:
    prefixed = {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in labels.items()}
    metadata = {"name": "a", "labels": prefixed}
    assert (await answer(server, "POST", "/api/v1/namespaces", {"metadata": metadata}))[0]["kind"] == "Namespace"


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}


async def test_a_restricted_namespace_names_all_that_a_pod_lacks() -> None:
    async with ApiServer(ApiServerOptions(listen=False, controllers=())) as server:
        await namespace(server, enforce="restricted")
        body, _ = await answer(server, "POST", PODS, pod())
    assert body["code"] == 403
    assert body["message"] == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container '
        '"a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" must '
        'set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "a" must set '
        'securityContext.runAsNonRoot=true), seccompProfile (pod or container "a" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )


async def test_a_level_that_does_not_exist_is_refused_with_those_that_do() -> None:
    async with ApiServer(ApiServerOptions(listen=False, controllers=())) as server:
        labels = {"pod-security.kubernetes.io/enforce": "strict"}
        body, _ = await answer(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "a", "labels": labels}})
    assert body["details"]["causes"][0]["message"].endswith("must be one of privileged, baseline, restricted")


async def test_limits_fill_in_what_containers_leave_out_and_refuse_what_is_too_much() -> None:
    limit = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}, "max": {"cpu": "2"}}
    async with ApiServer(ApiServerOptions(listen=False, controllers=())) as server:
        await namespace(server)
        ranges = {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}
        await answer(server, "POST", "/api/v1/namespaces/a/limitranges", ranges)
        body, _ = await answer(server, "POST", PODS, pod())
        assert body["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}
        greedy = {**CONTAINER, "resources": {"limits": {"cpu": "3"}}}
        body, _ = await answer(server, "POST", PODS, {"metadata": {"name": "q"}, "spec": {"containers": [greedy]}})
    assert body["message"].startswith('pods "q" is forbidden: ')
    assert "maximum cpu usage per Container is 2, but limit is 3" in body["message"]


async def test_a_pod_of_a_runtime_class_gets_its_overhead_and_an_unknown_class_is_refused() -> None:
    async with ApiServer(ApiServerOptions(listen=False, controllers=())) as server:
        await namespace(server)
        made = {"metadata": {"name": "c"}, "handler": "h", "overhead": {"podFixed": {"cpu": "100m"}}}
        await answer(server, "POST", "/apis/node.k8s.io/v1/runtimeclasses", made)
        body, _ = await answer(server, "POST", PODS, pod(runtimeClassName="c"))
        assert body["spec"]["overhead"] == {"cpu": "100m"}
        body, _ = await answer(server, "POST", PODS, pod(runtimeClassName="none"))
    assert body["message"] == 'pods "p" is forbidden: pod rejected: RuntimeClass "none" not found'


@pytest.mark.parametrize(
    ("minor", "allowed"),
    [(26, False), (29, True), (37, True)],
)
def test_a_version_of_the_standards_is_that_of_its_time(minor: int, allowed: bool) -> None:
    sysctls = [{"name": "net.ipv4.tcp_fin_timeout", "value": "1"}]
    found = violations("baseline", minor, None, {"securityContext": {"sysctls": sysctls}, "containers": [CONTAINER]})
    assert [str(violation) for violation in found] == (
        [] if allowed else ["forbidden sysctls (net.ipv4.tcp_fin_timeout)"]
    )
