"""Texts of field errors. Expected values were read off a real kube-apiserver 1.37 and Go's fmt package."""

from __future__ import annotations

import pytest

from kopylite.apiserver.schema import field_errors as errors


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (1e6, "1e+06"), (123456789.0, "1.23456789e+08"), (1e20, "1e+20"), (0.0001, "0.0001"),
        (0.00001, "1e-05"), (1.5, "1.5"), (-2.25, "-2.25"), (12345678.5, "1.23456785e+07"), (0.0, "0"), (100.0, "100"),
    ],
)  # fmt: skip
def test_a_float_is_printed_as_go_prints_it(value: float, text: str) -> None:
    assert errors.go_float(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'), ('q"\\\n', '"q\\"\\\\\\n"'), ("é", '"é"'), ("\x00", '"\\x00"'), (None, "null"), (5, "5"),
        (True, "true"), ({"b": 1, "a": [1.0, "<"]}, '{"a":[1,"\\u003c"],"b":1}'), (errors.RawText("0x0"), "0x0"),
        (errors.GoStruct(B=1, A=None), '{"B":1,"A":null}'),
    ],
)  # fmt: skip
def test_a_bad_value_is_printed_as_the_server_prints_it(value: object, text: str) -> None:
    assert errors.go_value(value) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.required("spec.a"), "spec.a: Required value"),
        (errors.required("a", "because"), "a: Required value: because"),
        (errors.invalid("a", "x", "no"), 'a: Invalid value: "x": no'),
        (errors.unsupported("a", "x", ["b", "c"]), 'a: Unsupported value: "x": supported values: "b", "c"'),
        (errors.forbidden("a", "no"), "a: Forbidden: no"),
        (errors.duplicate("a[0]", {"k": "v"}), 'a[0]: Duplicate value: {"k":"v"}'),
        (errors.not_found("a", "x"), 'a: Not found: "x"'),
        (errors.too_long("a", 3), "a: Too long: may not be more than 3 bytes"),
        (errors.too_long("a", 1), "a: Too long: may not be more than 1 byte"),
        (errors.too_many("a", 4, 1), "a: Too many: 4: must have at most 1 item"),
        (errors.type_invalid("a", "string", "t"), 'a: Invalid value: "string": t'),
        (errors.internal("a", "x"), "a: Internal error: x"),
        (errors.FieldError(errors.INVALID, "a", "failed rule"), "a: Invalid value: failed rule"),
    ],
)
def test_each_kind_of_error_has_its_text(error: errors.FieldError, text: str) -> None:
    assert str(error) == text


def test_one_error_stands_alone_and_several_stand_in_brackets() -> None:
    one = errors.invalid_error("Widget", "example.com", "x", [errors.required("a")])
    assert one.message == 'Widget.example.com "x" is invalid: a: Required value'
    two = errors.invalid_error("Pod", "", "x", [errors.required("a"), errors.required("b")])
    assert two.message == 'Pod "x" is invalid: [a: Required value, b: Required value]'


def test_a_repeated_error_is_named_once_but_counts_as_a_cause_each_time() -> None:
    error = errors.invalid_error("Widget", "example.com", "x", [errors.required("a"), errors.required("a")])
    assert error.message == 'Widget.example.com "x" is invalid: a: Required value'
    assert [cause.field for cause in error.causes] == ["a", "a"]


def test_the_status_names_kind_group_and_causes() -> None:
    status = errors.invalid_error("Widget", "example.com", "x", [errors.required("spec.size")]).to_status()
    assert status["code"] == 422
    assert status["details"] == {
        "name": "x",
        "group": "example.com",
        "kind": "Widget",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.size"}],
    }
