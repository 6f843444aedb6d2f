"""Laws of pruning, defaulting and validation, over random structural schemas and values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.apiserver.crd.custom_resources import CustomResourceStrategy
from kopylite.apiserver.schema.cel.syntax import SyntaxProblem, parse
from kopylite.apiserver.schema.default import copy_json, default
from kopylite.apiserver.schema.definition import definition_errors
from kopylite.apiserver.schema.field_errors import go_float
from kopylite.apiserver.schema.listtypes import duplicates
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.prune import drop_nulls, prune
from kopylite.apiserver.schema.ratchet import Correlation, same_json
from kopylite.apiserver.schema.validate import Validator
from tests.sizes import examples

NAMES = st.sampled_from(["a", "b", "c", "k"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 2.0]), st.sampled_from(["", "x", "yy"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)

Schema = dict[str, Any]


def with_default(schema: Schema, value: Any) -> Schema:
    return schema if value is None else {**schema, "default": value}


STRINGS = st.builds(
    lambda default, length, null: with_default({"type": "string", "maxLength": length, "nullable": null}, default),
    st.sampled_from([None, "x"]), st.integers(1, 2), st.booleans(),
)  # fmt: skip
INTEGERS = st.builds(
    lambda default, low: with_default({"type": "integer", "minimum": low}, default),
    st.sampled_from([None, 0, 2]), st.integers(-2, 0),
)  # fmt: skip
LEAVES = st.one_of(
    STRINGS, INTEGERS, st.just({"type": "boolean"}), st.just({"x-kubernetes-int-or-string": True}),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
)  # fmt: skip


def containers(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    lists = st.builds(lambda items: {"type": "array", "items": items}, inner)
    sets = st.builds(lambda items: {"type": "array", "items": items, "x-kubernetes-list-type": "set"}, LEAVES)
    maps = st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner)
    return st.one_of(objects(inner), lists, sets, maps)


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda properties, default, preserve: with_default(
            {"type": "object", "properties": properties}
            | ({"x-kubernetes-preserve-unknown-fields": True} if preserve else {}),
            default,
        ),
        st.dictionaries(NAMES, inner, min_size=1, max_size=4), st.sampled_from([None, {}]), st.booleans(),
    )  # fmt: skip


SCHEMAS = objects(st.recursive(LEAVES, containers, max_leaves=6))


def pruned(value: Any, schema: Schema) -> Any:
    result = copy_json(value)
    prune(result, SchemaNode(schema))
    drop_nulls(result, SchemaNode(schema))
    return result


def defaulted(value: Any, schema: Schema) -> Any:
    result = copy_json(value)
    default(result, SchemaNode(schema))
    return result


def is_valid(value: Any, schema: Schema) -> bool:
    return not Validator(schema).validate(value)


@given(SCHEMAS, OBJECTS)
def test_pruning_twice_is_pruning_once(schema: Schema, value: Any) -> None:
    once = pruned(value, schema)
    again = copy_json(once)
    assert prune(again, SchemaNode(schema)) == []
    assert same_json(pruned(once, schema), once)


@given(SCHEMAS, OBJECTS)
def test_pruning_only_takes_away(schema: Schema, value: Any) -> None:
    def within(small: Any, big: Any) -> bool:
        if isinstance(small, dict) and isinstance(big, dict):
            return all(k in big and within(v, big[k]) for k, v in small.items())
        if isinstance(small, list) and isinstance(big, list):
            return len(small) == len(big) and all(map(within, small, big))
        return same_json(small, big)

    assert within(pruned(value, schema), value)


@given(SCHEMAS, OBJECTS)
def test_defaulting_twice_is_defaulting_once(schema: Schema, value: Any) -> None:
    once = defaulted(pruned(value, schema), schema)
    assert same_json(defaulted(once, schema), once)


@given(SCHEMAS, OBJECTS)
def test_defaulting_adds_nothing_that_pruning_would_take(schema: Schema, value: Any) -> None:
    once = defaulted(pruned(value, schema), schema)
    assert prune(copy_json(once), SchemaNode(schema)) == []


@given(SCHEMAS, OBJECTS)
def test_a_valid_object_stays_valid_when_it_is_defaulted(schema: Schema, value: Any) -> None:
    clean = pruned(value, schema)
    if is_valid(clean, schema) and not definition_errors(schema, "s", status=False):
        assert is_valid(defaulted(clean, schema), schema)


@given(SCHEMAS, OBJECTS)
def test_validation_changes_nothing_and_repeats_itself(schema: Schema, value: Any) -> None:
    before = copy_json(value)
    validator = Validator(schema)
    assert validator.validate(value) == validator.validate(value)
    assert same_json(value, before)


@given(SCHEMAS, OBJECTS)
def test_an_unchanged_object_is_forgiven_everything(schema: Schema, value: Any) -> None:
    correlation = Correlation(value, copy_json(value), SchemaNode(schema))
    assert Validator(schema).validate(value, correlation) == []


@given(SCHEMAS, OBJECTS, OBJECTS)
def test_ratcheting_never_adds_errors(schema: Schema, new: Any, old: Any) -> None:
    correlation = Correlation(new, old, SchemaNode(schema))
    ratcheted = set(map(str, Validator(schema).validate(new, correlation)))
    assert ratcheted <= set(map(str, Validator(schema).validate(new)))


@given(st.lists(SCALARS, max_size=6))
def test_a_set_without_duplicates_has_distinct_elements(values: list[Any]) -> None:
    schema = SchemaNode({"properties": {"l": {"x-kubernetes-list-type": "set"}}})
    distinct = len({(type(value), value) for value in values}) == len(values)
    assert (duplicates({"l": values}, schema) == []) is distinct


@settings(max_examples=examples(50))
@given(SCHEMAS, OBJECTS, OBJECTS)
def test_a_write_that_was_accepted_is_accepted_again(schema: Schema, spec: Any, status: Any) -> None:
    whole = {"type": "object", "properties": {"spec": schema}}
    strategy = CustomResourceStrategy("example.com/v1", "Widget", whole, has_status=True)
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec, "status": status}
    strategy.decode(obj)
    strategy.default(obj)
    strategy.prepare_create(obj)
    if not strategy.validate_create(obj):
        stored = copy_json(obj)
        assert strategy.decode(obj) == []
        strategy.default(obj)
        strategy.prepare_update(obj, stored, "")
        assert strategy.validate_update(obj, stored, "") == []
        assert same_json(obj, stored)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_float_reads_back(value: float) -> None:
    assert float(go_float(value)) == value


@given(st.text(alphabet="ab1.()[]{}?:&|!'\"\\ +-*/<>=,`", max_size=20))
def test_the_parser_refuses_or_understands_but_never_breaks(text: str) -> None:
    problem = None
    try:
        parse(text)
    except SyntaxProblem as caught:
        problem = caught
    assert problem is None or problem.pretty(text).startswith("ERROR: <input>:")
    assert problem is None or 0 <= problem.at <= len(text)


def test_the_generated_schemas_are_mostly_such_as_a_server_accepts() -> None:
    accepted: list[bool] = []

    @settings(max_examples=60, database=None)
    @given(SCHEMAS)
    def count(schema: Schema) -> None:
        accepted.append(not definition_errors({"type": "object", "properties": {"spec": schema}}, "s", status=False))

    count()
    assert sum(accepted) > len(accepted) // 4 or pytest.fail(f"only {sum(accepted)} of {len(accepted)}")
