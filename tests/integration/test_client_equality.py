"""Equal means what the server means: whatever an operator names, twenty runs and two restarts write it once."""

from __future__ import annotations

import copy
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kopylite.client import Client, Outcome, connect
from kopylite.objects import Kind, ObjectKey, Unstructured
from kopylite.observers import ClientObserver
from kopylite.testing import Cluster

LABELS = {"app": "web"}
HANDLER: dict[str, Any] = {"httpGet": {"path": "", "port": 80, "scheme": "", "httpHeaders": []}}
PROBE = {**HANDLER, "initialDelaySeconds": 0, "timeoutSeconds": 0, "periodSeconds": 0, "failureThreshold": 0}
CONTAINER: dict[str, Any] = {
    "name": "web",
    "image": "nginx",
    "command": [],
    "args": [],
    "workingDir": "",
    "ports": [
        {"containerPort": 80, "protocol": "", "name": "", "hostIP": ""},
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 53, "protocol": "TCP"},
    ],
    "env": [
        {"name": "EMPTY", "value": ""},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0.001"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": ""}}},
    ],
    "envFrom": [],
    "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5, "memory": "0.5Gi"}},
    "volumeMounts": [{"name": "scratch", "mountPath": "/s", "subPath": "", "readOnly": False}],
    "livenessProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    "securityContext": {"privileged": False, "runAsUser": 1000, "capabilities": {"add": [], "drop": ["ALL"]}},
    "imagePullPolicy": "",
    "stdin": False,
    "tty": False,
    "terminationMessagePath": "",
}
POD_SPEC: dict[str, Any] = {
    "containers": [CONTAINER],
    "initContainers": [],
    "volumes": [
        {"name": "scratch", "emptyDir": {"medium": "", "sizeLimit": "1024Mi"}},
        {"name": "config", "configMap": {"name": "c", "optional": False, "items": []}},
        {"name": "plain", "emptyDir": {}},
        {"name": "all", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ],
    "nodeSelector": {},
    "tolerations": [{"key": "a", "operator": "Exists", "value": "", "effect": ""}],
    "affinity": {},
    "imagePullSecrets": [],
    "hostNetwork": False,
    "hostPID": False,
    "priorityClassName": "",
    "schedulerName": "",
    "serviceAccountName": "",
    "nodeName": "",
    "automountServiceAccountToken": False,
    "terminationGracePeriodSeconds": 0,
    "securityContext": {"runAsNonRoot": False, "sysctls": [], "supplementalGroups": []},
    "hostAliases": [],
    "topologySpreadConstraints": [],
    "dnsPolicy": "",
    "subdomain": "",
}
TEMPLATE = {"metadata": {"labels": LABELS, "annotations": {}}, "spec": POD_SPEC}
ONCE = {**TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": []}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1024Mi"}, "limits": {}},
    "storageClassName": "",
    "volumeName": "",
}
METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "0.5"}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
LIMITS = {"type": "Container", "max": {"cpu": "2000m"}, "min": {}, "default": {"memory": "1024Mi"}}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [], "nonResourceURLs": []}
BACKEND = {"service": {"name": "s", "port": {"number": 80, "name": ""}}}
PATH = {"path": "/", "pathType": "Prefix", "backend": BACKEND}
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [{"apiGroups": ["x.example.com"], "apiVersions": ["v1"], "resources": ["xs"], "operations": ["CREATE"]}],
    "namespaceSelector": {},
    "matchConditions": [],
}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"}

