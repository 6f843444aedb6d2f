from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from kopylite.doctor.findings import FindingSeverity
from kopylite.doctor.ownership import OwnerFacts, judge, references


def owned(namespace: str = "ns", uid: str = "u-1") -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid}
    other = {"apiVersion": "v1", "kind": "Secret", "name": "fine", "uid": "u-9"}
    metadata = {"name": "a", "namespace": namespace, "ownerReferences": [other, reference]}
    return {"metadata": metadata}


@pytest.mark.parametrize(
    ("owner", "namespace", "says", "severity"),
    [
        (OwnerFacts(served=False), "ns", "does not serve", FindingSeverity.ERROR),
        (OwnerFacts(uid="u-1"), "", "in no namespace", FindingSeverity.ERROR),
        (OwnerFacts(uid="", elsewhere="other"), "ns", "is in namespace other", FindingSeverity.ERROR),
        (OwnerFacts(uid=""), "ns", "is gone", FindingSeverity.WARNING),
        (OwnerFacts(uid="u-2"), "ns", "another object", FindingSeverity.ERROR),
    ],
)
def test_a_reference_that_can_do_nothing_is_taken_out_alone(
    owner: OwnerFacts, namespace: str, says: str, severity: FindingSeverity
) -> None:
    obj = owned(namespace)
    (finding,) = judge(obj, "Thing", "things", {references(obj)[1]: owner})
    assert says in finding.what
    assert finding.severity is severity
    words = shlex.split(finding.fix, comments=True)
    steps = json.loads(words[words.index("-p") + 1])
    assert steps[0] == {"op": "test", "path": "/metadata/ownerReferences/1/uid", "value": "u-1"}
    assert steps[1] == {"op": "remove", "path": "/metadata/ownerReferences/1"}


def test_a_version_that_is_not_served_any_more_is_replaced_by_one_that_is() -> None:
    obj = owned()
    (finding,) = judge(obj, "Thing", "things", {references(obj)[1]: OwnerFacts(served=False, other_version="v2")})
    assert '"op": "replace", "path": "/metadata/ownerReferences/1/apiVersion", "value": "v2"' in finding.fix


@pytest.mark.parametrize(
    "owner", [OwnerFacts(uid="u-1"), OwnerFacts(uid=None), OwnerFacts(namespaced=False, uid="u-1"), None]
)
def test_an_owner_that_is_there_or_is_not_known_is_no_finding(owner: OwnerFacts | None) -> None:
    obj = owned()
    assert list(judge(obj, "Thing", "things", {} if owner is None else {references(obj)[1]: owner})) == []
