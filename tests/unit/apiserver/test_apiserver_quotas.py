"""What objects take of a quota; the expectations are those of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.admission.quota_usage import add, counted_by, is_best_effort, quantities, unspecified, usage_of
from kopylite.apiserver.admission.quotas import in_scope
from tests.unit.apiserver.conftest import CONFIG_MAPS, Api


def container(name: str = "c", restart: str = "", **resources: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": resources, **({"restartPolicy": restart} if restart else {})}


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), "initContainers": list(init), **spec}}


def texts(storage: str, obj: dict[str, Any]) -> dict[str, str]:
    return {name: quantity.text() for name, quantity in usage_of(storage, obj).items()}


def test_a_pod_takes_what_its_containers_take_together() -> None:
    first = container(requests={"cpu": "100m", "memory": "64Mi", "example.com/dongle": "2"}, limits={"cpu": "1"})
    assert texts("pods", pod(first, container(requests={"cpu": "400m", "memory": "64Mi"}))) == {
        "pods": "1",
        "count/pods": "1",
        "cpu": "500m",
        "requests.cpu": "500m",
        "memory": "128Mi",
        "requests.memory": "128Mi",
        "requests.example.com/dongle": "2",
        "limits.cpu": "1",
    }


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        ((container(requests={"cpu": "3"}),), "3"),
        ((container(requests={"cpu": "500m"}),), "1"),
        ((container(requests={"cpu": "1"}, restart="Always"), container(requests={"cpu": "2"})), "3"),
        ((container(requests={"cpu": "1"}, restart="Always"),), "2"),
    ],
)
def test_init_containers_count_as_far_as_they_run_at_a_time(init: tuple[dict[str, Any], ...], cpu: str) -> None:
    assert texts("pods", pod(container(requests={"cpu": "1"}), init=init))["cpu"] == cpu


def test_a_finished_pod_is_only_counted() -> None:
    done = {**pod(container(requests={"cpu": "1"})), "status": {"phase": "Succeeded"}}
    assert texts("pods", done) == {"count/pods": "1"}


def test_services_take_node_ports_and_load_balancers() -> None:
    balanced = {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}}
    assert texts("services", balanced)["services.nodeports"] == "2"
    assert texts("services", balanced)["services.loadbalancers"] == "1"
    without = {"spec": {**balanced["spec"], "allocateLoadBalancerNodePorts": False}}
    assert texts("services", without)["services.nodeports"] == "0"


def test_claims_take_storage_of_their_class() -> None:
    claim = {"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}}
    assert texts("persistentvolumeclaims", claim) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("count/replicasets.apps", "replicasets.apps"),
        ("configmaps", "configmaps"),
        ("services.nodeports", "services"),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "persistentvolumeclaims"),
        ("limits.memory", "pods"),
    ],
)
def test_each_resource_counts_one_kind(name: str, kind: str) -> None:
    assert counted_by(name) == kind


def test_a_sum_keeps_the_form_of_what_was_there() -> None:
    total = add(quantities({"memory": "1Gi"}), quantities({"memory": "1024", "cpu": "1"}))
    assert {name: quantity.text() for name, quantity in total.items()} == {"memory": "1048577Ki", "cpu": "1"}


def test_what_a_quota_makes_obligatory() -> None:
    spec = pod(container("a", requests={"cpu": "1"}), container("b"))["spec"]
    assert unspecified(spec, ["requests.cpu", "limits.memory", "pods"]) == "limits.memory for: a,b; requests.cpu for: b"
    assert unspecified(spec, ["cpu"]) == "cpu for: b"


@pytest.mark.parametrize(
    ("scope", "matches"),
    [("BestEffort", True), ("NotBestEffort", False), ("Terminating", True), ("NotTerminating", False)],
)
def test_scopes_are_about_pods(scope: str, matches: bool) -> None:
    obj = pod(container(), activeDeadlineSeconds=0)
    assert is_best_effort(obj["spec"])
    assert in_scope({"spec": {"scopes": [scope]}}, "pods", obj) is matches
    assert not in_scope({"spec": {"scopes": [scope]}}, "configmaps", {})


QUOTAS = "/api/v1/namespaces/default/resourcequotas"


async def test_without_a_controller_the_status_of_a_quota_counts(api: Api) -> None:
    """As upstream's plug-in: the expectations are those of a real server without kube-controller-manager."""

    async def create(name: str, query: str = "") -> str:
        status, answer = await api.call("POST", f"{CONFIG_MAPS}{query}", {"metadata": {"name": name}})
        return "" if status == 201 else str(answer["message"]).partition(" is forbidden: ")[2]

    async def tell(**status: dict[str, str]) -> None:
        code, _ = await api.call("PATCH", f"{QUOTAS}/q/status", {"status": status})
        assert code == 200

    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1", "pods": "1"}}})
    assert [await create("a"), await create("b")] == ["", ""]
    await tell(hard={"configmaps": "3", "pods": "1"})
    assert await create("c") == "status unknown for quota: q, resources: configmaps"
    await tell(used={"configmaps": "2"})
    assert await create("d", "?dryRun=All") == ""
    assert await create("d") == ""
    full = "exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3"
    assert [await create("e"), await create("e", "?dryRun=All")] == [full, full]
    await api.call("DELETE", f"{CONFIG_MAPS}/d")
    assert (await api.get(f"{QUOTAS}/q"))["status"] == {
        "hard": {"configmaps": "3", "pods": "1"},
        "used": {"configmaps": "3"},
    }