Fields = dict[str, Any]
KINDS: dict[Kind, Fields] = {
    Kind("v1", "Namespace"): {},
    Kind("v1", "ConfigMap"): {"data": {"a": ""}, "binaryData": {}},
    Kind("v1", "Secret"): {"stringData": {"a": "ä", "b": ""}, "type": ""},
    Kind("v1", "ServiceAccount"): {"imagePullSecrets": [], "secrets": []},
    Kind("v1", "Service"): {
        "spec": {
            "selector": LABELS,
            "type": "",
            "sessionAffinity": "",
            "externalIPs": [],
            "publishNotReadyAddresses": False,
            "ports": [{"name": "a", "port": 80, "protocol": "", "targetPort": 80}, {"port": 81, "name": "b"}],
            "clusterIP": "",
        }
    },
    Kind("v1", "Service/headless"): {"spec": {"selector": {}, "clusterIP": "None", "ports": []}},
    Kind("v1", "PersistentVolumeClaim"): {"spec": CLAIM},
    Kind("v1", "LimitRange"): {"spec": {"limits": [LIMITS]}},
    Kind("v1", "ResourceQuota"): {"spec": {"hard": {"cpu": "4000m", "pods": 10, "memory": "0.5Gi"}, "scopes": []}},
    Kind("v1", "ReplicationController"): {"spec": {"replicas": 0, "selector": LABELS, "template": TEMPLATE}},
    Kind("apps/v1", "Deployment"): {
        "spec": {
            "replicas": 0,
            "paused": False,
            "minReadySeconds": 0,
            "selector": SELECTOR,
            "template": TEMPLATE,
            "strategy": {},
        }
    },
    Kind("apps/v1", "StatefulSet"): {
        "spec": {
            "replicas": 0,
            "serviceName": "s",
            "selector": SELECTOR,
            "template": TEMPLATE,
            "podManagementPolicy": "",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
        }
    },
    Kind("apps/v1", "DaemonSet"): {"spec": {"selector": SELECTOR, "template": TEMPLATE, "updateStrategy": {}}},
    Kind("apps/v1", "ReplicaSet"): {"spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}},
    Kind("batch/v1", "Job"): {"spec": {"suspend": True, "backoffLimit": 0, "template": ONCE, "parallelism": 1}},
    Kind("batch/v1", "CronJob"): {
        "spec": {
            "schedule": "0 0 1 1 *",
            "suspend": False,
            "concurrencyPolicy": "",
            "failedJobsHistoryLimit": 0,
            "jobTemplate": {"metadata": {"labels": {}}, "spec": {"template": ONCE}},
        }
    },
    Kind("networking.k8s.io/v1", "Ingress"): {
        "spec": {"rules": [{"host": "", "http": {"paths": [PATH]}}], "tls": [], "defaultBackend": BACKEND}
    },
    Kind("networking.k8s.io/v1", "NetworkPolicy"): {
        "spec": {
            "podSelector": {},
            "ingress": [{"from": [], "ports": [{"port": 80}]}],
            "egress": [],
            "policyTypes": ["Ingress", "Egress"],
        }
    },
    Kind("policy/v1", "PodDisruptionBudget"): {"spec": {"minAvailable": 0, "selector": SELECTOR}},
    Kind("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "spec": {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": TARGET, "metrics": [METRIC]}
    },
    Kind("rbac.authorization.k8s.io/v1", "Role"): {"rules": [RULE]},
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding"): {
        "roleRef": ROLE,
        "subjects": [
            {"kind": "User", "name": "a", "apiGroup": "", "namespace": ""},
            {"kind": "ServiceAccount", "name": "b", "namespace": "default", "apiGroup": ""},
        ],
    },
    Kind("coordination.k8s.io/v1", "Lease"): {
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T01:00:00.500000+01:00"}
    },
    Kind("discovery.k8s.io/v1", "EndpointSlice"): {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {}, "hostname": "h"}],
        "ports": [{"name": "", "port": 80}],
    },
    Kind("v1", "Endpoints"): {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80, "name": ""}]}]},
    Kind("storage.k8s.io/v1", "StorageClass"): {
        "provisioner": "x.example.com",
        "parameters": {},
        "mountOptions": [],
        "allowVolumeExpansion": False,
    },
    Kind("scheduling.k8s.io/v1", "PriorityClass"): {"value": 0, "globalDefault": False, "description": ""},
    Kind("v1", "PersistentVolume"): {
        "spec": {
            "capacity": {"storage": "1024Mi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x", "type": ""},
            "storageClassName": "",
            "mountOptions": [],
        }
    },
    Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): {"webhooks": [HOOK]},
    Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): {"webhooks": [HOOK]},
    Kind("rbac.authorization.k8s.io/v1", "ClusterRole"): {"rules": [RULE]},
    Kind("node.k8s.io/v1", "RuntimeClass"): {"handler": "x", "overhead": {"podFixed": {"cpu": "0.25"}}},
    Kind("networking.k8s.io/v1", "IngressClass"): {"spec": {"controller": "x.example.com/y"}},
}


