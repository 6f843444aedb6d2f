"""Services get addresses and ports, keep them, and give them back with their type."""

from __future__ import annotations

import copy
import ipaddress
from typing import Any

from kopylite.apiserver.builtin.services import CLUSTER_IPS, NODE_PORTS, create_service, update_service
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.clock import SYSTEM_CLOCK

Object = dict[str, Any]


def environment(*services: Object) -> StrategyContext:
    return StrategyContext(SYSTEM_CLOCK, lambda storage: services if storage == "services" else ())


def service(uid: str = "U", **spec: Any) -> Object:
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    return {"metadata": {"name": "s", "uid": uid}, "spec": {"type": "ClusterIP", "ports": ports, **spec}, "status": {}}


def made(uid: str = "U", others: tuple[Object, ...] = (), **spec: Any) -> Object:
    obj = service(uid, **spec)
    create_service(obj, environment(*others))
    return obj


def changed(old: Object, **spec: Any) -> Object:
    new = copy.deepcopy(old)
    new["spec"] |= spec
    new["status"] = {"loadBalancer": {}}
    update_service(new, old, environment(old))
    found: Object = new["spec"]
    return found


def test_a_service_gets_an_address_of_its_own() -> None:
    one = made()
    two = made(others=(one,))
    address = one["spec"]["clusterIP"]
    assert ipaddress.ip_address(address) in CLUSTER_IPS
    assert one["spec"]["clusterIPs"] == [address]
    assert (one["spec"]["ipFamilies"], one["spec"]["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert made("V", (one,))["spec"]["clusterIP"] != address
    # The same uid may keep its address: it is the same service.
    assert two["spec"]["clusterIP"] == address


def test_headless_and_external_services_get_none() -> None:
    assert made(clusterIP="None", selector={"a": "b"})["spec"]["clusterIPs"] == ["None"]
    assert made(clusterIP="None")["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert "clusterIP" not in made(type="ExternalName", externalName="a.b")["spec"]


def test_node_ports_are_free_ones_and_shared_by_protocols() -> None:
    ports = [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]
    one = made(type="NodePort", ports=ports)
    numbers = [p["nodePort"] for p in one["spec"]["ports"]]
    assert numbers[0] == numbers[1] != numbers[2]
    assert all(n in NODE_PORTS for n in numbers)
    two = made("V", (one,), type="NodePort")
    assert two["spec"]["ports"][0]["nodePort"] not in numbers


def test_a_local_balancer_gets_a_health_check_port() -> None:
    spec = made(type="LoadBalancer", externalTrafficPolicy="Local", allocateLoadBalancerNodePorts=False)["spec"]
    assert spec["healthCheckNodePort"] in NODE_PORTS
    assert "nodePort" not in spec["ports"][0]


def test_an_update_that_leaves_allocations_out_keeps_them() -> None:
    old = made(type="NodePort")
    new = copy.deepcopy(old)
    new["spec"] = {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]}
    update_service(new, old, environment(old))
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]


def test_a_change_of_type_gives_back_what_it_no_longer_needs() -> None:
    old = made(type="NodePort", externalTrafficPolicy="Cluster")
    assert "nodePort" not in changed(old, type="ClusterIP")["ports"][0]
    assert "externalTrafficPolicy" not in changed(old, type="ClusterIP")
    external = changed(old, type="ExternalName", externalName="a.b")
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & external.keys()


def test_the_list_of_addresses_follows_the_single_one() -> None:
    old = made()
    assert changed(old, clusterIP="10.0.9.9")["clusterIPs"] == ["10.0.9.9"]
