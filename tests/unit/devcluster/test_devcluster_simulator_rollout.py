from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopylite import Unstructured
from kopylite.devcluster.simulator.rollout import limits_of, rollout_of


def deployment(desired: int, strategy: dict[str, Any]) -> Unstructured:
    return Unstructured({"spec": {"replicas": desired, "strategy": strategy}})


def replica_set(name: str, size: int, available: int) -> Unstructured:
    status = {"replicas": size, "availableReplicas": available}
    return Unstructured({"metadata": {"name": name}, "spec": {"replicas": size}, "status": status})


def rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def test_percentages_are_rounded_in_favour_of_what_runs() -> None:
    assert limits_of(deployment(10, rolling("25%", "25%"))) == (3, 2)
    assert limits_of(deployment(1, rolling("25%", "25%"))) == (1, 0)


def test_a_rollout_that_may_neither_add_nor_miss_any_could_not_go_on() -> None:
    assert limits_of(deployment(3, rolling(0, 0))) == (0, 1)


def test_unhealthy_pods_of_the_past_go_first() -> None:
    old = [replica_set("healthy", 2, 2), replica_set("broken", 2, 0)]
    step = rollout_of(deployment(3, rolling(1, 1)), replica_set("new", 0, 0), old)
    assert (step.new_size, step.old_sizes) == (0, {"healthy": 2, "broken": 0})


def test_a_deployment_that_recreates_has_no_new_pods_before_the_old_are_gone() -> None:
    wanted = deployment(3, {"type": "Recreate"})
    step = rollout_of(wanted, replica_set("new", 0, 0), [replica_set("old", 3, 3)])
    assert (step.new_size, step.old_sizes) == (0, {"old": 0})
    ending = Unstructured({"metadata": {"name": "old"}, "spec": {"replicas": 0}, "status": {"replicas": 1}})
    assert rollout_of(wanted, replica_set("new", 0, 0), [ending]).new_size == 0
    assert rollout_of(wanted, replica_set("new", 0, 0), [replica_set("old", 0, 0)]).new_size == 3


LIMITS = st.one_of(st.integers(0, 5), st.integers(0, 100).map("{}%".format))


@given(
    desired=st.integers(0, 12),
    surge=LIMITS,
    unavailable=LIMITS,
    sizes=st.lists(st.integers(0, 6), max_size=3),
    data=st.data(),
)
def test_every_rollout_ends_within_its_limits(
    desired: int, surge: int | str, unavailable: int | str, sizes: list[int], data: st.DataObject
) -> None:
    """From any sizes, with pods that become available in any order."""
    wanted = deployment(desired, rolling(surge, unavailable))
    more, fewer = limits_of(wanted)
    old = [replica_set(f"old-{number}", size, size) for number, size in enumerate(sizes)]
    new = replica_set("new", 0, 0)
    began = sum(sizes)
    for _ in range(200):
        step = rollout_of(wanted, new, old)
        before = [each["spec"]["replicas"] for each in (new, *old)]
        if step.new_size != before[0]:
            new["spec"]["replicas"] = step.new_size
        else:
            for each in old:
                each["spec"]["replicas"] = step.old_sizes[each.name]
        for each in (new, *old):  # pods go at once
            each["status"]["availableReplicas"] = min(each["status"]["availableReplicas"], each["spec"]["replicas"])
        total = sum(each["spec"]["replicas"] for each in (new, *old))
        available = sum(each["status"]["availableReplicas"] for each in (new, *old))
        assert total <= max(desired + more, began), "no more than the surge, but for what was there before"
        assert available >= min(desired - fewer, began), "no fewer than may be missed, but for what was missing before"
        missing = new["spec"]["replicas"] - new["status"]["availableReplicas"]
        if missing:
            new["status"]["availableReplicas"] += data.draw(st.integers(1, missing))
        elif before == [each["spec"]["replicas"] for each in (new, *old)]:
            break
    assert [each["spec"]["replicas"] for each in (new, *old)] == [desired, *[0] * len(old)]
