from __future__ import annotations

import yaml

from kopylite.client import Permission
from kopylite.doctor.rights import attributes, judge, rule

ACCOUNT = "system:serviceaccount:shop:operator"
MISSING = [
    Permission("patch", "orders/status", "shop.example.com"),
    Permission("update", "leases", "coordination.k8s.io", "shop", name="shop"),
    Permission("list", "pods", ""),
]


def test_the_fix_is_a_role_with_its_binding_for_each_place() -> None:
    everywhere, here = judge(MISSING, "shop", ACCOUNT)
    assert "may not list pods, patch orders.shop.example.com/status" in everywhere.what
    text = everywhere.fix.removeprefix("kubectl apply -f - <<'END'\n").removesuffix("END")
    role, binding = yaml.safe_load_all(text)
    assert role["kind"] == "ClusterRole"
    assert {"apiGroups": ["shop.example.com"], "resources": ["orders/status"], "verbs": ["patch"]} in role["rules"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "operator", "namespace": "shop"}]
    assert "namespace: shop" in here.fix
    assert "update leases.coordination.k8s.io (shop)" in here.what


def test_that_writes_are_a_guess_is_said_only_where_writes_are_missing() -> None:
    assert "--rbac-from" in next(iter(judge(MISSING[:1], "shop", "", ["shop"]))).what
    assert "--rbac-from" not in next(iter(judge(MISSING[1:2], "shop", "", ["shop"]))).what
    assert "--rbac-from" not in next(iter(judge(MISSING[2:], "shop", "", ["shop"]))).what
    assert list(judge([], "shop", "")) == []


def test_a_rule_fits_on_a_line_and_a_review_has_the_subresource() -> None:
    assert rule(MISSING[:1]) == '{apiGroups: ["shop.example.com"], resources: ["orders/status"], verbs: ["patch"]}'
    assert attributes(MISSING[0]) == {
        "verb": "patch", "group": "shop.example.com", "resource": "orders", "subresource": "status"
    }  # fmt: skip
    assert attributes(MISSING[1])["name"] == "shop"
