"""Other specs: each is what it says by the server's own validation of the schema, and changes the one field."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kopylite.apiserver.schema.validate import Validator
from kopylite.sweep.specs import (
    ALLOWED,
    OPEN,
    REFUSED,
    contents_of,
    field_name,
    schemas_of,
    together,
    variations,
    varied,
    varied_objects,
)
from kopylite.sweep.states import differences
from kopylite.sweep.trace import OPERATOR, SCENARIO, TraceEntry
from tests.unit.sweep.operators import CRD

Pair = tuple[dict[str, Any], Any]
names = st.sampled_from(["size", "a/b", "c~d", "note"])


def limits(low: int, high: int, keys: tuple[str, str]) -> Any:
    """A number between two that may be said, and what is said."""
    return st.tuples(st.integers(low, high), st.integers(0, 60), st.integers(0, 60), st.booleans(), st.booleans()).map(
        lambda t: ({keys[0]: t[0] - t[1]} if t[3] else {}) | ({keys[1]: t[0] + t[2]} if t[4] else {}) | {"": t[0]}
    )


def numbers(found: dict[str, Any]) -> Pair:
    value = found.pop("")
    return {"type": "integer", **found}, value


def texts(found: dict[str, Any]) -> Pair:
    length = found.pop("")
    return {"type": "string", **{name: max(0, each) for name, each in found.items()}}, "y" * length


def lists(one: Pair, count: int, low: int, high: int, said: tuple[bool, bool]) -> Pair:
    schema: dict[str, Any] = {"type": "array", "items": one[0]}
    schema |= {"minItems": max(0, count - low)} if said[0] else {}
    return schema | ({"maxItems": count + high} if said[1] else {}), [one[1]] * count


def objects(fields: dict[str, tuple[Pair, str]]) -> Pair:
    """Of each field: needed, there, or not there."""
    schema: dict[str, Any] = {"type": "object", "properties": {name: pair[0] for name, (pair, _) in fields.items()}}
    if required := [name for name, (_, how) in fields.items() if how == "needed"]:
        schema["required"] = required
    return schema, {name: pair[1] for name, (pair, how) in fields.items() if how != "away"}


leaves = st.one_of(
    limits(-60, 60, ("minimum", "maximum")).map(numbers),
    limits(0, 8, ("minLength", "maxLength")).map(texts),
    st.booleans().map(lambda value: ({"type": "boolean"}, value)),
    st.sampled_from("abc").map(lambda value: ({"type": "string", "enum": ["a", "b", "c"]}, value)),
    st.sampled_from([3, 6, 9]).map(lambda value: ({"type": "integer", "multipleOf": 3, "minimum": 0}, value)),
)
pairs = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lists, inner, st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.tuples(*[st.booleans()] * 2)
        ),
        st.dictionaries(names, st.tuples(inner, st.sampled_from(["needed", "there", "away"])), max_size=3).map(objects),
        inner.map(lambda pair: ({"type": "object", "additionalProperties": pair[0]}, {"x": pair[1]})),
    ),
    max_leaves=4,
)


@settings(max_examples=150)
@given(pairs)
@example(({"type": "array", "items": {"type": "string", "maxLength": 1}}, ["a"]))
def test_a_variation_is_valid_exactly_when_it_says_so_and_comes_back(pair: Pair) -> None:
    schema = {"type": "object", "properties": {"spec": pair[0], "status": {"type": "object"}}}
    obj = {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": pair[1], "status": {}}
    validator = Validator(schema)
    assert not validator.validate(obj)
    found = [*variations(schema, obj)]
    assert found
    for each in found:
        other = varied(obj, [(each.pointer, each.value)])
        assert other != obj
        assert bool(validator.validate(other)) == (each.how == REFUSED), each
        assert {path.partition(".")[0].partition("[")[0] for path, _, _ in differences(obj, other)} <= {"spec"}
    for some in together(found):
        assert not validator.validate(varied(obj, [(each.pointer, each.value) for each in some]))


def of(schema: dict[str, Any], *value: Any) -> dict[str, list[Any]]:
    """The values of one field, by how they are."""
    spec = {"type": "object", "properties": {"f": schema}}
    obj = {"spec": {"f": value[0]} if value else {}}
    found: dict[str, list[Any]] = {ALLOWED: [], OPEN: [], REFUSED: []}
    for each in variations({"properties": {"spec": spec}}, obj):
        if each.pointer == "/spec/f":
            found[each.how].append(json.loads(each.value) if each.value else "gone")
    return found


def test_what_is_tried_of_each_kind_of_field() -> None:
    assert of({"type": "integer", "minimum": 1, "maximum": 5}, 3) == {
        ALLOWED: ["gone", 1, 5, 2, 4],
        OPEN: [],
        REFUSED: [0, 6],
    }
    assert of({"type": "integer"}, 1)[ALLOWED] == ["gone", 0, 0, 2]  # no count is less than nothing
    assert of({"type": "integer", "maximum": 65535}, 80)[ALLOWED] == ["gone", 0, 79, 81]  # it may be one of Pods
    assert of({"type": "integer", "default": 3}, 3)[ALLOWED] == [0, 2, 4]  # the server would put it back
    assert of({"type": "boolean"}) == {ALLOWED: [True], OPEN: [], REFUSED: []}
    assert of({"type": "boolean"}, True)[ALLOWED] == ["gone", False]
    assert of({"enum": ["a", "b"]}, "a") == {ALLOWED: ["gone", "b"], OPEN: [], REFUSED: ["a-sweep"]}
    assert of({"type": "string"}, "a") == {ALLOWED: ["gone"], OPEN: ["ax", ""], REFUSED: [0]}
    assert of({"type": "string", "minLength": 2, "maxLength": 4}, "abc") == {
        ALLOWED: ["gone", "abcx"],
        OPEN: ["abcx", "ab"],
        REFUSED: ["abcxx", "a"],
    }
    assert of({"type": "string", "pattern": "^a"}, "a")[ALLOWED] == ["gone"]  # nobody knows what else fits
    assert of({"type": "array", "items": {"type": "string"}}, ["a", "b"]) == {
        ALLOWED: ["gone", [], ["a"]],
        OPEN: [["a", "b", "bx"]],
        REFUSED: [],
    }
    named = {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-map-keys": ["host"]}
    assert of(named, [{"host": "a", "n": 1}])[OPEN] == [[{"host": "a", "n": 1}, {"host": "ax", "n": 1}]]
    assert of({"type": "object", "additionalProperties": {"type": "string"}}, {"k": "v"}) == {
        ALLOWED: ["gone", {}],
        OPEN: [{"k": "v", "sweep": "v"}],
        REFUSED: [],
    }
    assert of({"x-kubernetes-int-or-string": True}, "50%")[OPEN] == []
    assert of({"type": "object", "x-kubernetes-preserve-unknown-fields": True}) == {ALLOWED: [], OPEN: [], REFUSED: []}


def test_an_optional_field_that_is_not_there_comes_with_a_value_that_fits() -> None:
    inner = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 2}}}
    assert of({"type": "array", "items": inner})[OPEN] == [[{"n": 2}]]
    assert of({"type": "string"})[OPEN] == ["sweep"]
    assert of({"type": "string", "format": "date"})[OPEN] == []
    assert of({"type": "object", "additionalProperties": {"type": "string"}})[OPEN] == [{"sweep": "sweep"}]


def test_what_has_no_place_any_more_is_left_out() -> None:
    obj = {"spec": {"list": [1]}}
    assert varied(
        obj, [("/spec/list", "[]"), ("/spec/list/0", "5"), ("/spec/no/where", "1"), ("/spec/list/0/a", "")]
    ) == {"spec": {"list": []}}
    assert obj == {"spec": {"list": [1]}}
    assert varied({"spec": {"a/b": 1}}, [("/spec/a~1b", "2")]) == {"spec": {"a/b": 2}}
    assert field_name("/spec/items/0/a~1b") == "spec.items[0].a/b"
    assert contents_of({"apiVersion": "v1", "kind": "A", "metadata": {}, "status": {}, "data": 1}) == {"data": 1}


def test_what_people_write_is_varied_once_as_it_is_at_the_end_of_their_step() -> None:
    versions = schemas_of([CRD])["things.sweep.example.com"]
    assert versions["sweep.example.com/v1"]["properties"]["spec"]["type"] == "object"
    schema: dict[str, Any] = {
        "required": ["spec"],
        "properties": {"spec": {"properties": {"on": {"type": "boolean"}, "size": {"enum": [1, 2]}}}},
    }
    schemas = {"things.sweep.example.com": {"sweep.example.com/v1": schema}}

    def entry(step: int, name: str, actor: str = SCENARIO, change: str = "MODIFIED", **spec: Any) -> TraceEntry:
        key, after = f"things.sweep.example.com default/{name}", {"apiVersion": "sweep.example.com/v1", "spec": spec}
        return TraceEntry("change", actor, 0.0, step, "", key=key, change=change, after=after)

    entries = [
        entry(0, "a", size=1),
        entry(0, "a", OPERATOR, size=2),
        entry(0, "b", OPERATOR),
        entry(1, "a", size=2, on=True),
    ]
    entries += [entry(2, "a", change="DELETED")]
    found = [(step, key, [each.pointer for each in some]) for step, key, some in varied_objects(entries, schemas)]
    key = "things.sweep.example.com default/a"
    gone = "/spec"  # which the server refuses
    assert found == [(0, key, [gone, "/spec/on", "/spec/size", "/spec/size"]), (1, key, ["/spec/on", "/spec/on"])]


def test_one_more_element_is_one_that_the_list_has_not_and_may_have() -> None:
    named = {"type": "object", "properties": {"name": {"type": "string", "enum": ["a", "b"]}}}
    keyed = {"type": "array", "items": named, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    assert added(keyed, [{"name": "a"}]) == {"name": "b"}
    assert added(keyed, [{"name": "b"}, {"name": "a"}]) is None
    unique = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    assert added(unique, ["ax", "a"]) == "axx"


def added(schema: dict[str, Any], value: list[Any]) -> Any:
    """What the variation with one element more has; None: there is none."""
    whole = {"type": "object", "properties": {"spec": schema}}
    found = [
        json.loads(each.value) for each in variations(whole, {"spec": value}) if each.pointer == "/spec" and each.value
    ]
    return next((each[-1] for each in found if len(each) > len(value)), None)
