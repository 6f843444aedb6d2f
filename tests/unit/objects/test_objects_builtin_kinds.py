from __future__ import annotations

import pytest

from kopylite.objects import Kind, builtin_kind, builtin_kinds
from kopylite.objects.builtin_kinds import complete


@pytest.mark.parametrize(
    ("api_version", "kind", "plural", "namespaced"),
    [
        ("v1", "Pod", "pods", True),
        ("v1", "Endpoints", "endpoints", True),
        ("v1", "Node", "nodes", False),
        ("apps/v1", "Deployment", "deployments", True),
        ("networking.k8s.io/v1", "Ingress", "ingresses", True),
        ("networking.k8s.io/v1", "IPAddress", "ipaddresses", False),
        ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False),
    ],
)
def test_plural_and_scope_are_known_offline(api_version: str, kind: str, plural: str, namespaced: bool) -> None:
    assert builtin_kind(api_version, kind) == Kind(api_version, kind, plural, namespaced)


def test_an_unknown_kind_is_left_to_discovery() -> None:
    assert builtin_kind("example.com/v1", "MyApp") is None
    assert complete(Kind("example.com/v1", "MyApp")) == Kind("example.com/v1", "MyApp")


def test_what_the_user_said_is_kept() -> None:
    assert complete(Kind("v1", "Pod", plural="others")) == Kind("v1", "Pod", "others", True)
    assert complete(Kind("v1", "Pod", namespaced=False)) == Kind("v1", "Pod", "pods", False)


def test_a_kind_keeps_plural_and_scope_in_all_its_versions() -> None:
    seen: dict[tuple[str, str], tuple[str | None, bool | None]] = {}
    for kind in builtin_kinds():
        assert seen.setdefault((kind.group, kind.kind), (kind.plural, kind.namespaced)) == (
            kind.plural,
            kind.namespaced,
        )
    assert len(seen) > 60
