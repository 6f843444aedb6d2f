from __future__ import annotations

import pytest
import yaml

from kopylite.client import Permission
from kopylite.deploy.manifests import Shipment, access

SHIPMENT = Shipment(name="shop", targets=("shop:app",), image="i", namespace="ops")


@pytest.mark.parametrize("order", [1, -1])
def test_each_place_has_a_role_bound_to_the_one_account_whatever_the_order(order: int) -> None:
    permissions = [
        Permission("get", "pods", "", "b"),
        Permission("list", "nodes", ""),
        Permission("get", "pods", "", "a"),
    ]
    found = access(SHIPMENT, permissions[::order])
    assert [(one["kind"], one["metadata"].get("namespace")) for one in yaml.safe_load(yaml.safe_dump(found))] == [
        ("ServiceAccount", "ops"),
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "a"),
        ("RoleBinding", "a"),
        ("Role", "b"),
        ("RoleBinding", "b"),
    ]
    for binding in found[2::2]:
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "shop", "namespace": "ops"}]
        assert binding["roleRef"]["name"] == "shop"
