"""Members of validation rules. The texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.rule_forms import rule_form_errors

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"rule": ""}, "r.rule: Required value: rule is not specified"),
        ({"rule": "true", "message": " "}, 'r.message: Invalid value: " ": must be non-empty if specified'),
        ({"rule": "true", "message": "a\nb"}, 'r.message: Invalid value: "a\\nb": must not contain line breaks'),
        (
            {"rule": "true\n&& true"},
            "r.message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            {"rule": "true", "messageExpression": " "},
            "r.messageExpression: Required value: messageExpression must be non-empty if specified",
        ),
        (
            {"rule": "true", "reason": "Odd"},
            ('r.reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
            '"FieldValueInvalid", "FieldValueRequired"'),
        ),
        ({"rule": "true", "fieldPath": ".zz"}, 'r.fieldPath: Invalid value: ".zz": must be a valid path'),
        ({"rule": "true", "fieldPath": ".a\n"}, 'r.fieldPath: Invalid value: ".a\\n": must not contain line breaks'),
    ],
)  # fmt: skip
def test_a_malformed_rule_is_told_at_its_member(rule: dict[str, Any], expected: str) -> None:
    assert expected in [str(error) for error in rule_form_errors(rule, SCHEMA, "r")]


def test_a_whole_rule_is_fine() -> None:
    rule = {"rule": "self.a != ''", "message": "no", "reason": "FieldValueInvalid", "fieldPath": ".a"}
    assert list(rule_form_errors(rule, SCHEMA, "r")) == []
