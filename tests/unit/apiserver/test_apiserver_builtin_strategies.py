"""Strategies of built-in kinds: the list of resources, updates, sub-resources, immutable fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kopylite.apiserver.builtin.strategies import BuiltinStrategy, builtin_resources
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import Forbidden
from tests.unit.apiserver.conftest import Api

STORED: dict[str, list[dict[str, Any]]] = {}
ENVIRONMENT = StrategyContext(SYSTEM_CLOCK, lambda storage: STORED.get(storage, []))

Object = dict[str, Any]


@pytest.fixture(autouse=True)
def _empty_store() -> None:
    STORED.clear()


def resource(api_version: str, kind: str) -> Resource:
    return next(r for r in builtin_resources(ENVIRONMENT) if (r.api_version, r.kind) == (api_version, kind))


def strategy(api_version: str, kind: str) -> BuiltinStrategy:
    found = resource(api_version, kind).strategy
    assert isinstance(found, BuiltinStrategy)
    return found


def created(api_version: str, kind: str, **fields: Any) -> Object:
    obj: Object = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "uid": "U"}, **fields}
    of = strategy(api_version, kind)
    assert of.decode(obj) == []
    of.default(obj)
    of.prepare_create(obj)
    return obj


def updated(old: Object, subresource: str = "", **fields: Any) -> tuple[Object, list[str]]:
    """The object after an update, and the errors, each as `field: message`."""
    of = strategy(old["apiVersion"], old["kind"])
    new = copy.deepcopy(old)
    for path, value in fields.items():
        *parents, last = path.split("__")
        target = new
        for parent in parents:
            target = target.setdefault(parent, {})
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
    of.decode(new)
    of.default(new)
    of.prepare_update(new, old, subresource)
    return new, [str(e) for e in of.validate_update(new, old, subresource)]


POD = {"containers": [{"name": "a", "image": "x"}]}


def deployment() -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": copy.deepcopy(POD)}
    return created("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})


def test_resources_come_in_the_order_and_form_of_discovery() -> None:
    listed = builtin_resources(ENVIRONMENT)
    assert [r.plural for r in listed[:3]] == ["bindings", "componentstatuses", "configmaps"]
    deployments = resource("apps/v1", "Deployment")
    assert deployments.short_names == ("deploy",)
    assert deployments.categories == ("all",)
    assert set(deployments.subresources) == {"status", "scale"}
    assert deployments.subresources["scale"].group == "autoscaling"
    assert deployments.scale is not None
    assert deployments.storage_version_hash == "8aSe+NMegvE="


def test_both_event_groups_and_both_autoscaler_versions_share_a_storage() -> None:
    assert resource("v1", "Event").storage == resource("events.k8s.io/v1", "Event").storage == "events"
    one, two = (resource(f"autoscaling/{v}", "HorizontalPodAutoscaler") for v in ("v1", "v2"))
    assert one.storage == two.storage


def test_events_are_shown_in_the_form_of_each_group() -> None:
    stored = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "m", "count": 2,
              "involvedObject": {"kind": "Pod"}, "source": {"component": "c"}}  # fmt: skip
    shown = strategy("events.k8s.io/v1", "Event").from_stored(copy.deepcopy(stored), "v1")
    assert (shown["note"], shown["deprecatedCount"], shown["regarding"]) == ("m", 2, {"kind": "Pod"})
    back = strategy("v1", "Event").from_stored(shown, "events.k8s.io/v1")
    assert {k: back[k] for k in stored} == stored


def test_an_autoscaler_survives_the_way_through_v1() -> None:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "5"}}}]
    stored = created("autoscaling/v2", "HorizontalPodAutoscaler",
                     spec={"maxReplicas": 3, "scaleTargetRef": target, "metrics": metrics})  # fmt: skip
    old = strategy("autoscaling/v1", "HorizontalPodAutoscaler").from_stored(copy.deepcopy(stored), "autoscaling/v2")
    assert "autoscaling.alpha.kubernetes.io/metrics" in old["metadata"]["annotations"]
    back = strategy("autoscaling/v2", "HorizontalPodAutoscaler").from_stored(old, "autoscaling/v1")
    assert back["spec"] == stored["spec"]


def test_the_main_endpoint_leaves_status_alone_and_status_all_else() -> None:
    old = deployment()
    old["status"]["replicas"] = 3
    new, errors = updated(old, status__replicas=9, spec__replicas=5)
    assert (new["status"]["replicas"], new["spec"]["replicas"], errors) == (3, 5, [])
    new, errors = updated(old, "status", status__replicas=9, spec__replicas=5, metadata__labels={"x": "y"})
    assert (new["status"]["replicas"], new["spec"]["replicas"], errors) == (9, 1, [])
    assert "labels" not in new["metadata"]


def test_which_fields_an_endpoint_ignores_depends_on_the_kind() -> None:
    assert strategy("apps/v1", "Deployment").reset_fields("") == ("status",)
    assert strategy("apps/v1", "Deployment").reset_fields("status") == ("spec", "metadata.labels")
    assert strategy("v1", "ConfigMap").reset_fields("") == ()
    assert strategy("storage.k8s.io/v1", "VolumeAttachment").reset_fields("status") == ("metadata", "spec")


def test_a_new_annotation_of_a_deployment_counts_as_a_change_of_its_spec() -> None:
    old = deployment()
    old["metadata"]["generation"] = 4
    assert updated(old, metadata__annotations={"a": "b"})[0]["metadata"]["generation"] == 5
    assert updated(old, metadata__labels={"a": "b"})[0]["metadata"]["generation"] == 4


def test_selectors_never_change() -> None:
    _, errors = updated(deployment(), spec__selector={"matchLabels": {"a": "b", "c": "d"}})
    assert errors[-1] == ('spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable')


def test_an_immutable_config_map_stays_so() -> None:
    old = created("v1", "ConfigMap", data={"a": "1"}, immutable=True)
    _, errors = updated(old, data={"a": "2"}, immutable=False)
    text = "Forbidden: field is immutable when `immutable` is set"
    assert errors == [f"immutable: {text}", f"data: {text}"]
    assert updated(old, metadata__labels={"a": "b"})[1] == []


def test_a_secret_takes_texts_and_keeps_its_type() -> None:
    old = created("v1", "Secret", stringData={"a": "x"})
    assert old["data"] == {"a": "eA=="}
    assert "stringData" not in old
    assert updated(old, type="other")[1] == ['type: Invalid value: "other": field is immutable']


def test_only_images_deadline_and_new_tolerations_change_in_a_pod() -> None:
    old = created("v1", "Pod", spec=copy.deepcopy(POD))
    assert updated(old, spec__containers=[{**old["spec"]["containers"][0], "image": "y"}])[1] == []
    assert updated(old, spec__activeDeadlineSeconds=3)[1] == []
    assert updated(old, spec__tolerations=[*old["spec"]["tolerations"], {"key": "a", "operator": "Exists"}])[1] == []
    (error,) = updated(old, spec__nodeName="n")[1]
    assert error.startswith("spec: Forbidden: pod updates may not change fields other than")
    (error,) = updated(old, spec__containers=[*old["spec"]["containers"], {"name": "b", "image": "y"}])[1]
    assert error == "spec.containers: Forbidden: pod updates may not add or remove containers"


def test_resize_takes_resources_and_ephemeral_containers_take_those() -> None:
    old = created("v1", "Pod", spec=copy.deepcopy(POD))
    container = {**old["spec"]["containers"][0], "image": "y", "resources": {"limits": {"cpu": "2"}}}
    new, errors = updated(old, "resize", spec__containers=[container], spec__nodeName="n")
    assert errors == []
    assert new["spec"]["containers"][0]["image"] == "x"
    assert new["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2"}
    assert "nodeName" not in new["spec"]
    debugger = [{"name": "d", "image": "z"}]
    new, errors = updated(old, "ephemeralcontainers", spec__ephemeralContainers=debugger, spec__nodeName="n")
    assert errors == []
    assert [c["name"] for c in new["spec"]["ephemeralContainers"]] == ["d"]
    assert "nodeName" not in new["spec"]


def test_a_pod_gets_phase_quality_priority_and_tolerations() -> None:
    pod = created("v1", "Pod", spec=copy.deepcopy(POD))
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert [t["key"] for t in pod["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_a_priority_class_must_exist_and_gives_its_value() -> None:
    with pytest.raises(Forbidden, match='pods "x" is forbidden: no PriorityClass with name high was found'):
        created("v1", "Pod", spec={**copy.deepcopy(POD), "priorityClassName": "high"})
    STORED["priorityclasses.scheduling.k8s.io"] = [{"metadata": {"name": "high"}, "value": 7}]
    assert created("v1", "Pod", spec={**copy.deepcopy(POD), "priorityClassName": "high"})["spec"]["priority"] == 7


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_the_quality_of_service_follows_requests_and_limits(resources: Object, quality: str) -> None:
    pod = created("v1", "Pod", spec={"containers": [{"name": "a", "image": "x", "resources": resources}]})
    assert pod["status"]["qosClass"] == quality


def test_a_namespace_keeps_its_finalizers_but_for_finalize() -> None:
    old = created("v1", "Namespace")
    assert old["spec"] == {"finalizers": ["kubernetes"]}
    assert updated(old, spec={})[0]["spec"] == {"finalizers": ["kubernetes"]}
    assert updated(old, "finalize", spec={})[0]["spec"] == {}


def test_a_job_gets_a_selector_of_its_own() -> None:
    spec = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {**copy.deepcopy(POD), "restartPolicy": "Never"}}}
    job = created("batch/v1", "Job", spec=spec)
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "U"}}
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "x"
    assert strategy("batch/v1", "Job").validate_create(job) == []
    assert updated(job, spec__completions=3)[1] == ["spec.completions: Invalid value: 3: field is immutable"]


def test_a_claim_gets_the_default_class() -> None:
    annotation = {"storageclass.kubernetes.io/is-default-class": "true"}
    STORED["storageclasses.storage.k8s.io"] = [{"metadata": {"name": "fast", "annotations": annotation}}]
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert created("v1", "PersistentVolumeClaim", spec=dict(spec))["spec"]["storageClassName"] == "fast"
    kept = created("v1", "PersistentVolumeClaim", spec={**spec, "storageClassName": ""})
    assert kept["spec"]["storageClassName"] == ""


@pytest.mark.parametrize(
    ("api_version", "kind", "name", "prefix", "errors"),
    [
        ("v1", "ConfigMap", "a.b", False, 0),
        ("v1", "ConfigMap", "A", False, 1),
        ("v1", "ConfigMap", "a-", True, 0),
        ("v1", "Namespace", "a.b", False, 1),
        ("v1", "Service", "1a", False, 0),
        ("rbac.authorization.k8s.io/v1", "Role", "A:b", False, 0),
        ("rbac.authorization.k8s.io/v1", "Role", "a/b", False, 1),
        ("batch/v1", "CronJob", "a" * 53, False, 1),
    ],
)
def test_names_follow_the_kind(api_version: str, kind: str, name: str, prefix: bool, errors: int) -> None:
    assert len(strategy(api_version, kind).name_errors(name, prefix)) == errors


def test_flags_follow_the_kind() -> None:
    assert strategy("v1", "Pod").grace
    assert not strategy("v1", "ConfigMap").grace
    assert not strategy("coordination.k8s.io/v1", "Lease").unconditional_update
    assert strategy("coordination.k8s.io/v1", "Lease").create_on_update
    assert not strategy("v1", "Service").generation
    assert strategy("apps/v1", "Deployment").generation


@pytest.mark.parametrize("annotation", ["", "5", "null", "{}", '["x"]', '[{"resource":5}]', "[[]]", "["])
async def test_an_autoscaler_of_v1_notes_the_use_of_the_cpu_whatever_stands_in_its_annotation(annotation: str) -> None:
    path, key = "/horizontalpodautoscalers", "autoscaling.alpha.kubernetes.io/current-metrics"
    first, second = (f"/apis/autoscaling/{v}/namespaces/default{path}" for v in ("v1", "v2"))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    sent = {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
    async with ApiServer(ApiServerOptions(listen=False)) as server:
        api = Api(server)
        await api.create(first, sent)
        patch = {"metadata": {"annotations": {key: annotation}}, "status": {"currentCPUUtilizationPercentage": 20}}
        assert (await api.call("PATCH", f"{first}/a/status", patch))[0] == 200
        assert (await api.call("GET", f"{second}/a"))[0] == 200
        assert (await api.call("PATCH", f"{first}/a/status", {"metadata": {"annotations": {key: None}}}))[0] == 200
        newer = await api.get(f"{second}/a")
    use = {"averageUtilization": 20, "averageValue": "0"}
    assert newer["status"]["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": use}}]
