"""What rules may cost. Factors and texts were taken from a real kube-apiserver 1.37 or its sources."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.cel.budget import EXCEEDED, Budget, TakesLong, quickly
from kopylite.apiserver.schema.cel.program import EvaluationFailed, OutOfBudget, Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape
from kopylite.apiserver.schema.definition import definition_errors

LOOPS = "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"


def schema_of(rules: list[str], **bounds: Any) -> dict[str, Any]:
    listed = [{"rule": rule} for rule in rules]
    numbers = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": listed, **bounds}
    return {"type": "object", "properties": {"n": numbers}}


def texts(schema: dict[str, Any], *, unchanged: bool = False) -> list[str]:
    return [str(error) for error in definition_errors(schema, "s", status=False, unchanged=unchanged)]


def test_an_unbounded_loop_is_refused() -> None:
    found = texts(schema_of(["self.all(x, self.all(y, x != y))"]))
    assert found[0].startswith(
        "s.properties[n].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of "
        "more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
        "maps, and strings are declared)"
    )
    assert "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema" in found[1]
    assert found[2].startswith("s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3")


def test_a_bounded_one_is_not() -> None:
    assert texts(schema_of([LOOPS], maxItems=50)) == []
    assert len(texts(schema_of([LOOPS], maxItems=120))) == 1


def test_rules_below_unbounded_lists_count_as_often_as_a_request_has_room() -> None:
    text = {"type": "string", "maxLength": 1000, "x-kubernetes-validations": [{"rule": "self.contains('abc')"}]}
    listed: dict[str, object] = {"type": "array", "items": text}
    schema = {"type": "object", "properties": {"n": listed}}
    assert "estimated rule cost exceeds budget" in texts(schema)[0]
    listed["maxItems"] = 10
    assert texts(schema) == []


def test_a_stored_schema_keeps_its_single_rules() -> None:
    schema = schema_of([LOOPS], maxItems=120)
    assert texts(schema, unchanged=True) == []


def test_an_expression_stops_at_the_limit_of_a_call() -> None:
    program = Program("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", {"self": DYN})
    with pytest.raises(EvaluationFailed, match=EXCEEDED):
        program.evaluate({"self": list(range(99))})


def test_nothing_absorbs_the_limit() -> None:
    program = Program("self.all(x, self.all(y, self.all(z, x + y + z >= 0))) || true", {"self": DYN})
    with pytest.raises(EvaluationFailed, match=EXCEEDED):
        program.evaluate({"self": list(range(99))})


def test_expressions_share_the_budget_of_an_object() -> None:
    program, budget = Program("self.all(x, x >= 0)", {"self": DYN}), Budget(1000)
    numbers = {"self": list(range(100))}
    assert program.evaluate(numbers, budget)
    with pytest.raises(OutOfBudget):
        program.evaluate(numbers, budget)


def test_on_the_event_loop_it_ends_early() -> None:
    program = Program("self.all(x, self.all(y, x + y >= 0))", {"self": DYN})
    numbers = {"self": list(range(200))}
    with quickly(), pytest.raises(TakesLong):
        program.evaluate(numbers, Budget())
    assert program.evaluate(numbers, Budget())


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("1 == 1", 1), ("self.size() > 0", 3), ("self.all(x, x > 0)", 1 + 1 + 10 * (3 + 2)),
        ("self.exists(x, x > 0)", 1 + 1 + 10 * (4 + 2)), ("self.map(x, x)", 1 + 11 + 10 * (12 + 1)),
        ("[1, 2]", 10), ("'abc'.contains('b')", 1), ("true || self.size() > 0", 3),
    ],
)  # fmt: skip
def test_the_estimate_is_that_of_cel_go(expression: str, cost: int) -> None:
    numbers = Shape("list", element=Shape("int", most=0), most=10)
    assert Program(expression, {"self": numbers}).cost == cost


@pytest.mark.parametrize("rule", ["duration(self) != duration('0s')", "timestamp(self).getHours() == int(self)"])
def test_what_has_one_size_is_compared_for_nothing_however_long_its_text_was(rule: str) -> None:
    text = {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}
    assert texts({"type": "object", "properties": {"n": text}}) == []
