"""Services: cluster IPs, node ports, and what changes with the type. Pure, given the other services."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable
from typing import Any

from kopylite.apiserver.resources.strategy import StrategyContext

Object = dict[str, Any]

# kube-apiserver's defaults for --service-cluster-ip-range (as envtest and most tools set it) and
# --service-node-port-range.
CLUSTER_IPS = ipaddress.IPv4Network("10.0.0.0/16")
NODE_PORTS = range(30000, 32768)


def create_service(service: Object, context: StrategyContext) -> None:
    _allocate(service, context)


def update_service(service: Object, old: Object, context: StrategyContext) -> None:
    spec, before = service["spec"], old["spec"]
    _follow_cluster_ip(spec, before)
    if _needs_ip(before) and _needs_ip(spec):
        _keep_if_missing(spec, before, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    if _needs_node_port(before) and _needs_node_port(spec):
        ports = {(p.get("protocol"), p["port"]): p["nodePort"] for p in before.get("ports") or () if "nodePort" in p}
        taken = {p.get("nodePort") for p in spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            known = ports.get((port.get("protocol"), port["port"]))
            if "nodePort" not in port and known is not None and known not in taken:
                port["nodePort"] = known
    if _needs_health_check(before) and _needs_health_check(spec):
        _keep_if_missing(spec, before, "healthCheckNodePort")
    _drop_what_the_type_lacks(service, old)
    _allocate(service, context)


def _follow_cluster_ip(spec: Object, before: Object) -> None:
    """Clients that know only clusterIP change clusterIPs with it."""
    address = spec.get("clusterIP")
    if address != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec.pop("clusterIPs", None)
        if address:
            spec["clusterIPs"] = [address]


def _keep_if_missing(spec: Object, before: Object, *fields: str) -> None:
    for field in fields:
        if field in before:
            spec.setdefault(field, before[field])


def _drop_what_the_type_lacks(service: Object, old: Object) -> None:
    """Take back what the server set by itself for the old type, if the user left it as it was."""
    spec, before = service["spec"], old["spec"]

    def drop(needs: Callable[[Object], bool], *fields: str) -> None:
        if needs(before) and not needs(spec):
            for field in fields:
                if spec.get(field) == before.get(field):
                    spec.pop(field, None)

    if _needs_ip(before) and not _needs_ip(spec):
        if spec.get("clusterIP") == before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        drop(_needs_ip, "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
    if _needs_node_port(before) and not _needs_node_port(spec):
        known = {p.get("nodePort") for p in before.get("ports") or ()}
        ports = spec.get("ports") or ()
        if all(p.get("nodePort") in known or "nodePort" not in p for p in ports):
            for port in ports:
                port.pop("nodePort", None)
    drop(_needs_health_check, "healthCheckNodePort")
    drop(_is_load_balancer, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    drop(is_external, "externalTrafficPolicy")
    if not _is_load_balancer(spec):
        service["status"]["loadBalancer"] = {}


def _allocate(service: Object, context: StrategyContext) -> None:
    spec, metadata = service["spec"], service["metadata"]
    if not _needs_ip(spec):
        return
    _set_families(spec)
    wants_ip = not spec.get("clusterIP")
    ports = [p for p in spec.get("ports") or () if "nodePort" not in p] if _gets_node_ports(spec) else []
    wants_check = _needs_health_check(spec) and "healthCheckNodePort" not in spec
    if wants_ip or ports or wants_check:
        others = other_specs(service, context)
        seed = int.from_bytes(hashlib.sha256(str(metadata.get("uid", "")).encode()).digest()[:8], "big")
        if wants_ip:
            spec["clusterIP"] = _free_ip({o.get("clusterIP") for o in others}, seed)
        taken = taken_ports(others) | {p.get("nodePort") for p in spec.get("ports") or ()}
        shared: dict[int, int] = {}
        for port in ports:
            # One number may serve TCP and UDP of the same port.
            number = shared.get(port["port"]) or _free_port(taken, seed)
            taken.add(number)
            shared[port["port"]] = port["nodePort"] = number
        if wants_check:
            spec["healthCheckNodePort"] = _free_port(taken, seed)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


def other_specs(service: Object, context: StrategyContext) -> list[Object]:
    """Of all other Services, those that are not stored yet included."""
    services = [*context.objects("services"), *context.unfinished("services")]
    return [s["spec"] for s in services if s["metadata"].get("uid") != service["metadata"].get("uid")]


def taken_ports(specs: list[Object]) -> set[Any]:
    """Their node ports."""
    ports = {port["nodePort"] for spec in specs for port in spec.get("ports") or () if port.get("nodePort")}
    return ports | {spec["healthCheckNodePort"] for spec in specs if spec.get("healthCheckNodePort")}


def _set_families(spec: Object) -> None:
    headless_without_selector = spec.get("clusterIP") == "None" and not spec.get("selector")
    if headless_without_selector and "ipFamilyPolicy" not in spec and "ipFamilies" not in spec:
        spec["ipFamilyPolicy"], spec["ipFamilies"] = "RequireDualStack", ["IPv4", "IPv6"]
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("ipFamilies", ["IPv4"])


def _free_ip(taken: set[Any], seed: int) -> str:
    # The lower 256 addresses are left to those who ask for a fixed one, as upstream does.
    count = CLUSTER_IPS.num_addresses - 258
    for step in range(count):
        address = str(CLUSTER_IPS.network_address + 257 + (seed + step) % count)
        if address not in taken:
            return address
    return ""


def _free_port(taken: set[Any], seed: int) -> int:
    for step in range(len(NODE_PORTS)):
        port = NODE_PORTS[(seed + step) % len(NODE_PORTS)]
        if port not in taken:
            return port
    return 0


def _needs_ip(spec: Object) -> bool:
    return spec.get("type") != "ExternalName"


def _needs_node_port(spec: Object) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _gets_node_ports(spec: Object) -> bool:
    return spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def _needs_health_check(spec: Object) -> bool:
    return _is_load_balancer(spec) and spec.get("externalTrafficPolicy") == "Local"


def _is_load_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


def is_external(spec: Object) -> bool:
    """Can clients outside the cluster reach the service?"""
    return _needs_node_port(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))
