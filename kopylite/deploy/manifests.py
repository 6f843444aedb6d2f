"""The objects that bring an operator into a cluster, as documents. Pure: the same input gives the same text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopylite.client import Permission
from kopylite.deploy.needs import Needs
from kopylite.deploy.rules import rules_of
from kopylite.webhooks.configurations import WebhookPlace, service_of

Object = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
METRICS_PORT, HEALTH_PORT, WEBHOOK_PORT = 8080, 8081, 9443
# `kopylite run` gives reconciles the first, and itself some 10 s more; then there is room for the kubelet.
GRACE_PERIOD, TERMINATION = 30, 45
# A namespace that is there in each cluster.
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """What is to be deployed, and how.

    Args:
        name: of all objects: the App's.
        targets: as `kopylite run` takes them, in the image.
        image: of the container.
        namespace: where the operator lives.
        watched: the namespaces that it is limited to, names and globs; none: all.
        labelled: the selector of the namespaces that it is limited to; "": none.
        replicas: with more than one, one works and the others stand by.
        elect: whether leader election is switched on by the environment.
        shards: their number, by the environment; None: as the App says.
        several: whether processes can work side by side; if not, one ends before another one begins.
        webhooks: the name of the Service by which the API server calls its webhooks; "": it has none.
    """

    name: str
    targets: tuple[str, ...]
    image: str
    namespace: str
    watched: tuple[str, ...] = ()
    labelled: str = ""
    replicas: int = 1
    elect: bool = False
    shards: int | None = None
    several: bool = False
    webhooks: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """By which the pods are found."""
        return {"app.kubernetes.io/name": self.name}


def manifests(deployment: Shipment, needs: Needs, crds: Sequence[Object], *, monitor: bool = False) -> dict[str, str]:
    """The files, by name; in the order of their names they can be applied."""
    from kopylite.objects.yamlwrite import to_yaml

    files = documents(deployment, needs, crds, monitor=monitor)
    return {name: to_yaml(objects) for name, objects in files.items() if objects}


def documents(
    deployment: Shipment, needs: Needs, crds: Sequence[Object], *, monitor: bool = False
) -> dict[str, Sequence[Object]]:
    """What is in each file."""
    return {
        "00-namespace.yaml": [] if deployment.namespace == DEFAULT else [_namespace(deployment)],
        "10-crds.yaml": crds,
        "20-rbac.yaml": access(deployment, needs.permissions),
        "30-operator.yaml": [*_leases(deployment, needs), _workload(deployment), *_around(deployment)],
        "40-monitoring.yaml": [_monitor(deployment)] if monitor else [],
    }


def kustomization(deployment: Shipment, files: Iterable[str]) -> str:
    """The kustomization.yaml for some files; an overlay changes the image by its name."""
    from kopylite.objects.yamlwrite import to_yaml

    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return to_yaml([{**head, "resources": sorted(files)}])


def access(deployment: Shipment, permissions: Iterable[Permission]) -> list[Object]:
    """The ServiceAccount, and a role with its binding for each place where it has rights."""
    places: dict[str, list[Permission]] = {}
    for each in permissions:
        places.setdefault(each.namespace, []).append(each)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(deployment, deployment.namespace)}
    objects: list[Object] = [account]
    for namespace, found in sorted(places.items()):
        prefix = "" if namespace else "Cluster"
        rules = [rule.to_wire() for rule in rules_of(found)]
        role = _rbac(deployment, f"{prefix}Role", namespace, rules=rules)
        reference = {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": deployment.name}
        subject = {"kind": "ServiceAccount", "name": deployment.name, "namespace": deployment.namespace}
        objects += [role, _rbac(deployment, f"{prefix}RoleBinding", namespace, roleRef=reference, subjects=[subject])]
    return objects


def _metadata(deployment: Shipment, namespace: str = "", name: str = "") -> Object:
    metadata: Object = {"name": name or deployment.name}
    if namespace:
        metadata["namespace"] = namespace
    return {**metadata, "labels": deployment.labels}


def _rbac(deployment: Shipment, kind: str, namespace: str, **content: Any) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": _metadata(deployment, namespace), **content}


def _namespace(deployment: Shipment) -> Object:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": deployment.namespace, "labels": labels}}


def _leases(deployment: Shipment, needs: Needs) -> list[Object]:
    """Without a spec, so that applying one again takes it from nobody; with none at all, the first start would wait."""
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return [{**head, "metadata": _metadata(deployment, deployment.namespace, name)} for name in needs.leases]


def _workload(deployment: Shipment) -> Object:
    pod: Object = {
        "serviceAccountName": deployment.name,
        "terminationGracePeriodSeconds": TERMINATION,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(deployment)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    if deployment.several:
        pod["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": deployment.labels},
            }
        ]
    spec = {
        "replicas": deployment.replicas,
        # Without leader election two must never run, not even during an update.
        "strategy": {"type": "RollingUpdate" if deployment.several else "Recreate"},
        "selector": {"matchLabels": deployment.labels},
        "template": {"metadata": {"labels": deployment.labels}, "spec": pod},
    }
    metadata = _metadata(deployment, deployment.namespace)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _container(deployment: Shipment) -> Object:
    environment = {
        "KOPYLITE_METRICS_ADDRESS": f"0.0.0.0:{METRICS_PORT}",
        "KOPYLITE_HEALTH_ADDRESS": f"0.0.0.0:{HEALTH_PORT}",
        "KOPYLITE_LOG_FORMAT": "json",
        "KOPYLITE_GRACE_PERIOD": f"{GRACE_PERIOD}s",
        "KOPYLITE_NAMESPACE": ",".join(deployment.watched),
        "KOPYLITE_NAMESPACES_LABELLED": deployment.labelled,
        "KOPYLITE_LEADER_ELECT": "true" if deployment.elect else "",
        "KOPYLITE_SHARDS": "" if deployment.shards is None else str(deployment.shards),
        "KOPYLITE_WEBHOOK_ADDRESS": f"0.0.0.0:{WEBHOOK_PORT}" if deployment.webhooks else "",
        "KOPYLITE_WEBHOOK_MANAGE": "true" if deployment.webhooks else "",
    }
    return {
        "name": "operator",
        "image": deployment.image,
        "command": ["python", "-m", "kopylite", "run", *deployment.targets],
        "env": [{"name": name, "value": value} for name, value in environment.items() if value],
        "ports": [{"name": name, "containerPort": port} for name, port in _ports(deployment).items()],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _ports(deployment: Shipment) -> dict[str, int]:
    ports = {"metrics": METRICS_PORT, "health": HEALTH_PORT}
    return ports | ({"webhooks": WEBHOOK_PORT} if deployment.webhooks else {})


def _around(deployment: Shipment) -> list[Object]:
    """What reaches the pods, and what keeps one of them."""
    metadata, selector = _metadata(deployment, deployment.namespace), {"matchLabels": deployment.labels}
    ports = [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]
    service = {"selector": deployment.labels, "ports": ports}
    # What comes in is known; where the API server is, which calls webhooks, and what the operator talks to, is not.
    ingress = [{"ports": [{"protocol": "TCP", "port": name} for name in _ports(deployment)]}]
    policy = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    budget = {"maxUnavailable": 1, "selector": selector}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        *_webhook_service(deployment),
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": budget},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": policy},
    ]


def _webhook_service(deployment: Shipment) -> list[Object]:
    if not deployment.webhooks:
        return []
    place = WebhookPlace(deployment.namespace, deployment.webhooks)
    service = service_of(deployment.name, place, WEBHOOK_PORT)
    return [{**service, "metadata": _metadata(deployment, deployment.namespace, deployment.webhooks)}]


def _monitor(deployment: Shipment) -> Object:
    spec: Mapping[str, Any] = {"selector": {"matchLabels": deployment.labels}, "endpoints": [{"port": "metrics"}]}
    metadata = _metadata(deployment, deployment.namespace)
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": metadata, "spec": spec}
