from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kopylite.doctor.findings import FindingSeverity
from kopylite.doctor.leases import absent, judge, shards, twice

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_LABELS: Mapping[str, str] = {}


def lease(holder: str = "pod-1_x", ago: float | None = 3, labels: Mapping[str, str] = NO_LABELS) -> dict[str, Any]:
    spec: dict[str, Any] = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    if ago is not None:
        spec["renewTime"] = (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"metadata": {"name": "l", "namespace": "ns", "labels": dict(labels)}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "pods", "says", "severity"),
    [
        (lease(ago=60), [], "has not renewed it for 60 s", FindingSeverity.ERROR),
        (lease(ago=None), [], "says not since when", FindingSeverity.ERROR),
        (lease(ago=-30), [], "30 s ahead", FindingSeverity.WARNING),
        (lease("laptop_y"), ["pod-1"], "none of the operator's pods", FindingSeverity.WARNING),
        (lease("pod-10_x"), ["pod-1"], "none of the operator's pods", FindingSeverity.WARNING),
        (lease(""), ["pod-1"], "nobody holds it", FindingSeverity.ERROR),
    ],
)
def test_a_lease_that_is_not_held_as_it_should_is_told_of(
    obj: dict[str, Any], pods: list[str], says: str, severity: FindingSeverity
) -> None:
    (finding,) = judge(obj, NOW, pods)
    assert says in finding.what
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("obj", "pods"),
    [(lease(), ["pod-1", "pod-2"]), (lease(), []), (lease(""), []), (lease(ago=40), []), (lease(ago=-5), []), ({}, [])],
)
def test_a_lease_that_is_held_or_was_never_needed_is_no_finding(obj: dict[str, Any], pods: list[str]) -> None:
    assert list(judge(obj, NOW, pods)) == []


def test_one_name_for_two_apps_and_two_numbers_of_shards() -> None:
    assert len(list(twice(["a", "b", "a"]))) == 1
    assert "kind: Lease" in absent("a", "ns").fix
    of_eight = {"kopylite.dev/shards-of": "app", "kopylite.dev/shard-count": "8"}
    of_four = of_eight | {"kopylite.dev/shard-count": "4"}
    eight, four = lease(labels=of_eight), lease(labels=of_four)
    assert len(list(shards([eight, four]))) == 1
    assert list(shards([eight, eight, lease("", labels=of_four), lease()])) == []
