from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kopylite.deploy.drift import differences

ROLE = """kind: Role
metadata: {name: a, namespace: ops}
rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]
"""


def test_each_difference_is_named() -> None:
    assert list(differences({"r": ROLE, "old": ""}, {"r": ROLE, "new": ""})) == [
        "new: missing",
        "old: is not made any more",
    ]
    assert list(differences({"r": ROLE}, {"r": ROLE.replace(", list", "")})) == [
        'r: Role a in ops has a rule that is not needed: {apiGroups: [""], resources: ["pods"], verbs: ["list"]}'
    ]
    assert list(differences({"r": ROLE + "# by hand\n"}, {"r": ROLE})) == ["r: was edited, though it means the same"]
    assert list(differences({"r": ROLE}, {"r": ROLE.replace("name: a", "name: b")})) == [
        "r: Role a in ops is not made any more",
        "r: Role b in ops is missing",
    ]


@given(st.text(max_size=60) | st.sampled_from(["rules: 1", "kind: Role\nrules: [1, {verbs: 1}]", "- 1", "metadata: 3"]))
def test_any_file_differs_or_does_not(text: str) -> None:
    assert list(differences({"r": text}, {"r": ROLE}))
