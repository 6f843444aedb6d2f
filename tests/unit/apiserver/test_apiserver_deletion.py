from __future__ import annotations

from typing import Any

import pytest

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def test_an_object_without_finalizers_goes_at_once_and_a_status_tells_its_uid(api: Any) -> None:
    made = await api.config_map("a")
    status, answer = await api.call("DELETE", f"{CONFIG_MAPS}/a")
    assert (status, answer["status"]) == (200, "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (await api.call("GET", f"{CONFIG_MAPS}/a"))[0] == 404
    assert (await api.call("DELETE", f"{CONFIG_MAPS}/a"))[0] == 404


@pytest.mark.parametrize(
    ("query", "finalizers"),
    [
        ("", ["a.b/c"]),
        ("?propagationPolicy=Background", ["a.b/c"]),
        ("?propagationPolicy=Foreground", ["a.b/c", "foregroundDeletion"]),
        ("?propagationPolicy=Orphan", ["a.b/c", "orphan"]),
        ("?orphanDependents=true", ["a.b/c", "orphan"]),
    ],
)
async def test_the_propagation_policy_becomes_a_finalizer(api: Any, query: str, finalizers: list[str]) -> None:
    await api.create(CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    status, going = await api.call("DELETE", f"{CONFIG_MAPS}/a{query}")
    assert status == 200
    assert going["metadata"]["finalizers"] == finalizers
    assert going["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_orphan_dependents_false_is_answered_with_202(api: Any) -> None:
    await api.create(CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    assert (await api.call("DELETE", f"{CONFIG_MAPS}/a?orphanDependents=false"))[0] == 202


async def test_a_second_delete_keeps_the_time_of_the_first(api: Any) -> None:
    await api.create(CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    _, first = await api.call("DELETE", f"{CONFIG_MAPS}/a")
    status, second = await api.call("DELETE", f"{CONFIG_MAPS}/a")
    assert (status, second) == (200, first)
    status, answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert answer["message"] == 'object is being deleted: configmaps "a" already exists'


@pytest.mark.parametrize(
    ("precondition", "text"),
    [
        ({"uid": "5"}, "the UID in the precondition (5) does not match the UID in record"),
        ({"resourceVersion": "5"}, "the ResourceVersion in the precondition (5) does not match"),
    ],
)
async def test_a_precondition_that_fails_names_the_kind(api: Any, precondition: dict[str, str], text: str) -> None:
    await api.config_map("a")
    status, answer = await api.call("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": precondition})
    assert (status, answer["details"]["kind"]) == (409, "ConfigMap")
    assert text in answer["message"]
    assert (await api.call("GET", f"{CONFIG_MAPS}/a"))[0] == 200


async def test_a_bound_pod_has_its_grace_which_a_later_delete_only_shortens(api: Any) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    await api.create(PODS, pod)
    for query, grace in (("", 30), ("?gracePeriodSeconds=60", 30), ("?gracePeriodSeconds=5", 5)):
        status, going = await api.call("DELETE", f"{PODS}/p{query}")
        assert (status, going["metadata"]["deletionGracePeriodSeconds"]) == (200, grace)
    status, gone = await api.call("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert (status, gone["kind"]) == (200, "Pod")
    assert (await api.call("GET", f"{PODS}/p"))[0] == 404


async def test_an_unscheduled_pod_goes_at_once(api: Any) -> None:
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert (await api.call("DELETE", f"{PODS}/p"))[0] == 200
    assert (await api.call("GET", f"{PODS}/p"))[0] == 404


async def test_delete_collection_takes_what_the_selector_takes_and_returns_it(api: Any) -> None:
    for name in "abc":
        await api.config_map(name, labels={"go": "yes"} if name != "b" else {})
    status, answer = await api.call("DELETE", f"{CONFIG_MAPS}?labelSelector=go%3Dyes")
    assert (status, answer["kind"]) == (200, "ConfigMapList")
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in (await api.get(CONFIG_MAPS))["items"]] == ["b"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_system_namespaces_stay(api: Any, name: str) -> None:
    status, answer = await api.call("DELETE", f"/api/v1/namespaces/{name}")
    assert (status, answer["message"]) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')


async def test_an_evicted_pod_is_deleted(api: Any) -> None:
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert (await api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}))[0] == 201
    assert (await api.call("GET", f"{PODS}/p"))[0] == 404


async def test_a_pod_is_bound_once(api: Any) -> None:
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await api.call("POST", f"{PODS}/p/binding", binding))[0] == 201
    assert (await api.get(f"{PODS}/p"))["spec"]["nodeName"] == "n1"
    status, answer = await api.call("POST", f"{PODS}/p/binding", binding)
    assert status == 409
    assert 'is already assigned to node "n1"' in answer["message"]