class Writes(ClientObserver):
    def __init__(self) -> None:
        self.count = 0

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        self.count += method != "GET"


@pytest.fixture
async def operator(cluster: Cluster) -> AsyncIterator[tuple[Client, Writes]]:
    writes = Writes()
    async with connect(cluster.kubeconfig, observer=writes) as client:
        yield client, writes


@pytest.mark.parametrize("named", KINDS, ids=lambda kind: kind.kind)
async def test_twenty_runs_and_two_restarts_write_once(
    client: Client, operator: tuple[Client, Writes], namespace: str, named: Kind
) -> None:
    mine, writes = operator
    kind = Kind(named.api_version, named.kind.partition("/")[0])
    name = f"web-{namespace}".lower()[:50]
    key = ObjectKey(namespace if await mine.api.is_namespaced(kind) else "", name)

    def mutate(obj: Unstructured) -> None:
        obj["metadata"]["labels"] = {"app": "web", "empty": ""}
        obj["metadata"]["annotations"] = {}
        obj.update(copy.deepcopy(KINDS[named]))

    outcomes = []
    for run in range(20):
        if run in (7, 14):
            mine = Client(mine.api.transport)
        obj, outcome = await mine.create_or_update(kind, key, mutate)
        outcomes.append(outcome)
    try:
        assert outcomes == [Outcome.CREATED, *[Outcome.UNCHANGED] * 19]
        assert writes.count == 1
    finally:
        await client.delete(obj, grace_period=0 if kind.kind == "Pod" else None)


@pytest.mark.parametrize(
    ("data", "texts"),
    [({"a": "aGk="}, {}), ({"a": "aGk=", "b": "eA=="}, {"b": "x"}), ({"a": "aGk="}, {"b": "x"}), ({}, {"b": "x"})],
)
async def test_a_secret_with_data_and_string_data_put_in_whole_is_written_once(
    cluster: Cluster, namespace: str, data: dict[str, str], texts: dict[str, str]
) -> None:
    kind, given = Kind("v1", "Secret"), dict(data)

    def mutate(secret: Unstructured) -> None:
        secret["data"], secret["stringData"] = data, texts

    outcomes = []
    for _ in range(2):  # two processes
        async with cluster.client() as client:
            for _ in range(3):
                stored, outcome = await client.create_or_update(kind, "both", mutate, namespace=namespace)
                outcomes.append(outcome.value)
    encoded = {name: b64encode(text.encode()).decode() for name, text in texts.items()}
    assert stored["data"] == data | encoded
    assert outcomes == ["created", *["unchanged"] * 5]
    assert data == given, "the program's own map stays as it is"


@pytest.mark.parametrize("left", [{"a": "1"}, {}])
async def test_an_atomic_map_shrinks_also_after_a_restart(
    cluster: Cluster, namespace: str, left: dict[str, str]
) -> None:
    kind = Kind("v1", "ReplicationController")

    async def upsert(selector: dict[str, str]) -> Unstructured:
        def mutate(controller: Unstructured) -> None:
            container = {"name": "a", "image": "x"}
            pod = {"nodeSelector": selector, "containers": [container]}
            template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
            controller["spec"] = {"replicas": 0, "selector": {"a": "b"}, "template": template}

        async with cluster.client() as client:
            return (await client.create_or_update(kind, "web", mutate, namespace=namespace))[0]

    await upsert({"a": "1", "b": "2"})
    stored = await upsert(left)
    assert stored["spec"]["template"]["spec"].get("nodeSelector", {}) == left
