from __future__ import annotations

import pytest
import yaml

from kopylite.client.permissions import Permission, missing_permission, rbac_rule
from kopylite.errors import Forbidden


def test_a_refused_list_asks_for_what_a_cache_needs() -> None:
    error = Forbidden(
        'myapps.example.com is forbidden: User "system:serviceaccount:ops:myapp" cannot list resource "myapps" in API '
        'group "example.com" at the cluster scope'
    )
    rule = rbac_rule(error)
    assert yaml.safe_load(rule) == [{"apiGroups": ["example.com"], "resources": ["myapps"], "verbs": ["list", "watch"]}]
    assert "in a ClusterRole, bound to system:serviceaccount:ops:myapp" in rule


def test_a_refused_write_in_a_namespace_asks_for_just_that() -> None:
    error = Forbidden(
        'deployments.apps "web" is forbidden: User "alice" cannot patch resource "deployments/status" in API group '
        '"apps" in the namespace "shop"'
    )
    assert missing_permission(error) == Permission("patch", "deployments/status", "apps", "shop", "alice")
    rule = rbac_rule(error)
    assert yaml.safe_load(rule)[0]["verbs"] == ["patch"]
    assert "Role of namespace shop" in rule


@pytest.mark.parametrize(
    "message",
    ['pods "a" is forbidden: exceeded quota: compute', 'namespaces "x" is forbidden: being terminated', ""],
)
def test_a_refusal_that_is_not_about_rights_has_no_rule(message: str) -> None:
    assert rbac_rule(Forbidden(message)) == ""
    assert missing_permission(Forbidden(message)) is None
