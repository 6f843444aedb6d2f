from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter

from kopylite.objects.marks import (
    Mark,
    Rule,
    embedded_resource,
    immutable,
    int_or_string,
    list_atomic,
    list_map,
    list_set,
    map_atomic,
    preserve_unknown,
)

KEYS = "x-kubernetes-"


def added(mark: Any, kind: Any) -> dict[str, Any]:
    """What a mark adds to the schema of a type."""
    marked = TypeAdapter(Annotated[kind, mark]).json_schema()
    plain = TypeAdapter(kind).json_schema()
    assert {name: marked[name] for name in plain} == plain, "nothing is taken away"
    return {name.removeprefix(KEYS): value for name, value in marked.items() if name not in plain}


@pytest.mark.parametrize(
    ("mark", "kind", "expected"),
    [
        (list_map("name", "port"), list[dict[str, Any]], {"list-type": "map", "list-map-keys": ["name", "port"]}),
        (list_set, list[str], {"list-type": "set"}),
        (list_atomic, list[str], {"list-type": "atomic"}),
        (map_atomic, dict[str, str], {"map-type": "atomic"}),
        (preserve_unknown, dict[str, Any], {"preserve-unknown-fields": True}),
        (embedded_resource, dict[str, Any], {"embedded-resource": True, "preserve-unknown-fields": True}),
        (int_or_string, int | str, {"int-or-string": True}),
        (immutable, str, {"validations": [{"rule": "self == oldSelf", "message": "is immutable"}]}),
    ],
)
def test_a_mark_adds_its_keys_to_the_schema_and_nothing_else(mark: Any, kind: Any, expected: dict[str, Any]) -> None:
    assert added(mark, kind) == expected


def test_rules_add_up_in_their_order() -> None:
    both = Annotated[int, Rule("self > 0"), Rule("self < 9", message="too many", reason="FieldValueInvalid")]
    assert TypeAdapter(both).json_schema()["x-kubernetes-validations"] == [
        {"rule": "self > 0"},
        {"rule": "self < 9", "message": "too many", "reason": "FieldValueInvalid"},
    ]


def test_a_rule_has_the_names_of_the_server_and_leaves_out_what_is_not_said() -> None:
    rule = Rule("r", message_expression="'m'", field_path=".a", optional_old_self=False)
    assert rule.to_dict() == {"rule": "r", "messageExpression": "'m'", "fieldPath": ".a", "optionalOldSelf": False}


def test_python_validates_as_without_marks() -> None:
    class Spec(BaseModel):
        names: Annotated[list[str], list_set] = []
        size: Annotated[int, Rule("self < 9")] | None = None

    assert Spec(names=["a", "a"], size=10).model_dump() == {"names": ["a", "a"], "size": 10}


def test_marks_can_stand_in_a_union_since_they_are_told_apart_by_identity() -> None:
    one, other = Mark({"format": "int32"}), Mark({"format": "int32"})
    assert one != other
    assert len({one, other}) == 2
