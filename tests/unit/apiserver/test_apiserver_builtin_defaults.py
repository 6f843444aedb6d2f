"""Defaults of built-in kinds; the expectations are the real server's answers to minimal objects."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.builtin.defaults_core import pull_policy
from kopylite.apiserver.builtin.scalars import Reading
from kopylite.apiserver.builtin.strategies import CODECS

POD = {"containers": [{"name": "a", "image": "x"}]}
DEFAULTED_CONTAINER = {
    "name": "a",
    "image": "x",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
DEFAULTED_POD = {
    "containers": [DEFAULTED_CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def defaulted(name: str, obj: dict[str, Any]) -> dict[str, Any]:
    codec = CODECS[f"io.k8s.api.{name}"]
    codec.decode(obj, "", Reading())
    codec.default(obj)
    return obj


def workload(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    return {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}}


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": DEFAULTED_POD}
SELECTOR = {"matchLabels": {"a": "b"}}


def test_a_deployment() -> None:
    assert defaulted("apps.v1.Deployment", workload())["spec"] == {
        "replicas": 1,
        "selector": SELECTOR,
        "template": TEMPLATE,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    recreate = defaulted("apps.v1.Deployment", workload(strategy={"type": "Recreate"}))
    assert recreate["spec"]["strategy"] == {"type": "Recreate"}


def test_a_stateful_set_and_a_daemon_set() -> None:
    assert defaulted("apps.v1.StatefulSet", workload(serviceName="s"))["spec"] == {
        "serviceName": "s",
        "replicas": 1,
        "selector": SELECTOR,
        "template": TEMPLATE,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    assert defaulted("apps.v1.DaemonSet", workload())["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }


def test_a_job_and_a_cron_job() -> None:
    job = defaulted("batch.v1.Job", workload(selector=None))
    assert job["metadata"]["labels"] == {"a": "b"}
    assert {k: v for k, v in job["spec"].items() if k != "template"} == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
    }
    assert "completions" not in defaulted("batch.v1.Job", workload(parallelism=2, selector=None))["spec"]
    cron = defaulted("batch.v1.CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}})
    assert cron["spec"]["concurrencyPolicy"] == "Allow"
    assert (cron["spec"]["successfulJobsHistoryLimit"], cron["spec"]["failedJobsHistoryLimit"]) == (3, 1)
    # The template of a cron job's jobs is defaulted as a pod, not as a job.
    assert cron["spec"]["jobTemplate"]["spec"].keys() == {"template"}


def test_a_pod() -> None:
    container = {
        "name": "a",
        "image": "x:1",
        "resources": {"limits": {"cpu": "0.5"}},
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
    }
    pod = defaulted(
        "core.v1.Pod", {"spec": {"containers": [container], "hostNetwork": True, "volumes": [{"name": "v"}]}}
    )
    spec = pod["spec"]
    assert spec["containers"][0] == {
        "name": "a",
        "image": "x:1",
        "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}},
        "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
        "livenessProbe": {
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert spec["enableServiceLinks"] is True


def test_a_service() -> None:
    service = defaulted("core.v1.Service", {"spec": {"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}})
    assert service["spec"] == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        "type": "ClusterIP",
        "internalTrafficPolicy": "Cluster",
    }
    balancer = defaulted("core.v1.Service", {"spec": {"type": "LoadBalancer"}})["spec"]
    assert balancer["allocateLoadBalancerNodePorts"] is True
    assert balancer["externalTrafficPolicy"] == "Cluster"


def test_an_autoscaler_watches_the_cpu() -> None:
    spec = defaulted("autoscaling.v2.HorizontalPodAutoscaler", {"spec": {"maxReplicas": 3, "behavior": {}}})["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    assert spec["behavior"]["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    first = defaulted("autoscaling.v1.HorizontalPodAutoscaler", {"spec": {"maxReplicas": 3}})["spec"]
    assert first["targetCPUUtilizationPercentage"] == 80


@pytest.mark.parametrize(
    ("name", "obj", "path", "expected"),
    [
        ("core.v1.Secret", {}, "type", "Opaque"),
        ("core.v1.Namespace", {"metadata": {"name": "n"}}, "metadata.labels", {"kubernetes.io/metadata.name": "n"}),
        ("core.v1.PersistentVolumeClaim", {"spec": {}}, "spec.volumeMode", "Filesystem"),
        ("core.v1.PersistentVolume", {"spec": {}}, "spec.persistentVolumeReclaimPolicy", "Retain"),
        ("core.v1.Node", {"status": {"capacity": {"cpu": "4"}}}, "status.allocatable", {"cpu": "4"}),
        ("networking.v1.NetworkPolicy", {"spec": {"egress": [{}]}}, "spec.policyTypes", ["Ingress", "Egress"]),
        ("networking.v1.IngressClass", {"spec": {"parameters": {"kind": "X"}}}, "spec.parameters.scope", "Cluster"),
        ("rbac.v1.RoleBinding", {}, "roleRef.apiGroup", "rbac.authorization.k8s.io"),
        ("storage.v1.StorageClass", {}, "volumeBindingMode", "Immediate"),
        ("scheduling.v1.PriorityClass", {}, "preemptionPolicy", "PreemptLowerPriority"),
        ("flowcontrol.v1.FlowSchema", {"spec": {}}, "spec.matchingPrecedence", 1000),
    ],
)
def test_single_defaults(name: str, obj: dict[str, Any], path: str, expected: Any) -> None:
    value: Any = defaulted(name, obj)
    for field in path.split("."):
        value = value[field]
    assert value == expected


def test_a_webhook() -> None:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    hook = {"name": "a.b.c", "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "rules": [rule]}
    obj = defaulted("admissionregistration.v1.MutatingWebhookConfiguration", {"webhooks": [hook]})
    (found,) = obj["webhooks"]
    assert found["failurePolicy"] == "Fail"
    assert found["reinvocationPolicy"] == "Never"
    assert found["timeoutSeconds"] == 10
    assert found["clientConfig"]["service"]["port"] == 443
    assert found["rules"][0]["scope"] == "*"
    assert found["namespaceSelector"] == {}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("reg.example.com:5000/a/b", "Always"),
        ("reg.example.com:5000/a/b:v1", "IfNotPresent"),
        ("nginx@sha256:0123456789012345678901234567890123456789012345678901234567890123", "IfNotPresent"),
        ("", "IfNotPresent"),
        ("UPPER", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_defaulting_twice_changes_nothing() -> None:
    once = defaulted("apps.v1.Deployment", workload())
    assert defaulted("apps.v1.Deployment", dict(once)) == once
