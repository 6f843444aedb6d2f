"""Aggregated ClusterRoles: their rules follow the roles that they select."""

from __future__ import annotations

from typing import Any

from tests.unit.apiserver.inprocess import Api, serving

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SELECTS = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}


def rule(resource: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}


async def rules(api: Api, name: str) -> Any:
    await api.settle()
    role = await api.get(f"{ROLES}/{name}")
    assert role is not None
    return role["rules"]


async def test_the_rules_are_those_of_the_selected_roles_by_name_each_once() -> None:
    async with serving("clusterrole-aggregation") as api:
        await api.create(ROLES, "all", content={"aggregationRule": SELECTS, "rules": [rule("secrets")]})
        await api.create(ROLES, "b", content={"rules": [rule("pods"), rule("nodes")]}, labels={"to": "all"})
        await api.create(ROLES, "a", content={"rules": [rule("nodes")]}, labels={"to": "all"})
        await api.create(ROLES, "c", content={"rules": [rule("events")]})
        assert await rules(api, "all") == [rule("nodes"), rule("pods")]
        await api.delete(f"{ROLES}/b")
        assert await rules(api, "all") == [rule("nodes")]


async def test_admin_edit_and_view_have_rules_and_what_a_crd_adds_to_them() -> None:
    async with serving("clusterrole-aggregation") as api:
        counts = [len(await rules(api, name)) for name in ("view", "edit", "admin")]
        assert 0 < counts[0] < counts[1] < counts[2]
        label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        await api.create(ROLES, "crontabs", content={"rules": [rule("crontabs")]}, labels=label)
        for name in ("view", "edit", "admin"):
            assert rule("crontabs") in await rules(api, name), name


async def test_a_role_that_only_aggregates_grants_nothing_without_the_controller() -> None:
    async with serving() as api:
        assert await rules(api, "view") is None
