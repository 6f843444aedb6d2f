"""The likeness harness hides what is random and a matter of time, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conformance.likeness.normalise import Normaliser
from tests.conformance.likeness.player import Answer
from tests.conformance.likeness.report import Comparison, Report, compare
from tests.conformance.likeness.script import Script, Step

ONE_UID, OTHER_UID = "11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555"
GET = Step("GET", "/x")


def answer(body: Any, code: int = 200, **headers: list[str]) -> Answer:
    return Answer(code, headers, body)


def normalised(*bodies: Any, step: Step = GET) -> list[Any]:
    answers = [answer(body) for body in bodies]
    normalise = Normaliser(answers, "likeness-007")
    return [normalise(step, each)["body"] for each in answers]


def compared(real: Any, embedded: Any) -> Comparison:
    script = Script("s", "n", (GET,))
    (found,) = compare(script, "likeness-007", [answer(real)], [answer(embedded)])
    return found


def obj(version: str, **metadata: Any) -> dict[str, Any]:
    return {"kind": "A", "metadata": {"resourceVersion": version, **metadata}}


def test_versions_of_objects_keep_their_order_and_lose_their_values() -> None:
    ranks = [body["metadata"]["resourceVersion"] for body in normalised(obj("900"), obj("17"), obj("900"))]
    assert ranks == ["<rv 1>", "<rv 0>", "<rv 1>"]


def test_the_version_of_a_list_says_whether_it_is_as_new_as_what_was_seen() -> None:
    def listed(version: str) -> dict[str, Any]:
        return {"items": [], "metadata": {"resourceVersion": version}}

    versions = [body["metadata"]["resourceVersion"] for body in normalised(obj("20"), listed("25"), listed("19"))]
    assert versions == ["<rv 0>", "<new>", "<old>"]


def test_an_empty_list_in_protobuf_is_a_list() -> None:
    empty = {"kind": "ConfigMapList", "metadata": {"resourceVersion": "25"}}
    versions = [body["metadata"]["resourceVersion"] for body in normalised(obj("20"), empty, obj("26"))]
    assert versions == ["<rv 0>", "<new>", "<rv 1>"]


def test_what_was_waited_for_in_vain_is_not_equal_and_says_so() -> None:
    script = Script("s", "n", (replace(GET, until={"code": 404}),))
    late = replace(answer(obj("1")), in_vain=True)
    (found,) = compare(script, "likeness-007", [late], [late])
    assert not found.equal
    assert "{'code': 404} never came" in found.difference()


def test_uids_are_numbered_wherever_they_stand() -> None:
    first, second = normalised({"uid": ONE_UID}, {"message": f"{OTHER_UID} owns {ONE_UID}"})
    assert (first, second) == ({"uid": "<uid 0>"}, {"message": "<uid 1> owns <uid 0>"})


def test_times_of_today_are_hidden_but_not_their_precision_and_other_times_are_data() -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    (body,) = normalised({"a": f"{now}Z", "b": f"{now}.123456Z", "c": "2001-01-01T00:00:00Z"})
    assert body == {"a": "<time>", "b": "<time.6>", "c": "2001-01-01T00:00:00Z"}


def test_managers_out_of_order_are_told() -> None:
    def managed(*names: str) -> dict[str, Any]:
        return {"managedFields": [{"manager": name, "operation": "Update", "time": "t"} for name in names]}

    right, wrong = normalised(managed("a", "b"), managed("b", "a"))
    assert right["managedFields"][:2] == wrong["managedFields"][:2]
    assert (right["managedFields"][2], wrong["managedFields"][2]) == ("<in order>", "<not in order>")


def test_a_step_can_leave_out_paths_keys_and_orders() -> None:
    step = Step("GET", "/x", ignore=("a.*.b",), without=("description",), unordered=("list",))
    body = {"a": [{"b": 1, "c": 2}], "description": "text", "properties": {"description": {}}, "list": [2, 1]}
    assert normalised(body, step=step) == [{"a": [{"c": 2}], "properties": {"description": {}}, "list": [1, 2]}]


@pytest.mark.parametrize(("real", "embedded"), [(1, 1.0), (1, True), ({"a": None}, {}), ([], None), ("1", 1)])
def test_values_that_python_or_go_may_take_for_alike_differ(real: Any, embedded: Any) -> None:
    assert not compared({"x": real}, {"x": embedded}).equal


def test_messages_are_scored_apart_but_reasons_are_not() -> None:
    status = {"kind": "Status", "reason": "Invalid", "message": "one"}
    other_text = compared(status, {**status, "message": "two"})
    assert other_text.equal
    assert not other_text.same_text
    assert not compared(status, {**status, "reason": "Conflict"}).equal


def test_causes_in_another_order_are_another_text_and_no_difference() -> None:
    one, two = {"field": "spec.a", "message": "x"}, {"field": "spec.b", "message": "y"}

    def status(*causes: dict[str, str]) -> dict[str, Any]:
        return {"kind": "Status", "reason": "Invalid", "details": {"causes": list(causes)}}

    turned = compared(status(one, two), status(two, one))
    assert turned.equal
    assert not turned.same_text
    assert not compared(status(one, two), status(one)).equal


def test_a_report_tells_surprises_and_outdated_entries() -> None:
    report = Report((compared(1, 2),), {"gone #1": "a reason"})
    assert [c.id for c in report.surprises()] == ["n #1"]
    assert report.outdated() == ["gone #1"]
    assert report.verdict() == "0 of 1 equal (0.0 %)"
