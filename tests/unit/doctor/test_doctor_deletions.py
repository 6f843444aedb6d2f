from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kopylite.doctor.deletions import judge, judge_namespace, judge_paused, owner_of
from kopylite.doctor.findings import Finding, FindingSeverity

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def going(seconds: float, *finalizers: str, manager: str = "", **metadata: Any) -> dict[str, Any]:
    fields: dict[str, object] = {f'v:"{each}"': {} for each in finalizers}
    metadata = {
        "name": "a",
        "namespace": "ns",
        "deletionTimestamp": (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "finalizers": list(finalizers),
        "managedFields": [{"manager": manager, "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, **fields}}}}],
        **metadata,
    }
    return {"metadata": metadata}


def found(obj: dict[str, Any], *alive: str) -> list[Finding]:
    return list(judge(obj, "Thing", "things.example.com", NOW, alive))


def test_a_finalizer_of_nobody_is_told_of_soon_with_the_command_that_clears_it() -> None:
    assert found(going(10, "example.com/x")) == []
    (finding,) = found(going(20, "example.com/x", manager="shop"))
    assert finding.severity is FindingSeverity.ERROR
    assert "of whoever added it (shop), and nothing of that name runs" in finding.what
    assert (
        "python -m kopylite finalizers clear things.example.com a -n ns --finalizer example.com/x --yes" in finding.fix
    )


def test_one_whose_controller_runs_has_more_time() -> None:
    assert found(going(200, "shop.example.com/x"), "shop") == []
    (finding,) = found(going(400, "shop.example.com/x"), "shop")
    assert finding.severity is FindingSeverity.WARNING
    assert found(going(400, "kubernetes.io/pvc-protection"))[0].what.endswith("until no pod uses the claim")
    assert found(going(200, "foregroundDeletion")) == []


def test_what_is_not_being_deleted_waits_for_nothing() -> None:
    assert found({"metadata": {"name": "a", "finalizers": ["example.com/x"]}}) == []
    assert found(going(1000)) == []


@pytest.mark.parametrize("finalizer", ["example.com/x", "x.example.com/y", "other"])
def test_an_empty_name_is_nobodys(finalizer: str) -> None:
    assert owner_of(finalizer, "", {""})[1] is False


@pytest.mark.parametrize(
    ("condition", "says", "fix"),
    [
        ("NamespaceDeletionDiscoveryFailure", "does not answer", "kubectl get apiservices"),
        ("NamespaceContentRemaining", "still something in it (m)", "python -m kopylite finalizers list -n a"),
        ("NamespaceDeletionContentFailure", "cannot be deleted", "kubectl get events -n a"),
    ],
)
def test_the_conditions_of_a_namespace_are_explained(condition: str, says: str, fix: str) -> None:
    obj = going(60, namespace="")
    obj["status"] = {"conditions": [{"type": condition, "status": "True", "message": "m"}]}
    (finding,) = judge_namespace(obj, NOW)
    assert says in finding.what
    assert finding.fix.startswith(fix)
    obj["status"]["conditions"][0]["status"] = "False"
    assert list(judge_namespace(obj, NOW)) == []


def test_paused_objects_are_one_finding() -> None:
    def obj(value: str, **more: Any) -> dict[str, Any]:
        return {"metadata": {"name": f"n-{value}", "namespace": "ns", "annotations": {"p": value}, **more}}

    objects = [obj("true"), obj("TRUE"), obj("false"), obj(""), obj("true", deletionTimestamp="2026-01-01T00:00:00Z")]
    (finding,) = judge_paused(objects, "Thing", "things", "p")
    assert "Thing ns/n-true, Thing ns/n-TRUE" in finding.what
    assert finding.fix.startswith("kubectl -n ns annotate things n-true p-")
    (odd,) = judge_paused([obj("yes")], "Thing", "things", "p")
    assert "means nothing" in odd.what
