"""Validation of services, on create and on update. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.services import CLUSTER_IPS, NODE_PORTS, is_external, other_specs, taken_ports
from kopylite.apiserver.builtin.validation_containers import PROTOCOLS
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_SPREADS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_MAX_STICKY_SECONDS = 86400


def service(obj: Object) -> Errors:
    spec = obj["spec"]
    kind = spec.get("type")
    found: Errors = []
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
        found.append(required("spec.ports"))
    if kind == "LoadBalancer" and spec.get("clusterIP") == "None":
        found.append(invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services"))
    if kind == "NodePort" and spec.get("clusterIP") == "None":
        found.append(invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services"))
    if kind == "ExternalName":
        found += _external_name(spec)
    names: set[str] = set()
    for index, port in enumerate(ports):
        found += _port(port, f"spec.ports[{index}]", names, named=len(ports) > 1)
    found += checks.labels(spec.get("selector"), "spec.selector")
    found += _affinity(spec)
    found += _cluster_ips(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        found += checks.ip_address(f"spec.externalIPs[{index}]", address)
    found += checks.one_of("spec.type", kind, _TYPES, needed=True)
    found += _port_clashes(ports)
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                text = "may not be used when `type` is 'ClusterIP'"
                found.append(forbidden(f"spec.ports[{index}].nodePort", text))
    found += _load_balancer(spec)
    if kind == "LoadBalancer" and spec.get("loadBalancerClass"):
        found += checks.qualified_name("spec.loadBalancerClass", spec["loadBalancerClass"])
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in _SPREADS:
        found.append(unsupported("spec.trafficDistribution", spread, _SPREADS))
    found += _traffic(spec)
    return found + _allocations(spec)


def _external_name(spec: Object) -> Errors:
    found: Errors = []
    if spec.get("clusterIPs") or spec.get("clusterIP"):
        found.append(forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*found, required("spec.externalName")]
    return found + checks.subdomain("spec.externalName", name)


def _port(port: Object, path: str, names: set[str], *, named: bool) -> Errors:
    found: Errors = []
    name = port.get("name", "")
    if not name and named:
        found.append(required(f"{path}.name"))
    elif name:
        found += checks.texts(f"{path}.name", name, label_errors(name))
        if name in names:
            found.append(duplicate(f"{path}.name", name))
        names.add(name)
    found += checks.port_number(f"{path}.port", port["port"])
    found += checks.one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS, needed=True)
    if port.get("appProtocol"):
        found += checks.qualified_name(f"{path}.appProtocol", port["appProtocol"])
    return found + checks.port_number_or_name(f"{path}.targetPort", port["targetPort"])


def _port_clashes(ports: Collection[Object]) -> Errors:
    found: Errors = []
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port["port"])
        if key in seen:
            shown = checks.go_struct(
                {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0}
            )
            found.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add(key)
    return found


def _affinity(spec: Object) -> Errors:
    kind = spec.get("sessionAffinity")
    found = checks.one_of("spec.sessionAffinity", kind, ("ClientIP", "None"), needed=True)
    path = "spec.sessionAffinityConfig"
    if kind == "ClientIP":
        seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is not None and not 0 < seconds <= _MAX_STICKY_SECONDS:
            text = f"must be greater than 0 and less than {_MAX_STICKY_SECONDS}"
            found.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, text))
    elif kind == "None" and spec.get("sessionAffinityConfig") is not None:
        text = "must not be set when session affinity is None"
        found.append(forbidden(path, text))
    return found


def _cluster_ips(spec: Object) -> Errors:
    if spec.get("type") == "ExternalName":
        return []
    addresses = spec.get("clusterIPs") or []
    found = checks.one_of(
        "spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), ("PreferDualStack", "RequireDualStack", "SingleStack")
    )
    found += _families(spec)
    if addresses and spec.get("clusterIP") and addresses[0] != spec["clusterIP"]:
        found.append(invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"))
    for index, address in enumerate(addresses):
        if address != "None":
            found += checks.ip_address(f"spec.clusterIPs[{index}]", address)
    return found


def _load_balancer(spec: Object) -> Errors:
    balanced = spec.get("type") == "LoadBalancer"
    found: Errors = []
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not balanced:
        found.append(forbidden("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'"))
    for index, block in enumerate(ranges):
        found += checks.cidr(f"spec.LoadBalancerSourceRanges[{index}]", block)
    for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(field) is not None and not balanced:
            found.append(forbidden(f"spec.{field}", "may only be used when `type` is 'LoadBalancer'"))
    return found


def _traffic(spec: Object) -> Errors:
    policy = spec.get("externalTrafficPolicy")
    found: Errors = []
    if policy and not is_external(spec):
        text = "may only be set for externally-accessible services"
        found.append(invalid("spec.externalTrafficPolicy", policy, text))
    elif policy:
        found += checks.one_of("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    port = spec.get("healthCheckNodePort")
    if port and not (spec.get("type") == "LoadBalancer" and policy == "Local"):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        found.append(invalid("spec.healthCheckNodePort", port, text))
    internal = spec.get("internalTrafficPolicy")
    return found + checks.one_of("spec.internalTrafficPolicy", internal, ("Cluster", "Local"))


def _allocations(spec: Object) -> Errors:
    """What the allocators would refuse."""
    found: Errors = []
    address = spec.get("clusterIP")
    if address and address != "None" and spec.get("type") != "ExternalName":
        try:
            outside = ipaddress.ip_address(address) not in CLUSTER_IPS
        except ValueError:
            outside = False
        if outside:
            text = (
                f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
                f"The range of valid IPs is {CLUSTER_IPS}"
            )
            found.append(invalid("spec.clusterIPs", spec.get("clusterIPs"), text))
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort")
        if number and spec.get("type") != "ClusterIP" and number not in NODE_PORTS:
            low, high = NODE_PORTS.start, NODE_PORTS.stop - 1
            text = f"provided port is not in the valid range. The range of valid ports is {low}-{high}"
            found.append(invalid(f"spec.ports[{index}].nodePort", number, text))
    return found


def allocated(obj: Object, context: StrategyContext) -> Errors:
    """The first thing that another Service has already; upstream's allocators are asked before all else, and alone."""
    if service(obj):
        return []
    found: Errors = []
    spec, others = obj["spec"], other_specs(obj, context)
    address = spec.get("clusterIP")
    if address and address != "None" and any(other.get("clusterIP") == address for other in others):
        text = f"failed to allocate IP {address}: provided IP is already allocated"
        found.append(invalid("spec.clusterIPs", spec.get("clusterIPs"), text))
    taken = taken_ports(others)
    for index, port in enumerate(spec.get("ports") or ()):
        if port.get("nodePort") in taken:
            text = "provided port is already allocated"
            found.append(invalid(f"spec.ports[{index}].nodePort", port["nodePort"], text))
    return found[:1]


