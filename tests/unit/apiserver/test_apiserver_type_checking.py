"""Type checking of admission policies: the status says what expressions cannot mean, in the words of upstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.client import Client
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster

POLICY = Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")


def policy(
    name: str, *validations: Mapping[str, str], rule: tuple[str, str] = ("apps", "deployments"), **spec: Any
) -> Any:
    group, resource = rule
    rules = [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}]
    whole = {"matchConstraints": {"resourceRules": rules}, "validations": list(validations), **spec}
    return Unstructured(apiVersion=POLICY.api_version, kind=POLICY.kind, metadata={"name": name}, spec=whole)


async def checked(client: Client, made: Unstructured, generation: int = 1) -> Any:
    await client.create(made) if generation == 1 else await client.update(made)
    with anyio.fail_after(10):
        while True:
            status = (await client.live.get(POLICY, made.name)).get("status") or {}
            if status.get("observedGeneration") == generation:
                return status.get("typeChecking")
            await anyio.sleep(0.01)


def undefined(field: str, column: int, source: str, kind: str = "apps/v1, Kind=Deployment") -> str:
    return f"{kind}: ERROR: <input>:1:{column}: undefined field '{field}'\n | {source}\n | {'.' * (column - 1)}^\n"


async def test_the_status_of_a_policy_warns_of_what_an_expression_cannot_mean() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        good = policy("good", {"expression": "object.spec.replicas < 5"})
        assert await checked(client, good) == {}

        source = "object.spec.replicaz < 5"
        wrong = policy("wrong", {"expression": source, "messageExpression": "string(object.metadata.nam)"})
        assert await checked(client, wrong) == {
            "expressionWarnings": [
                {"fieldRef": "spec.validations[0].expression", "warning": undefined("replicaz", 12, source)},
                {
                    "fieldRef": "spec.validations[0].messageExpression",
                    "warning": undefined("nam", 23, "string(object.metadata.nam)"),
                },
            ]
        }
        stored = await client.live.get(POLICY, "wrong")
        stored["spec"]["validations"] = [{"expression": "object.spec.replicas < 5"}]
        assert await checked(client, stored, 2) is None  # as there: what was applied before is taken away, whole
        managers = (await client.live.get(POLICY, "wrong"))["metadata"]["managedFields"]
        assert [one["manager"] for one in managers if one.get("subresource") == "status"] == [
            "validatingadmissionpolicy-status"
        ]


@pytest.mark.parametrize(
    ("rule", "source", "told"),
    [
        (("apps", "deployments"), "object.spec.replicas > 'a'", ["'_>_' applied to '(int, string)'"]),
        (("apps", "deployments"), "object.metadata.creationTimestamp > 'x'", ["'(timestamp, string)'"]),
        (("", "configmaps"), "object.binaryData.a == 1", ["/v1, Kind=ConfigMap: ERROR", "'(bytes, int)'"]),
        # As upstream finds kinds: the core group stands for any, and one in the singular does too.
        (("", "events"), "object.involvedObject.kind == 'x'", ["events.k8s.io/v1, Kind=Event: ERROR"]),
        (("", "pod"), "object.foo == 1", ["/v1, Kind=Pod: ERROR: <input>:1:7: undefined field 'foo'"]),
        (("apiextensions.k8s.io", "customresourcedefinitions"), "object.spec.foo == 1", ["undefined field 'foo'"]),
        (("apps", "deployments"), "variables.bad == 1 && variables.size > 'a'", ["'(int, string)'"]),
        (("apps", "deployments"), "params.data.x == 1", ["'(string, int)'"]),
        (("apps", "deployments/status"), "object.foo == 1", []),
        (("*", "deployments"), "object.foo == 1", []),
        (("nope.example.com", "nopes"), "object.foo == 1", []),
    ],
)
def test_which_kinds_are_looked_at(rule: tuple[str, str], source: str, told: list[str]) -> None:
    from kopylite.apiserver.admission.type_checking import expression_warnings

    variables = [
        {"name": "size", "expression": "object.spec.replicas"}, {"name": "bad", "expression": "object.nope"},
    ]  # fmt: skip
    spec = policy("a", {"expression": source}, rule=rule)["spec"]
    spec |= {"variables": variables, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    server = ApiServer(ApiServerOptions(listen=False))
    warnings = expression_warnings(spec, server.world.registry)
    assert len(warnings) == bool(told)
    for text in told:
        assert text in warnings[0]["warning"]
