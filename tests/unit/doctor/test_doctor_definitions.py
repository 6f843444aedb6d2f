from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel

from kopylite import CustomResource
from kopylite.crds.crd import crd_of
from kopylite.doctor.definitions import judge_declared, judge_stored
from kopylite.doctor.findings import FindingSeverity


class JarSpec(BaseModel):
    size: int = 1
    label: str | None = None


class Jar(CustomResource[JarSpec, None], group="doctor.example.com", version="v1"):
    """A jar."""


def stored(**status: Any) -> dict[str, Any]:
    crd: dict[str, Any] = copy.deepcopy(crd_of(Jar))
    conditions = [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}]
    crd["status"] = {"conditions": conditions, "storedVersions": ["v1"], **status}
    return crd


def properties(crd: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


def test_what_is_as_the_code_has_it_is_no_finding() -> None:
    assert list(judge_declared(crd_of(Jar), stored(), "m:app")) == []
    newer = stored()
    properties(newer)["later"] = {"type": "string"}
    assert list(judge_declared(crd_of(Jar), newer, "m:app")) == [], "the next release is on its way"


def test_what_the_code_needs_and_the_cluster_lacks_is_named() -> None:
    (missing,) = judge_declared(crd_of(Jar), None, "m:app")
    assert missing.fix == "python -m kopylite crd m:app | kubectl apply -f -"
    older = stored()
    del properties(older)["size"]
    properties(older)["label"]["maxLength"] = 3
    (finding,) = judge_declared(crd_of(Jar), older, "m:app")
    assert finding.severity is FindingSeverity.ERROR
    assert "v1 .spec.size: is removed" in finding.what
    assert "v1 .spec.label: maxLength" in finding.what
    unserved = stored()
    unserved["spec"]["versions"][0]["served"] = False
    assert any("uses its version v1, which is not served" in each.what
               for each in judge_declared(crd_of(Jar), unserved, "m:app"))  # fmt: skip


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"conditions": [{"type": "Established", "status": "False", "message": "why"}]}, "not established"),
        ({"conditions": []}, "not established"),
        ({"conditions": [{"type": "NamesAccepted", "status": "False", "message": "jars is taken"}]}, "jars is taken"),
        ({"storedVersions": ["v1alpha1", "v1"]}, "storedVersions has v1alpha1"),
    ],
)
def test_a_crd_that_is_not_well_is_told_of(status: dict[str, Any], says: str) -> None:
    (finding,) = judge_stored(stored(**status))
    assert says in finding.what


def test_a_crd_that_is_well_is_no_finding() -> None:
    assert list(judge_stored(stored())) == []
