"""Field labels of built-in kinds."""

from __future__ import annotations

from kopylite.apiserver.builtin.fields import FIELDS


def test_pods_answer_for_absent_values_too() -> None:
    fields = FIELDS["", "Pod"]
    pod = {"spec": {"nodeName": "n"}, "status": {"phase": "Running", "podIPs": [{"ip": "1.2.3.4"}]}}
    assert {k: read(pod) for k, read in fields.items()} == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "Running",
        "status.podIP": "",
        "status.podIPs": "1.2.3.4",
        "status.nominatedNodeName": "",
    }


def test_an_event_of_either_group_answers_to_the_labels_of_both() -> None:
    for event in (
        {"involvedObject": {"kind": "Pod"}, "source": {"component": "c"}},
        {"regarding": {"kind": "Pod"}, "deprecatedSource": {"component": "c"}},
    ):
        fields = FIELDS["", "Event"]
        assert fields["involvedObject.kind"](event) == fields["regarding.kind"](event) == "Pod"
        assert fields["source"](event) == "c"


def test_numbers_and_booleans_are_texts() -> None:
    assert FIELDS["batch", "Job"]["status.successful"]({"status": {"succeeded": 2}}) == "2"
    assert FIELDS["", "Node"]["spec.unschedulable"]({"spec": {"unschedulable": True}}) == "true"
