"""CEL rules. Verdicts and texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.ratchet import Correlation
from kopylite.apiserver.schema.rules import CelRules, rule_errors

INTEGER: dict[str, Any] = {"type": "integer"}
STRING: dict[str, Any] = {"type": "string", "maxLength": 10}
ERROR = "compilation failed: ERROR: <input>"


def ruled(schema: dict[str, Any], *rules: Any) -> dict[str, Any]:
    listed = [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]
    return {**schema, "x-kubernetes-validations": listed}


def spec_of(properties: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": ruled({"type": "object", "properties": properties}, *rules)}}


def verdict(schema: dict[str, Any], spec: Any, old: Any = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return [str(error) for error in CelRules(schema).validate({"spec": spec}, before, None)]


def test_a_broken_rule_fails_with_its_message_or_its_text() -> None:
    schema = spec_of({"a": INTEGER}, "self.a > 1", {"rule": "self.a > 2", "message": "too small"})
    assert verdict(schema, {"a": 3}) == []
    assert verdict(schema, {"a": 1}) == [
        "spec: Invalid value: failed rule: self.a > 1",
        "spec: Invalid value: too small",
    ]


def test_scalars_are_shown_in_the_error() -> None:
    schema = spec_of({"a": ruled(INTEGER, "self > 1")})
    assert verdict(schema, {"a": 1}) == ["spec.a: Invalid value: 1: failed rule: self > 1"]


def test_reason_and_field_path_shape_the_error() -> None:
    rules = [
        {"rule": "has(self.a)", "reason": "FieldValueRequired", "fieldPath": ".a", "message": "need a"},
        {"rule": "has(self.a)", "reason": "FieldValueForbidden", "message": "no"},
        {"rule": "has(self.a)", "reason": "FieldValueDuplicate"},
    ]
    assert verdict(spec_of({"a": INTEGER}, *rules), {}) == [
        "spec.a: Required value: need a",
        "spec: Forbidden: no",
        "spec: Duplicate value",
    ]


def test_a_message_expression_wins_unless_it_fails() -> None:
    good = {"rule": "false", "message": "plain", "messageExpression": '"a is " + string(self.a)'}
    bad = {"rule": "false", "message": "plain", "messageExpression": "1 / (self.a - self.a) == 1 ? 'x' : 'y'"}
    schema = spec_of({"a": INTEGER}, good, bad)
    assert verdict(schema, {"a": 1}) == ["spec: Invalid value: a is 1", "spec: Invalid value: plain"]


@pytest.mark.parametrize(
    ("rule", "spec", "text"),
    [
        ("self.a > 1", {}, "no such key: a evaluating rule: self.a > 1"),
        ("self.l[5] == 1", {"l": [1]}, "index out of bounds: 5 evaluating rule: self.l[5] == 1"),
        ("1 / self.a == 1", {"a": 0}, "division by zero evaluating rule: 1 / self.a == 1"),
        (
            "int(self.s) == 1",
            {"s": "x"},
            "type conversion error from 'string' to 'int' evaluating rule: int(self.s) == 1",
        ),
        (
            "self.any.startsWith('x')",
            {"any": 5},
            (
                "'no such overload': call arguments did not match a supported operator, function or macro signature "
                "for rule: self.any.startsWith('x')"
            ),
        ),
        ("self.__namespace__ == 'x'", {}, "no such key: __namespace__ evaluating rule: self.__namespace__ == 'x'"),
        ("self.a == 1 || self.b == 1", {}, "no such key: a evaluating rule: self.a == 1 || self.b == 1"),
    ],
)
def test_a_rule_without_a_value_tells_why(rule: str, spec: dict[str, Any], text: str) -> None:
    properties = {
        "a": INTEGER, "b": INTEGER, "s": STRING, "any": {"x-kubernetes-int-or-string": True}, "namespace": STRING,
        "l": {"type": "array", "items": INTEGER},
    }  # fmt: skip
    assert verdict(spec_of(properties, rule), spec) == [f'spec: Invalid value: "object": {text}']


class TestTransitions:
    def test_rules_on_old_self_wait_for_an_old_value(self) -> None:
        schema = spec_of({"a": ruled(INTEGER, "self >= oldSelf")})
        assert verdict(schema, {"a": 1}) == []
        assert verdict(schema, {"a": 1}, {}) == []
        assert verdict(schema, {"a": 1}, {"a": 2}) == ["spec.a: Invalid value: 1: failed rule: self >= oldSelf"]
        assert verdict(schema, {"a": 2}, {"a": 2}) == []

    def test_elements_of_map_lists_meet_their_old_selves(self) -> None:
        item = ruled({"type": "object", "properties": {"k": STRING, "v": INTEGER}}, "self.v >= oldSelf.v")
        items = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
        schema = spec_of({"l": items})
        old = {"l": [{"k": "a", "v": 5}]}
        assert verdict(schema, {"l": [{"k": "b", "v": 1}, {"k": "a", "v": 4}]}, old) == [
            "spec.l[1]: Invalid value: failed rule: self.v >= oldSelf.v"
        ]

    def test_an_optional_old_self_is_there_on_create_too(self) -> None:
        rule = {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True, "message": "no"}
        schema = spec_of({"a": ruled(INTEGER, rule)})
        assert verdict(schema, {"a": 1}) == []
        assert verdict(schema, {"a": 1}, {"a": 2}) == ["spec.a: Invalid value: 1: no"]

    def test_what_did_not_change_is_forgiven_and_told(self) -> None:
        schema = spec_of({"a": ruled(INTEGER, "self > 5"), "b": INTEGER})
        new, old = {"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "b": 1}}
        told: list[str] = []
        correlation = Correlation(new, old, SchemaNode(schema))
        assert CelRules(schema).validate(new, old, correlation, ratcheted=told) == []
        assert told == ["spec.a: Invalid value: 1: failed rule: self > 5"]


def test_nulls_have_no_rules_and_do_not_exist() -> None:
    schema = spec_of({"a": {**ruled(INTEGER, "self > 5"), "nullable": True}}, "has(self.a)")
    assert verdict(schema, {"a": None}) == ["spec: Invalid value: failed rule: has(self.a)"]


def test_the_whole_object_shows_its_name_and_type() -> None:
    schema = ruled({"type": "object"}, "self.metadata.name == 'a' && self.kind == 'A'")
    obj = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "b"}}
    assert [e.field for e in CelRules(schema).validate(obj, None, None)] == ["<nil>"]
    assert CelRules(schema).validate({**obj, "metadata": {"name": "a"}}, None, None) == []


def test_a_schema_without_rules_is_false() -> None:
    assert not CelRules({"type": "object", "properties": {"a": INTEGER}})


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("self.zz == 1", f"{ERROR}:1:5: undefined field 'zz'\n | self.zz == 1\n | ....^"),
        ("has(self.zz)", f"{ERROR}:1:4: undefined field 'zz'\n | has(self.zz)\n | ...^"),
        ("zz == 1", f"{ERROR}:1:1: undeclared reference to 'zz' (in container '')\n | zz == 1\n | ^"),
        (
            "foo(self.a)",
            f"{ERROR}:1:4: undeclared reference to 'foo' (in container '')\n | foo(self.a)\n | ...^",
        ),
        (
            "self.a == 'x'",
            (f"{ERROR}:1:8: found no matching overload for '_==_' applied to '(int, string)'\n"
            " | self.a == 'x'\n | .......^"),
        ),
        ("self.a", "cel expression must evaluate to a bool"),
        ("!self.a", f"{ERROR}:1:1: found no matching overload for '!_' applied to '(int)'\n | !self.a\n | ^"),
        (
            "self.a && true",
            f"{ERROR}:1:5: expected type 'bool' but found 'int'\n | self.a && true\n | ....^",
        ),
        (
            "self.s.matches('(')",
            f"{ERROR}:1:16: invalid matches argument\n | self.s.matches('(')\n | ...............^",
        ),
        (
            "self.a.size() == 1",
            (f"{ERROR}:1:12: found no matching overload for 'size' applied to 'int.()'\n"
            " | self.a.size() == 1\n | ...........^"),
        ),
        (
            "self.metadata.name == 'x'",
            f"{ERROR}:1:5: undefined field 'metadata'\n | self.metadata.name == 'x'\n | ....^",
        ),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_refused_with_the_compilers_text(rule: str, text: str) -> None:
    schema = ruled({"type": "object", "properties": {"a": INTEGER, "s": STRING}}, rule)
    (error,) = rule_errors(schema, "s", root=False, uncorrelatable="")
    assert error.field == "s.x-kubernetes-validations[0].rule"
    assert error.detail == text


def test_old_self_needs_a_place_where_old_and_new_correspond() -> None:
    schema = ruled(INTEGER, "self > oldSelf")
    (error,) = rule_errors(schema, "s.items", root=False, uncorrelatable="s")
    assert error.detail == "oldSelf cannot be used on the uncorrelatable portion of the schema within s"
    (error,) = rule_errors(
        ruled(INTEGER, {"rule": "self > 1", "optionalOldSelf": True}), "s", root=False, uncorrelatable=""
    )
    assert str(error) == (
        "s.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: "
        "may not be set if oldSelf is not used in rule"
    )
