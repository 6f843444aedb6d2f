"""The field labels that selectors may use, by built-in kind, besides metadata.name and metadata.namespace. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Object = dict[str, Any]
FieldReader = Callable[[Object], str]


def _text(value: Any) -> str:
    """A value as its label: booleans as true and false, nothing as the empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _at(path: str, *others: str, missing: str = "") -> FieldReader:
    """The value at the first dotted path that has one."""
    ways = [p.split(".") for p in (path, *others)]

    def read(obj: Object) -> str:
        for way in ways:
            value: Any = obj
            for name in way:
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None:
                return _text(value)
        return missing

    return read


def _pod_ips(pod: Object) -> str:
    return ",".join(ip.get("ip", "") for ip in (pod.get("status") or {}).get("podIPs") or ())


def _event_fields() -> Mapping[str, FieldReader]:
    # One storage for both groups: a stored event of either form answers to the labels of both.
    fields = {}
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"):
        reader = _at(f"involvedObject.{name}", f"regarding.{name}")
        fields[f"involvedObject.{name}"] = fields[f"regarding.{name}"] = reader
    fields["reason"] = _at("reason")
    fields["type"] = _at("type")
    component = _at("reportingComponent", "reportingController")
    fields["reportingComponent"] = fields["reportingController"] = component
    source = _at("source.component", "deprecatedSource.component", "reportingComponent", "reportingController")
    fields["source"] = source
    return fields


_EVENT = _event_fields()

FIELDS: Mapping[tuple[str, str], Mapping[str, FieldReader]] = {
    ("", "Pod"): {
        "spec.nodeName": _at("spec.nodeName"),
        "spec.restartPolicy": _at("spec.restartPolicy"),
        "spec.schedulerName": _at("spec.schedulerName"),
        "spec.serviceAccountName": _at("spec.serviceAccountName"),
        "spec.hostNetwork": _at("spec.hostNetwork", missing="false"),
        "status.phase": _at("status.phase"),
        "status.podIP": _at("status.podIP"),
        "status.podIPs": _pod_ips,
        "status.nominatedNodeName": _at("status.nominatedNodeName"),
    },
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "Secret"): {"type": _at("type")},
    ("", "Namespace"): {"status.phase": _at("status.phase")},
    ("", "Node"): {"spec.unschedulable": _at("spec.unschedulable", missing="false")},
    ("", "Service"): {"spec.clusterIP": _at("spec.clusterIP"), "spec.type": _at("spec.type")},
    ("", "ReplicationController"): {"status.replicas": _at("status.replicas", missing="0")},
    ("apps", "ReplicaSet"): {"status.replicas": _at("status.replicas", missing="0")},
    ("batch", "Job"): {"status.successful": _at("status.succeeded", missing="0")},
    ("certificates.k8s.io", "CertificateSigningRequest"): {"spec.signerName": _at("spec.signerName")},
    ("certificates.k8s.io", "ClusterTrustBundle"): {"spec.signerName": _at("spec.signerName")},
    ("resource.k8s.io", "ResourceSlice"): {
        "spec.nodeName": _at("spec.nodeName"),
        "spec.driver": _at("spec.driver"),
    },
}
