from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.doctor import cluster, definitions, deletions, hooks, leases, ownership, servers, workload
from kopylite.doctor.findings import Finding
from kopylite.doctor.wire import age, conditions, mapping, maps, moment, number, part, span, text, texts, title

NOW = datetime(2026, 1, 1, tzinfo=UTC)

# Names that the judges look for, so that odd values come to lie where something is expected.
NAMES = """
metadata name namespace uid deletionTimestamp finalizers ownerReferences managedFields fieldsV1 manager annotations
labels spec status conditions type reason message versions served storage schema group openAPIV3Schema storedVersions
names kind plural scope conversion strategy webhook webhooks clientConfig service port caBundle rules failurePolicy
namespaceSelector matchLabels matchExpressions key operator values apiGroups resources holderIdentity renewTime
leaseDurationSeconds replicas readyReplicas template containers args env apiVersion priorityLevelConfiguration
f:metadata f:finalizers paused disruptionsAllowed expectedPods desiredHealthy
"""
NAMES_LIST = NAMES.split()
TEXTS = ["True", "Fail", "Webhook", "2020-01-01T00:00:00Z", "Established", "Available", "Dangling", "In"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(TEXTS)
ODD = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES_LIST) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=25,
)
GONE = ownership.OwnerFacts(served=False)


def _hooks(obj: Any) -> list[Finding]:
    found = hooks.hooks_of(obj, "mutatingwebhookconfigurations") + hooks.conversion_of(obj)
    return [finding for hook in found for finding in hooks.judge(hook, hooks.HookTarget(obj), NOW)]


JUDGES: list[Any] = [
    definitions.judge_stored,
    lambda obj: definitions.judge_declared(obj, obj, "m:app"),
    lambda obj: deletions.judge(obj, "Thing", "things", NOW, {"a"}),
    lambda obj: deletions.judge_namespace(obj, NOW),
    lambda obj: deletions.judge_paused([obj], "Thing", "things", "a"),
    lambda obj: leases.judge(obj, NOW, ["pod"]),
    lambda obj: leases.shards([obj, obj]),
    lambda obj: ownership.judge(obj, "Thing", "things", dict.fromkeys(ownership.references(obj), GONE)),
    lambda obj: hooks.judge_reach(obj, "validatingwebhookconfigurations"),
    _hooks,
    servers.judge_api_service,
    servers.judge_flow_schema,
    lambda obj: workload.judge(obj, elects=False),
    lambda obj: workload.judge_budget(obj, 1),
    lambda obj: [cluster._served(obj)][:0],
]


@pytest.mark.parametrize("judge", JUDGES)
@given(ODD)
def test_whatever_an_object_looks_like_it_is_judged_without_an_error(judge: Any, obj: Any) -> None:
    obj = obj if isinstance(obj, dict) else {"metadata": obj}
    for found in judge(obj):
        assert isinstance(found, Finding)
        assert found.where.isprintable()
        assert found.what.isprintable()
        assert len(found.what) < 700


@given(ODD, st.lists(st.sampled_from(NAMES_LIST), max_size=3))
def test_a_part_of_another_shape_counts_as_absent(obj: Any, path: list[str]) -> None:
    part(obj, *path)
    assert isinstance(text(obj, *path), str)
    assert all(isinstance(each, str) for each in texts(obj, *path))
    assert all(isinstance(each, dict) for each in maps(obj, *path))
    assert isinstance(mapping(obj, *path), dict)
    assert not isinstance(number(obj, *path), bool)
    assert all(len(each) == 4 for each in conditions(obj))
    assert isinstance(title(obj), str)


def test_times_and_spans() -> None:
    assert age("2025-12-31T23:59:00Z", NOW) == 60
    assert age("2025-12-31T23:59:00.000000Z", NOW) == 60
    assert age("yesterday", NOW) is None
    assert moment("2026-01-01T00:00:00") == NOW
    assert [span(each) for each in (5, 119, 121, 7300, 200_000, -240)] == [
        "5 s",
        "119 s",
        "2 min",
        "2 h",
        "2 d",
        "-4 min",
    ]
