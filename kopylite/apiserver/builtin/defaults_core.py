"""Defaults of the core API group, by type. Pure; each function changes the object that it is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kopylite.objects.amounts import rounded_to_milli

Object = dict[str, Any]

# Possessive where it can be, so that no text is looked at twice.
_COMPONENT = r"[a-z0-9]++(?:(?:__|[._]|-++)[a-z0-9]++)*+"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.\-\[\]:]++/)?{_COMPONENT}(?:/{_COMPONENT})*+(?::(?P<tag>\w[\w.\-]{{0,127}}))?(?P<digest>@[^\s:]++:\S++)?"
)


def pull_policy(image: str) -> str:
    """Always for the tag latest, named or implied; IfNotPresent for all else, names that cannot be parsed too."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _resources(obj: Object) -> None:
    """Round what is finer than a thousandth up, in limits and requests alike."""
    for name in ("limits", "requests", "capacity", "allocatable", "default", "defaultRequest", "max", "min", "hard"):
        amounts = obj.get(name)
        if isinstance(amounts, dict):
            obj[name] = {k: rounded_to_milli(v) for k, v in amounts.items()}


def _pod(pod: Object) -> None:
    spec = pod["spec"]
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        limits = container["resources"].get("limits")
        if limits:
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
    spec.setdefault("enableServiceLinks", True)
    _host_ports(spec)


def _pod_spec(spec: Object) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")


def _host_ports(spec: Object) -> None:
    if spec.get("hostNetwork"):
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            for port in container.get("ports") or ():
                if port["containerPort"]:
                    port.setdefault("hostPort", port["containerPort"])


def _pod_status(status: Object) -> None:
    ip, ips = status.get("podIP"), status.get("podIPs")
    if ip and (not ips or ips[0].get("ip") != ip):
        status["podIPs"] = [{"ip": ip}]
    elif not ip and ips:
        status["podIP"] = ips[0]["ip"]


def _container(container: Object) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")


def _probe(probe: Object) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)


def _http_get(action: Object) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _volume(volume: Object) -> None:
    if volume.keys() == {"name"}:
        volume["emptyDir"] = {}
    image = volume.get("image")
    if image is not None:
        image.setdefault("pullPolicy", pull_policy(image.get("reference", "")))


def _setting(field: str, value: Any) -> Callable[[Object], None]:
    """A default of one field."""

    def default(obj: Object) -> None:
        obj.setdefault(field, value)

    return default


def _replication_controller(controller: Object) -> None:
    labels = (controller["spec"].get("template") or {}).get("metadata", {}).get("labels")
    if labels:
        controller["spec"].setdefault("selector", dict(labels))
        controller["metadata"].setdefault("labels", dict(labels))


def _service(service: Object) -> None:
    spec = service["spec"]
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in config:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port["targetPort"] in (0, ""):
            port["targetPort"] = port["port"]
    external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if external:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in service["status"]["loadBalancer"].get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _persistent_volume(volume: Object) -> None:
    volume["status"].setdefault("phase", "Pending")
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")


def _persistent_volume_claim(claim: Object) -> None:
    claim["status"].setdefault("phase", "Pending")


def _namespace(namespace: Object) -> None:
    name = namespace["metadata"].get("name")
    if name:
        namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _node_status(status: Object) -> None:
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])
    _resources(status)


def _endpoints(endpoints: Object) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _limit_range_item(item: Object) -> None:
    if item.get("type") == "Container":
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        for field, amounts in (("default", default), ("defaultRequest", requests)):
            if amounts:
                item[field] = amounts
    _resources(item)


DEFAULTS: Mapping[str, Callable[[Object], None]] = {
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.PodStatus": _pod_status,
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.ResourceRequirements": _resources,
    "core.v1.Probe": _probe,
    "core.v1.HTTPGetAction": _http_get,
    "core.v1.Volume": _volume,
    "core.v1.SecretVolumeSource": _setting("defaultMode", 0o644),
    "core.v1.ConfigMapVolumeSource": _setting("defaultMode", 0o644),
    "core.v1.DownwardAPIVolumeSource": _setting("defaultMode", 0o644),
    "core.v1.ProjectedVolumeSource": _setting("defaultMode", 0o644),
    "core.v1.ServiceAccountTokenProjection": _setting("expirationSeconds", 3600),
    "core.v1.HostPathVolumeSource": _setting("type", ""),
    "core.v1.ObjectFieldSelector": _setting("apiVersion", "v1"),
    "core.v1.ReplicationController": _replication_controller,
    "core.v1.Service": _service,
    "core.v1.Secret": _setting("type", "Opaque"),
    "core.v1.PersistentVolume": _persistent_volume,
    "core.v1.PersistentVolumeClaim": _persistent_volume_claim,
    "core.v1.PersistentVolumeClaimSpec": _setting("volumeMode", "Filesystem"),
    "core.v1.VolumeResourceRequirements": _resources,
    "core.v1.Namespace": _namespace,
    "core.v1.NamespaceStatus": _setting("phase", "Active"),
    "core.v1.NodeStatus": _node_status,
    "core.v1.Endpoints": _endpoints,
    "core.v1.LimitRangeItem": _limit_range_item,
    "core.v1.PersistentVolumeSpec": _resources,
    "core.v1.ResourceQuotaSpec": _resources,
}
