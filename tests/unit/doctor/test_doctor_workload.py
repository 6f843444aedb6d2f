from __future__ import annotations

from typing import Any

import pytest

from kopylite.doctor.findings import FindingSeverity
from kopylite.doctor.servers import judge_api_service, judge_flow_schema
from kopylite.doctor.workload import DeployedSettings, asks_for_election, judge, judge_budget, settings_of


def deployment(replicas: int = 1, ready: int = 1, strategy: str = "Recreate", **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "shop", "namespace": "ns"},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": strategy},
            "template": {"spec": {"containers": [container]}},
        },
        "status": {"readyReplicas": ready, "observedGeneration": 1},
    }


ELECTS = ["run", "shop:app", "--leader-elect"]


@pytest.mark.parametrize(
    ("obj", "says", "severity"),
    [
        (deployment(2), "2 replicas without leader election", FindingSeverity.ERROR),
        (
            deployment(strategy="RollingUpdate"),
            "the old and the new one work at the same time",
            FindingSeverity.WARNING,
        ),
        (deployment(0, 0), "has no replicas", FindingSeverity.WARNING),
        (deployment(1, 0), "none of its 1 pods is ready", FindingSeverity.ERROR),
        (deployment(3, 1, args=ELECTS), "1 of its 3 pods are ready", FindingSeverity.WARNING),
    ],
)
def test_a_deployment_that_is_not_well_is_told_of(obj: dict[str, Any], says: str, severity: FindingSeverity) -> None:
    found = [each for each in judge(obj, elects=False) if "without leader election" not in each.what or "2 rep" in says]
    assert any(says in each.what and each.severity is severity for each in found), found


@pytest.mark.parametrize(
    "obj",
    [deployment(), deployment(2, 2, "RollingUpdate", args=ELECTS),
     deployment(2, 2, "RollingUpdate", env=[{"name": "KOPYLITE_LEADER_ELECT", "value": "true"}])],
)  # fmt: skip
def test_one_that_is_well_is_no_finding(obj: dict[str, Any]) -> None:
    assert list(judge(obj, elects=False)) == []
    assert list(judge(deployment(2, 2, "RollingUpdate"), elects=True)) == []
    assert list(judge(deployment(1, 0), elects=True, runs=False)) == [], "where no pod can run, none is missing"
    assert asks_for_election(deployment(args=["--shards=4"]))


def test_a_budget_that_lets_nobody_go_is_told_of() -> None:
    status = {"disruptionsAllowed": 0, "expectedPods": 2, "desiredHealthy": 2}
    budget = {"metadata": {"name": "shop", "namespace": "ns"}, "status": status}
    assert len(list(judge_budget(budget, 2))) == 1
    assert list(judge_budget({**budget, "status": {**status, "desiredHealthy": 1}}, 2)) == []


def test_an_aggregated_api_and_a_flow_schema_that_dangle_are_told_of() -> None:
    def conditions(kind: str, status: str) -> dict[str, Any]:
        return {"metadata": {"name": "x"}, "status": {"conditions": [{"type": kind, "status": status}]}}

    assert len(list(judge_api_service(conditions("Available", "False")))) == 1
    assert list(judge_api_service(conditions("Available", "True"))) == []
    assert len(list(judge_flow_schema(conditions("Dangling", "True")))) == 1
    assert list(judge_flow_schema(conditions("Dangling", "False"))) == []


def test_how_it_is_run_is_read_from_its_command_line_and_environment() -> None:
    names = {"KOPYLITE_NAMESPACE": "a, b", "KOPYLITE_SHARDS": "4", "KOPYLITE_LEADER_ELECT": ""}
    env = [{"name": name, "value": value} for name, value in names.items()]
    assert settings_of(deployment(env=env)) == DeployedSettings(None, 4, ("a", "b"))
    args = ["run", "m:app", "-n", "team-*", "--webhook-manage", "--shards", "zero", "--namespaces-labelled=tier=prod"]
    assert settings_of(deployment(args=args)) == DeployedSettings(None, None, ("team-*",), "tier=prod", True)
    assert not asks_for_election(deployment(env=[{"name": "KOPYLITE_SHARDS", "value": ""}]))
