from __future__ import annotations

import pytest
import yaml

from kopylite.client.permissions import FIRST_PAUSE, MENDED_SECONDS, MissingPermissions, Permission, missing_permission
from kopylite.errors import Forbidden

OPERATOR = "system:serviceaccount:ops:myapp"


def refused(verb: str, resource: str = "deployments", namespace: str = "", user: str = OPERATOR) -> Forbidden:
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    sentence = f'User "{user}" cannot {verb} resource "{resource}" in API group "apps" {where}'
    return Forbidden(f'{resource}.apps "web" is forbidden: {sentence}')


def told(missing: MissingPermissions, *errors: Forbidden, now: float = 0.0) -> list[str]:
    for error in errors:
        missing.note(error, now)
    return list(missing.news(now))


def rules(text: str) -> list[dict[str, list[str]]]:
    """What a person copies out of a text: everything below its first line."""
    found: list[dict[str, list[str]]] = yaml.safe_load(text.partition("\n")[2])
    return found


def test_a_refusal_says_who_may_not_do_what_and_where() -> None:
    error = refused("patch", "deployments/status", "shop", "alice")
    assert missing_permission(error) == Permission("patch", "deployments/status", "apps", "shop", "alice")


def test_all_verbs_of_a_resource_are_one_rule_and_a_refused_list_asks_for_what_a_cache_needs() -> None:
    missing = MissingPermissions("myapp")
    [text] = told(missing, refused("patch"), refused("list"), refused("create", "replicasets"), refused("create"))
    assert rules(text) == [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "list", "patch", "watch"]},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["create"]},
    ]


def test_an_operator_on_all_namespaces_is_told_one_cluster_role_however_many_namespaces_refuse() -> None:
    missing = MissingPermissions("myapp")
    [text] = told(missing, *(refused("create", namespace=f"team-{number}") for number in range(500)))
    assert "in a ClusterRole, bound to system:serviceaccount:ops:myapp:" in text
    assert "team-" not in text
    assert "kubectl create clusterrolebinding myapp --clusterrole=myapp --serviceaccount=ops:myapp" in text
    assert told(missing, refused("create", namespace="team-501"), now=1000.0) == []


def test_an_operator_on_some_namespaces_is_told_roles_in_them_and_a_cluster_role_for_cluster_scoped_kinds() -> None:
    missing = MissingPermissions("myapp", limited=True)
    texts = told(
        missing,
        refused("create", namespace="b", user="alice"),
        refused("create", namespace="a", user="alice"),
        refused("get", "nodes", user="alice"),
    )
    [role] = [text for text in texts if "in Roles of namespace a, b (if there is one), bound to alice:" in text]
    [cluster_role] = [text for text in texts if "in a ClusterRole, bound to alice:" in text]
    assert rules(role) == [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]}]
    assert rules(cluster_role) == [{"apiGroups": ["apps"], "resources": ["nodes"], "verbs": ["get"]}]
    assert "kubectl create rolebinding myapp -n a --role=myapp --user=alice" in role


def test_many_namespaces_are_a_number() -> None:
    names = [f"n{number:03}" for number in range(500)]
    missing = MissingPermissions("myapp", limited=True)
    [text] = told(missing, *(refused("list", namespace=name) for name in names))
    assert "n000, n001, n002, n003, n004 and 495 more" in text
    assert len(text) < 600


def test_a_rule_that_grows_is_told_again_in_full_but_not_at_once() -> None:
    missing = MissingPermissions("myapp")
    assert len(told(missing, refused("create"))) == 1
    assert told(missing, refused("create"), now=100.0) == [], "known"
    assert len(told(missing, refused("patch"), now=100.0)) == 1
    assert told(missing, refused("delete"), now=101.0) == []
    [text] = told(missing, now=101.0 + 2 * FIRST_PAUSE)
    assert rules(text)[0]["verbs"] == ["create", "delete", "patch"]


def test_what_was_mended_and_is_refused_again_is_news() -> None:
    missing = MissingPermissions("myapp")
    assert len(told(missing, refused("create"))) == 1
    [text] = told(missing, refused("patch"), now=MENDED_SECONDS + 1)
    assert rules(text)[0]["verbs"] == ["patch"]


def test_nobody_is_told_to_give_rights_to_everybody() -> None:
    missing = MissingPermissions("myapp")
    [text] = told(missing, *(refused("list", name, user="system:anonymous") for name in ("pods", "nodes")))
    assert "mend the credentials" in text
    assert "bound" not in text
    assert "rules" not in text
    assert told(missing, refused("list", user="system:anonymous"), now=1000.0) == []


@pytest.mark.parametrize(
    "message",
    ['pods "a" is forbidden: exceeded quota: compute', 'namespaces "x" is forbidden: being terminated', ""],
)
def test_a_refusal_that_is_not_about_rights_has_no_rule(message: str) -> None:
    assert missing_permission(Forbidden(message)) is None
    assert told(MissingPermissions("myapp"), Forbidden(message)) == []
