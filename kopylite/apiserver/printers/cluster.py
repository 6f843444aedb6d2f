"""Core kinds that are no workloads: configuration, networking, nodes, storage, events."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.printers.cells import (
    AGE,
    NONE,
    UNKNOWN,
    UNSET,
    Object,
    at,
    columns,
    joined,
    labels_text,
    read,
    text_at,
)
from kopylite.apiserver.printers.tables import Since, name_cell
from kopylite.apiserver.request.selectors import selector_text
from kopylite.apiserver.resources.registry import Column

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_ROLE_PREFIX = "node-role.kubernetes.io/"


def _count(*paths: str) -> Any:
    return lambda obj: sum(len(read(obj, path, {})) for path in paths)


def _service_external(service: Object) -> str:
    kind, external = read(service, "spec.type"), read(service, "spec.externalIPs", [])
    if kind == "ExternalName":
        return str(read(service, "spec.externalName", ""))
    if kind == "LoadBalancer":
        ingress = read(service, "status.loadBalancer.ingress", [])
        found = [i.get("ip") or i.get("hostname") or "" for i in ingress]
        return ",".join(dict.fromkeys((*found, *external))) or "<pending>"
    return joined(external)


def _service_ports(service: Object) -> str:
    shown = []
    for port in read(service, "spec.ports", []):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return joined(shown)


def _endpoints(obj: Object) -> str:
    shown: list[str] = []
    for subset in read(obj, "subsets", []):
        for address in subset.get("addresses") or ():
            ports = subset.get("ports") or ()
            shown.extend(f"{address.get('ip')}:{port.get('port')}" for port in ports)
            if not ports:
                shown.append(str(address.get("ip")))
    return joined(shown[:3]) + (f" + {len(shown) - 3} more..." if len(shown) > 3 else "")


def _slice_endpoints(obj: Object) -> str:
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return _first(addresses, UNSET)


def _slice_ports(obj: Object) -> str:
    return _first([port.get("port", "*") for port in obj.get("ports") or ()], UNSET)


def _first(values: list[Any], empty: str, limit: int = 3) -> str:
    if not values:
        return empty
    more = f" + {len(values) - limit} more..." if len(values) > limit else ""
    return ",".join(str(v) for v in values[:limit]) + more


def _node_status(node: Object) -> str:
    ready = next((c for c in read(node, "status.conditions", []) if c.get("type") == "Ready"), None)
    shown = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if read(node, "spec.unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


def _node_roles(node: Object) -> str:
    labels = read(node, "metadata.labels", {})
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return joined(sorted(roles - {""}))


def _node_address(kind: str) -> Any:
    return lambda node: next(
        (a.get("address", "") for a in read(node, "status.addresses", []) if a.get("type") == kind), NONE
    )


def _access_modes(path: str) -> Any:
    return lambda obj: ",".join(_ACCESS_MODES.get(mode, mode) for mode in read(obj, path, []))


def _claim(volume: Object) -> str:
    claim = read(volume, "spec.claimRef", {})
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _phase(obj: Object) -> str:
    return "Terminating" if read(obj, "metadata.deletionTimestamp") else str(read(obj, "status.phase", ""))


def _last_seen(event: Object) -> Any:
    stamp = (
        read(event, "series.lastObservedTime")
        or read(event, "lastTimestamp")
        or read(event, "deprecatedLastTimestamp")
        or read(event, "firstTimestamp")
        or read(event, "eventTime")
    )
    return Since(stamp) if stamp else UNKNOWN


def _first_seen(event: Object) -> Any:
    stamp = read(event, "firstTimestamp") or read(event, "deprecatedFirstTimestamp") or read(event, "eventTime")
    return Since(stamp) if stamp else UNKNOWN


def _event_object(event: Object) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(event: Object) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host and component else component or host


def _kernel(node: Object) -> str:
    version, machine = (read(node, f"status.nodeInfo.{field}") for field in ("kernelVersion", "architecture"))
    return f"{version} ({machine})" if version and machine else str(version or UNKNOWN)


def _event_count(event: Object) -> int:
    return int(read(event, "series.count") or event.get("count") or event.get("deprecatedCount") or 1)


def _ingress_hosts(ingress: Object) -> str:
    hosts = [rule.get("host") or "*" for rule in read(ingress, "spec.rules", [])]
    return _first(hosts, "*")


def _ingress_address(ingress: Object) -> str:
    found = read(ingress, "status.loadBalancer.ingress", [])
    return ",".join(sorted({i.get("ip") or i.get("hostname") or "" for i in found}))


def _ingress_parameters(obj: Object) -> str:
    given = read(obj, "spec.parameters")
    if not given:
        return NONE
    group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
    return f"{given.get('kind', '')}{group}/{given.get('name', '')}"


_EVENTS = (
    Column("Last Seen", "string", _last_seen),
    Column("Type", "string", at("type")),
    Column("Reason", "string", at("reason")),
    Column("Object", "string", _event_object),
    Column("Subobject", "string", at("involvedObject.fieldPath"), priority=1),
    Column("Source", "string", _event_source, priority=1),
    Column("Message", "string", lambda e: str(e.get("message") or e.get("note") or "").strip()),
    Column("First Seen", "string", _first_seen, priority=1),
    Column("Count", "string", _event_count, priority=1),
    Column("Name", "string", name_cell, "name", priority=1),
)

CLUSTER = {
    "configmaps": columns(("Data", _count("data", "binaryData")), AGE),
    "secrets": columns(("Type", at("type")), ("Data", _count("data")), AGE),
    "serviceaccounts": columns(AGE),
    "namespaces": columns(("Status", at("status.phase")), AGE),
    "events": _EVENTS,
    "endpoints": columns(("Endpoints", _endpoints), AGE),
    "services": columns(
        ("Type", at("spec.type")),
        ("Cluster-IP", text_at("spec.clusterIP")),
        ("External-IP", _service_external),
        ("Port(s)", _service_ports),
        AGE,
        ("Selector*", lambda obj: labels_text(read(obj, "spec.selector"))),
    ),
    "endpointslices.discovery.k8s.io": columns(
        ("AddressType", at("addressType")), ("Ports", _slice_ports), ("Endpoints", _slice_endpoints), AGE
    ),
    "nodes": columns(
        ("Status", _node_status),
        ("Roles", _node_roles),
        AGE,
        ("Version", at("status.nodeInfo.kubeletVersion")),
        ("Internal-IP*", _node_address("InternalIP")),
        ("External-IP*", _node_address("ExternalIP")),
        ("OS-Image*", text_at("status.nodeInfo.osImage", UNKNOWN)),
        ("Kernel-Version*", _kernel),
        ("Container-Runtime*", text_at("status.nodeInfo.containerRuntimeVersion", UNKNOWN)),
    ),
    "persistentvolumes": columns(
        ("Capacity", at("spec.capacity.storage")),
        ("Access Modes", _access_modes("spec.accessModes")),
        ("Reclaim Policy", at("spec.persistentVolumeReclaimPolicy")),
        ("Status", _phase),
        ("Claim", _claim),
        ("StorageClass", at("spec.storageClassName")),
        ("VolumeAttributesClass", text_at("spec.volumeAttributesClassName", UNSET)),
        ("Reason", at("status.reason")),
        AGE,
        ("VolumeMode*", text_at("spec.volumeMode", UNSET)),
    ),
    "persistentvolumeclaims": columns(
        ("Status", _phase),
        ("Volume", at("spec.volumeName")),
        ("Capacity", lambda obj: read(obj, "status.capacity.storage", "") if read(obj, "spec.volumeName") else ""),
        ("Access Modes", _access_modes("status.accessModes")),
        ("StorageClass", at("spec.storageClassName")),
        ("VolumeAttributesClass", text_at("spec.volumeAttributesClassName", UNSET)),
        AGE,
        ("VolumeMode*", text_at("spec.volumeMode", UNSET)),
    ),
    "ingresses.networking.k8s.io": columns(
        ("Class", text_at("spec.ingressClassName")),
        ("Hosts", _ingress_hosts),
        ("Address", _ingress_address),
        ("Ports", lambda obj: "80, 443" if read(obj, "spec.tls") else "80"),
        AGE,
    ),
    "ingressclasses.networking.k8s.io": columns(
        ("Controller", at("spec.controller")), ("Parameters", _ingress_parameters), AGE
    ),
    "networkpolicies.networking.k8s.io": columns(
        ("Pod-Selector", lambda obj: selector_text(read(obj, "spec.podSelector", {})) or NONE), AGE
    ),
    "storageclasses.storage.k8s.io": columns(
        ("Provisioner", at("provisioner")),
        ("ReclaimPolicy", at("reclaimPolicy", "Delete")),
        ("VolumeBindingMode", text_at("volumeBindingMode", UNSET)),
        ("AllowVolumeExpansion", lambda obj: bool(obj.get("allowVolumeExpansion"))),
        AGE,
    ),
    "csinodes.storage.k8s.io": columns(("Drivers", lambda obj: len(read(obj, "spec.drivers", [])), "integer"), AGE),
    "leases.coordination.k8s.io": columns(("Holder", at("spec.holderIdentity")), AGE),
    "runtimeclasses.node.k8s.io": columns(("Handler", at("handler")), AGE),
}
