"""The ClusterRoles of a real server's bootstrap policy that users bind or look at, and their bindings. Data only."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.request.request import AUTHENTICATED, MASTERS, UNAUTHENTICATED

_GROUP = "rbac.authorization.k8s.io"
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", *_HEALTH[2:]]
_REVIEWS = {
    "authorization.k8s.io": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    "authentication.k8s.io": ["selfsubjectreviews"],
}

# By name: its rules, and the groups that have it.
_ROLES: dict[str, tuple[list[dict[str, Any]], tuple[str, ...]]] = {
    "cluster-admin": (
        [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}],
        (MASTERS,),
    ),
    "system:discovery": ([{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}], (AUTHENTICATED,)),
    "system:basic-user": (
        [{"apiGroups": [group], "resources": names, "verbs": ["create"]} for group, names in _REVIEWS.items()],
        (AUTHENTICATED,),
    ),
    "system:public-info-viewer": (
        [{"nonResourceURLs": _HEALTH, "verbs": ["get"]}],
        (AUTHENTICATED, UNAUTHENTICATED),
    ),
}


def bootstrap_roles() -> list[tuple[str, dict[str, Any]]]:
    """Each plural with an object, in the order in which a real server creates them."""
    roles = [("clusterroles", {"metadata": _metadata(name), "rules": rules}) for name, (rules, _) in _ROLES.items()]
    return roles + [("clusterrolebindings", _binding(name, groups)) for name, (_, groups) in _ROLES.items()]


def _binding(name: str, groups: tuple[str, ...]) -> dict[str, Any]:
    return {
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _GROUP, "kind": "Group", "name": group} for group in groups],
    }


def _metadata(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    }
