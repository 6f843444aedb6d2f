"""Defaults of the named API groups, by type. Pure; each function changes the object that it is given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

Object = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"


def _setting(**values: Any) -> Callable[[Object], None]:
    """Defaults of single fields."""

    def default(obj: Object) -> None:
        for field, value in values.items():
            if obj.get(field) is None:
                obj[field] = copy.copy(value)

    return default


def _nonzero(**values: int) -> Callable[[Object], None]:
    """Defaults of numbers for which 0 means unset."""

    def default(obj: Object) -> None:
        for field, value in values.items():
            obj[field] = obj.get(field) or value

    return default


def _deployment(deployment: Object) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _daemon_set(daemon_set: Object) -> None:
    spec = daemon_set["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _stateful_set(stateful_set: Object) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
        strategy["rollingUpdate"].setdefault("maxUnavailable", 1)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)


def _replica_set(replica_set: Object) -> None:
    replica_set["spec"].setdefault("replicas", 1)


def _job(job: Object) -> None:
    spec = job["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        job["metadata"].setdefault("labels", dict(labels))
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _cron_job(cron_job: Object) -> None:
    spec = cron_job["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def _autoscaler_v1(autoscaler: Object) -> None:
    spec = autoscaler["spec"]
    spec.setdefault("minReplicas", 1)
    if "autoscaling.alpha.kubernetes.io/metrics" not in (autoscaler["metadata"].get("annotations") or {}):
        spec.setdefault("targetCPUUtilizationPercentage", 80)


_CPU_AT_80_PERCENT = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _autoscaler_v2(autoscaler: Object) -> None:
    spec = autoscaler["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [copy.deepcopy(_CPU_AT_80_PERCENT)]
    behavior = spec.get("behavior")
    if behavior is not None:
        for field, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            behavior[field] = {**copy.deepcopy(rules), **(behavior.get(field) or {})}


def _network_policy(policy: Object) -> None:
    spec = policy["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _ingress_class(ingress_class: Object) -> None:
    parameters = ingress_class["spec"].get("parameters")
    if parameters is not None:
        parameters["scope"] = parameters.get("scope") or "Cluster"


def _role_binding(binding: Object) -> None:
    binding["roleRef"]["apiGroup"] = binding["roleRef"].get("apiGroup") or RBAC


def _subject(subject: Object) -> None:
    if subject["kind"] in ("User", "Group"):
        subject.setdefault("apiGroup", RBAC)


def _csi_driver(driver: Object) -> None:
    spec = driver["spec"]
    spec.setdefault("attachRequired", True)
    for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(field, False)
    spec.setdefault("preventPodSchedulingIfMissing", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def _device_request(request: Object) -> None:
    if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        request.setdefault("count", 1)


_webhook = _setting(
    failurePolicy="Fail", matchPolicy="Equivalent", namespaceSelector={}, objectSelector={}, timeoutSeconds=10
)


def _mutating_webhook(webhook: Object) -> None:
    _webhook(webhook)
    webhook.setdefault("reinvocationPolicy", "Never")


def _custom_resource_definition(crd: Object) -> None:
    names = crd["spec"]["names"]
    names.setdefault("singular", names["kind"].lower())
    if names["kind"]:
        names.setdefault("listKind", f"{names['kind']}List")
    crd["spec"].setdefault("conversion", {"strategy": "None"})
    if not crd["status"].get("storedVersions"):
        stored = [v["name"] for v in crd["spec"]["versions"] or () if v["storage"]]
        if stored:
            crd["status"]["storedVersions"] = stored[:1]


_CRD = "apiextensions-apiserver.pkg.apis.apiextensions.v1"
_HOOKS = "admissionregistration.v1"

DEFAULTS: Mapping[str, Callable[[Object], None]] = {
    "apps.v1.Deployment": _deployment,
    "apps.v1.DaemonSet": _daemon_set,
    "apps.v1.StatefulSet": _stateful_set,
    "apps.v1.ReplicaSet": _replica_set,
    "batch.v1.Job": _job,
    "batch.v1.CronJob": _cron_job,
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": _setting(status="True"),
    "autoscaling.v1.HorizontalPodAutoscaler": _autoscaler_v1,
    "autoscaling.v2.HorizontalPodAutoscaler": _autoscaler_v2,
    "networking.v1.NetworkPolicyPort": _setting(protocol="TCP"),
    "networking.v1.NetworkPolicy": _network_policy,
    "networking.v1.IngressClass": _ingress_class,
    "rbac.v1.ClusterRoleBinding": _role_binding,
    "rbac.v1.RoleBinding": _role_binding,
    "rbac.v1.Subject": _subject,
    "scheduling.v1.PriorityClass": _setting(preemptionPolicy="PreemptLowerPriority"),
    "storage.v1.StorageClass": _setting(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "storage.v1.CSIDriver": _csi_driver,
    "discovery.v1.EndpointPort": _setting(name="", protocol="TCP"),
    f"{_HOOKS}.ValidatingWebhook": _webhook,
    f"{_HOOKS}.MutatingWebhook": _mutating_webhook,
    f"{_HOOKS}.RuleWithOperations": _setting(scope="*"),
    f"{_HOOKS}.NamedRuleWithOperations": _setting(scope="*"),
    f"{_HOOKS}.ServiceReference": _setting(port=443),
    f"{_HOOKS}.ValidatingAdmissionPolicySpec": _setting(failurePolicy="Fail"),
    f"{_HOOKS}.MutatingAdmissionPolicySpec": _setting(failurePolicy="Fail"),
    f"{_HOOKS}.MatchResources": _setting(matchPolicy="Equivalent", namespaceSelector={}, objectSelector={}),
    "flowcontrol.v1.FlowSchemaSpec": _nonzero(matchingPrecedence=1000),
    "flowcontrol.v1.ExemptPriorityLevelConfiguration": _setting(nominalConcurrencyShares=0, lendablePercent=0),
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": _setting(nominalConcurrencyShares=30, lendablePercent=0),
    "flowcontrol.v1.QueuingConfiguration": _nonzero(handSize=8, queues=64, queueLengthLimit=50),
    "resource.v1.ExactDeviceRequest": _device_request,
    "resource.v1.DeviceSubRequest": _device_request,
    f"{_CRD}.CustomResourceDefinition": _custom_resource_definition,
    f"{_CRD}.ServiceReference": _setting(port=443),
    "kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": _setting(port=443),
}
