from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kopylite.doctor.findings import Finding, FindingSeverity
from kopylite.doctor.hooks import HookTarget, conversion_of, hooks_of, judge, judge_reach
from tests.unit.doctor.test_doctor_access import certificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KIND = "validatingwebhookconfigurations"


def bundle(days: float) -> bytes:
    return certificate(NOW - timedelta(days=300), NOW + timedelta(days=days))


GOOD = bundle(100)
SERVICE = {"spec": {"ports": [{"port": 443}], "selector": {"a": "b"}}}


def configuration(ca: bytes | str = GOOD, port: int | None = None, **webhook: Any) -> dict[str, Any]:
    client: dict[str, Any] = {"service": {"namespace": "ns", "name": "s"} | ({"port": port} if port else {})}
    if ca:
        client["caBundle"] = ca if isinstance(ca, str) else base64.b64encode(ca).decode()
    return {"metadata": {"name": "c"}, "webhooks": [{"name": "w", "clientConfig": client, **webhook}]}


def found(config: dict[str, Any], target: HookTarget | None) -> list[Finding]:
    return [finding for hook in hooks_of(config, KIND) for finding in judge(hook, target, NOW)]


@pytest.mark.parametrize(
    ("config", "target", "says"),
    [
        (configuration(), HookTarget(None), "its Service ns/s does not exist"),
        (configuration(""), HookTarget(None), "its Service ns/s does not exist"),
        (configuration(port=8443), HookTarget(SERVICE, 1), "has no port 8443 (it has 443)"),
        (configuration(), HookTarget(SERVICE, 0), "has no ready endpoint"),
        (configuration(""), HookTarget(SERVICE, 1), "no caBundle"),
        (configuration("!"), HookTarget(SERVICE, 1), "holds no certificate"),
        (configuration(bundle(-3)), HookTarget(SERVICE, 1), "its caBundle ended 3 d ago"),
        (configuration(GOOD), HookTarget(SERVICE, 1, bundle(100)), "not the authority"),
    ],
)
def test_a_webhook_that_points_nowhere_is_told_of_once(config: dict[str, Any], target: HookTarget, says: str) -> None:
    (finding,) = found(config, target)
    assert says in finding.what
    assert finding.severity is FindingSeverity.ERROR
    config["webhooks"][0]["failurePolicy"] = "Ignore"
    (finding,) = found(config, target)
    assert finding.severity is FindingSeverity.WARNING


@pytest.mark.parametrize(
    ("config", "target"),
    [
        (configuration(), HookTarget(SERVICE, 1, GOOD)),
        (configuration(bundle(-3) + GOOD), HookTarget(SERVICE, None)),
        (configuration(), None),
        (configuration(), HookTarget({"spec": {"type": "ExternalName"}})),
    ],
)
def test_one_that_works_or_may_work_is_no_finding(config: dict[str, Any], target: HookTarget | None) -> None:
    assert found(config, target) == []


def test_an_authority_that_ends_soon_is_a_warning() -> None:
    (finding,) = found(configuration(bundle(5)), HookTarget(SERVICE, 1))
    assert (finding.severity, "ends in 5 d" in finding.what) == (FindingSeverity.WARNING, True)


def test_a_conversion_webhook_is_looked_at_likewise() -> None:
    client = {"service": {"namespace": "ns", "name": "s"}}
    crd = {
        "metadata": {"name": "x"},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}},
    }
    (finding,) = [found for hook in conversion_of(crd) for found in judge(hook, HookTarget(None), NOW)]
    assert "kubectl patch crd x --type=merge" in finding.fix
    assert conversion_of({"metadata": {"name": "x"}, "spec": {"conversion": {"strategy": "None"}}}) == []


PODS = [{"apiGroups": [""], "resources": ["pods"], "operations": ["*"]}]
OWN = [{"apiGroups": ["shop.example.com"], "resources": ["orders"], "operations": ["*"]}]
NOT_SYSTEM = {
    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
}


@pytest.mark.parametrize(
    ("webhook", "count"),
    [
        ({"rules": PODS}, 1),
        ({"rules": PODS, "failurePolicy": "Ignore"}, 0),
        ({"rules": OWN}, 0),
        ({"rules": PODS, "namespaceSelector": NOT_SYSTEM}, 0),
        ({"rules": PODS, "namespaceSelector": {"matchLabels": {"team": "a"}}}, 0),
        ({"rules": PODS, "matchConditions": [{"name": "a", "expression": "false"}]}, 0),
        ({"rules": [{**PODS[0], "scope": "Cluster"}]}, 0),
        ({"rules": [{"apiGroups": ["*"], "resources": ["*"]}], "namespaceSelector": {"matchLabels": {}}}, 1),
    ],
)
def test_one_that_stands_in_the_way_of_kube_system_is_told_of(webhook: dict[str, Any], count: int) -> None:
    assert len(list(judge_reach(configuration(**webhook), KIND))) == count


def test_the_fix_keeps_what_the_selector_says_already() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    (finding,) = judge_reach(configuration(rules=PODS, namespaceSelector=selector), KIND)
    assert '[{"key": "a", "operator": "DoesNotExist"}, {"key": "kubernetes.io/metadata.name"' in finding.fix