def _families(spec: Object) -> Errors:
    """This cluster has IPv4 only; what needs no addresses may want more."""
    free = spec.get("clusterIP") == "None" and not spec.get("selector")
    found: Errors = []
    if spec.get("ipFamilyPolicy") == "RequireDualStack" and not free:
        text = "this cluster is not configured for dual-stack services"
        found.append(invalid("spec.ipFamilyPolicy", "RequireDualStack", text))
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in ("IPv4", "IPv6"):
            found.append(unsupported(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6")))
        elif family == "IPv6" and not free:
            found.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
    return found


def update_service(new: Object, old: Object) -> Errors:
    """An allocated address stays; so does the primary family."""
    spec, before = new["spec"], old["spec"]
    found: Errors = []
    named = spec.get("type") == "ExternalName" or before.get("type") == "ExternalName"
    if not named and _families(spec):
        return found  # without addresses to give, upstream looks no further
    if not named and before.get("clusterIP") and spec.get("clusterIP") != before["clusterIP"]:
        found.append(invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set"))
    families, known = spec.get("ipFamilies"), before.get("ipFamilies")
    if not named and families and known and families[0] != known[0]:
        found.append(invalid("spec.ipFamilies[0]", families, "may not change once set"))
    kind = "LoadBalancer"
    if spec.get("type") == kind and before.get("type") == kind:
        found += checks.immutable(
            "spec.loadBalancerClass",
            spec.get("loadBalancerClass"),
            before.get("loadBalancerClass"),
            "may not change once set",
        )
    return found


def service_status(new: Object, old: Object) -> Errors:
    ingress = (new["status"].get("loadBalancer") or {}).get("ingress") or ()
    if ingress and new["spec"].get("type") != "LoadBalancer":
        text = "may only be used when `spec.type` is 'LoadBalancer'"
        return [forbidden("status.loadBalancer.ingress", text)]
    found: Errors = []
    for index, entry in enumerate(ingress):
        found += checks.one_of(f"status.loadBalancer.ingress[{index}].ipMode", entry.get("ipMode"), ("Proxy", "VIP"))
        if entry.get("ip"):
            found += checks.ip_address(f"status.loadBalancer.ingress[{index}].ip", entry["ip"])
        found += checks.subdomain(f"status.loadBalancer.ingress[{index}].hostname", entry.get("hostname"))
    return found
