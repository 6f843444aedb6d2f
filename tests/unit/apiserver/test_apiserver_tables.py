from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kopylite.apiserver.printers.columns import columns_of
from kopylite.apiserver.printers.tables import age, short_duration

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY, YEAR = 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 4 * 3600, "3d4h"),
        (8 * DAY + 3600, "8d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 10 * DAY, "2y10d"),
        (9 * YEAR, "9y"),
        (-1, "0s"),
        (-5, "<invalid>"),
    ],
)
def test_a_duration_is_as_short_as_kubectls(seconds: int, text: str) -> None:
    assert short_duration(seconds) == text


def test_the_age_of_what_has_no_time_is_unknown() -> None:
    assert age("", NOW) == age(None, NOW) == "<unknown>"
    assert age("nonsense", NOW) == "<invalid>"
    assert age((NOW - timedelta(minutes=5)).isoformat(), NOW) == "5m"


def cells(storage: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {column.name: column.cell(obj) for column in columns_of(storage)}


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}, "status": status}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullBackOff",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            "ExitCode:3",
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]},
            "Init:0/0",
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1}}}]},
            "Init:ExitCode:1",
        ),
    ],
)
def test_the_status_of_a_pod_is_the_reason_that_stands_out(status: dict[str, Any], shown: str) -> None:
    assert cells("pods", pod(**status))["Status"] == shown


def test_a_pod_that_is_being_deleted_terminates_unless_it_has_ended() -> None:
    going = pod(phase="Running")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert cells("pods", going)["Status"] == "Terminating"
    ended = pod(phase="Succeeded")
    ended["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert cells("pods", ended)["Status"] == "Succeeded"


def test_rows_of_common_kinds() -> None:
    ready = pod(phase="Running", containerStatuses=[{"ready": True, "restartCount": 2, "state": {"running": {}}}])
    assert cells("pods", ready)["Ready"] == "1/1"
    deployment = {"spec": {"replicas": 3}, "status": {"readyReplicas": 1, "updatedReplicas": 2}}
    row = cells("deployments.apps", deployment)
    assert (row["Ready"], row["Up-to-date"], row["Available"]) == ("1/3", 2, 0)
    service = {"spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30000}]}}
    row = cells("services", service)
    assert (row["External-IP"], row["Port(s)"], row["Selector"]) == ("<none>", "80:30000/TCP", "<none>")
    node = {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert cells("nodes", node)["Status"] == "Ready,SchedulingDisabled"
    crd = {"spec": {"scope": "Namespaced", "versions": [{"name": "v1", "storage": True}, {"name": "v2"}]}}
    assert cells("customresourcedefinitions.apiextensions.k8s.io", crd)["Versions"] == "v1(storage),v2"


@pytest.mark.parametrize(
    "storage",
    ["pods", "events", "services", "nodes", "persistentvolumes", "persistentvolumeclaims", "endpoints",
     "deployments.apps", "jobs.batch", "cronjobs.batch", "horizontalpodautoscalers.autoscaling",
     "ingresses.networking.k8s.io", "endpointslices.discovery.k8s.io", "rolebindings.rbac.authorization.k8s.io",
     "apiservices.apiregistration.k8s.io", "resourcequotas", "controllerrevisions.apps"],
)  # fmt: skip
def test_an_object_with_nothing_in_it_has_a_row(storage: str) -> None:
    assert cells(storage, {"metadata": {"name": "x"}})["Name"] == "x"
