from __future__ import annotations

from datetime import timedelta
from typing import Any

from kopylite import Unstructured
from kopylite.devcluster.simulator.deploymentstatus import deployment_status
from kopylite.devcluster.simulator.workloads import parse_time, put_condition, share_of, stamp, template_hash
from kopylite.testing.clock import START


def deployment(desired: int = 2, status: dict[str, Any] | None = None, **spec: Any) -> Unstructured:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    wanted = {"replicas": desired, "strategy": rolling, "progressDeadlineSeconds": 600, **spec}
    return Unstructured({"metadata": {"name": "web", "generation": 3}, "spec": wanted, "status": status or {}})


def replica_set(size: int, ready: int) -> Unstructured:
    status = {"replicas": size, "readyReplicas": ready, "availableReplicas": ready, "terminatingReplicas": 0}
    return Unstructured({"metadata": {"name": "web-1"}, "spec": {"replicas": size}, "status": status})


def reasons(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def test_numbers_that_are_zero_are_left_out() -> None:
    status = deployment_status(deployment(), replica_set(2, 0), [], START)
    assert (status["readyReplicas"], status["availableReplicas"]) == (None, None)
    assert (status["replicas"], status["updatedReplicas"], status["unavailableReplicas"]) == (2, 2, 2)
    assert (status["observedGeneration"], status["terminatingReplicas"]) == (3, 0)


def test_the_conditions_tell_the_course_of_a_rollout() -> None:
    began = deployment_status(deployment(), replica_set(2, 0), [], START)
    assert reasons(began) == {
        "Progressing": ("True", "NewReplicaSetCreated"),
        "Available": ("False", "MinimumReplicasUnavailable"),
    }
    later = deployment_status(deployment(status=began), replica_set(2, 1), [], START + timedelta(seconds=9))
    assert reasons(later)["Progressing"] == ("True", "ReplicaSetUpdated")
    done = deployment_status(deployment(status=later), replica_set(2, 2), [], START + timedelta(seconds=20))
    assert reasons(done) == {
        "Progressing": ("True", "NewReplicaSetAvailable"),
        "Available": ("True", "MinimumReplicasAvailable"),
    }
    available, progressing = done["conditions"]
    assert progressing["lastTransitionTime"] == stamp(START), "it was True all the time"
    assert progressing["lastUpdateTime"] == available["lastTransitionTime"] == stamp(START + timedelta(seconds=20))


def test_a_rollout_without_progress_is_given_up_after_its_deadline() -> None:
    began = deployment_status(deployment(), replica_set(2, 0), [], START)
    moment = START + timedelta(seconds=601)
    late = deployment_status(deployment(status=began), replica_set(2, 0), [], moment)
    assert reasons(late)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    still = deployment_status(deployment(status=late), replica_set(2, 0), [], moment + timedelta(seconds=99))
    assert still == late, "and then nothing changes any more"


def test_a_condition_moves_only_with_its_status() -> None:
    conditions: list[dict[str, Any]] = []
    put_condition(conditions, {"type": "A", "status": "True", "reason": "One"}, "t1")
    put_condition(conditions, {"type": "A", "status": "True", "reason": "Two"}, "t2")
    assert conditions == [{"type": "A", "status": "True", "reason": "Two", "lastTransitionTime": "t1"}]
    put_condition(conditions, {"type": "A", "status": "False", "reason": "Two"}, "t3")
    assert conditions[0]["lastTransitionTime"] == "t3"


def test_shares_are_numbers_or_percentages() -> None:
    assert share_of(3, 10, up=True) == 3
    assert share_of("25%", 10, up=True) == 3
    assert share_of("25%", 10, up=False) == 2
    assert share_of(None, 10, up=True) == 0


def test_the_hash_of_a_template_depends_on_what_it_says_and_on_nothing_else() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert template_hash(one) == template_hash(other)
    assert template_hash(one) != template_hash({"a": 1, "b": 3})
    assert set(template_hash(one)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_times_survive_the_wire_form() -> None:
    assert parse_time(stamp(START)) == START
