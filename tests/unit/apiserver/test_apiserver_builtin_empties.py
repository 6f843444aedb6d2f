"""An update that sends an empty list or map counts as a change where upstream compares with reflect.DeepEqual."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.builtin.empties import has_empties
from tests.unit.apiserver.conftest import Api

POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.mark.parametrize(
    ("spec", "generations"),
    [
        ({"podSelector": {}}, [1, 1, 1]),
        ({"podSelector": {"matchLabels": {}}}, [1, 2, 3]),
        ({"podSelector": {"matchExpressions": []}}, [1, 2, 3]),
        ({"podSelector": {}, "ingress": []}, [1, 2, 3]),
        ({"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {}}}]}]}, [1, 2, 3]),
        ({"podSelector": {}, "ingress": [{}]}, [1, 1, 1]),
    ],
)
async def test_network_policies_as_a_real_server_counts_them(api: Api, spec: Any, generations: list[int]) -> None:
    policy = {"metadata": {"name": "a"}, "spec": spec}
    found = [await api.create(POLICIES, policy)]
    for _ in range(2):
        status, obj = await api.call("PUT", f"{POLICIES}/a", policy)
        assert status == 200
        found.append(obj)
    assert [obj["metadata"]["generation"] for obj in found] == generations
    assert "matchLabels" not in found[-1]["spec"]["podSelector"]
    # What is stored has none, so a patch of something else changes nothing that counts.
    _, labelled = await api.call("PATCH", f"{POLICIES}/a", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == generations[-1]


async def test_webhook_configurations_likewise(api: Api) -> None:
    hook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": []}
    configuration: dict[str, Any] = {
        "metadata": {"name": "a"},
        "webhooks": [hook | {"clientConfig": {"url": "https://a"}}],
    }
    created = await api.create(HOOKS, configuration)
    configuration["metadata"] = created["metadata"]
    _, obj = await api.call("PUT", f"{HOOKS}/a", configuration)
    assert (created["metadata"]["generation"], obj["metadata"]["generation"]) == (1, 2)


def test_a_struct_without_fields_is_no_empty_map() -> None:
    assert not has_empties({"podSelector": {}, "ports": [{}]})
    assert has_empties([{"namespaceSelector": {"matchLabels": {}}}])
