from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, PastDate, RootModel, create_model

from kopylite.crds import SchemaWarning
from kopylite.crds.schema import schema_of
from kopylite.errors import RegistrationError
from kopylite.objects import Mark, Rule, list_map, list_set
from tests.zoo import LOOSE, ZOO, spec_schemas

EXPECTED = Path(__file__).parent / "zoo.yaml"


def test_the_zoo_has_the_expected_schemas() -> None:
    """After a wanted change: `python -m tests.zoo > tests/unit/crds/zoo.yaml`, and read the difference."""
    expected: dict[str, Any] = {}
    for document in yaml.safe_load_all(EXPECTED.read_text(encoding="utf-8")):
        expected |= document
    assert spec_schemas() == expected
    assert len(expected) >= 40


# Loose for a reason that the generator cannot know.
SILENT = {"Addresses", "ClosedFields", "Clocks"}


@pytest.mark.parametrize("kind", ZOO, ids=lambda kind: str(kind.__name__))
def test_there_is_a_warning_exactly_where_the_server_checks_less(kind: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema_of(kind)
    assert bool(caught) == (kind.__name__ in LOOSE - SILENT)
    assert all(warning.category is SchemaWarning for warning in caught)


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [node for part in schema for node in nodes(part)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(node for part in schema.values() for node in nodes(part))]


@pytest.mark.parametrize("kind", ZOO, ids=lambda kind: str(kind.__name__))
def test_no_schema_has_what_a_crd_must_not_have(kind: Any) -> None:
    for node in nodes(spec_schemas()[kind.__name__]):
        assert not {"$ref", "$defs", "definitions", "title", "examples", "const", "prefixItems"} & set(node)
        for word in ("anyOf", "oneOf"):
            assert all("type" not in choice for choice in node.get(word, ()))


def spec(**fields: Any) -> type[BaseModel]:
    annotations = {name: value[0] if isinstance(value, tuple) else value for name, value in fields.items()}
    defaults = {name: value[1] for name, value in fields.items() if isinstance(value, tuple)}
    return type("Spec", (BaseModel,), {"__annotations__": annotations, "__module__": __name__, **defaults})


def field(annotation: Any) -> Any:
    return schema_of(spec(value=annotation))["properties"]["value"]


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "a{2000}"])
def test_a_pattern_that_the_server_cannot_read_is_refused_with_the_field(pattern: str) -> None:
    class Inner(BaseModel):
        code: Annotated[str, Mark({"pattern": pattern})]

    with pytest.raises(RegistrationError, match=r"Spec\.value\.code: the pattern .* \(RE2\) do not have"):
        schema_of(spec(value=Inner))


def test_a_type_without_a_json_form_is_refused() -> None:
    with pytest.raises(RegistrationError, match="no JSON form"):
        schema_of(spec(value=Callable[[], None]))


def test_marks_and_rules_add_up() -> None:
    marked = field(Annotated[list[dict[str, str]], list_map("a"), Rule("size(self) < 3"), Rule("true", message="m")])
    assert marked["x-kubernetes-list-map-keys"] == ["a"]
    assert marked["x-kubernetes-validations"] == [{"rule": "size(self) < 3"}, {"message": "m", "rule": "true"}]


class Filled(BaseModel):
    keep: int = 3


def test_an_object_with_a_default_is_there_for_the_servers_defaults() -> None:
    inner = spec(filled=(Filled, Filled()))
    schema = schema_of(spec(
        filled=(Filled, Filled()), deep=(inner, inner()), other=(Filled, Filled(keep=5)), needed=Filled,
        optional=(Filled | None, None), ruled=(Annotated[Filled, Rule("self.keep > 0")], Filled()),
        free=(dict[str, str], {}),
    ))["properties"]  # fmt: skip
    defaults = {name: part["default"] for name, part in schema.items() if "default" in part}
    assert defaults == {"filled": {}, "deep": {}, "other": {"keep": 5}}, "a rule would be judged without `keep`"
    assert schema["deep"]["properties"]["filled"]["default"] == {}


def test_a_rule_says_only_what_it_was_given() -> None:
    rule = Rule("a", message_expression="b", reason="FieldValueForbidden", field_path=".c", optional_old_self=False)
    assert rule.to_dict() == {
        "rule": "a",
        "messageExpression": "b",
        "reason": "FieldValueForbidden",
        "fieldPath": ".c",
        "optionalOldSelf": False,
    }


def test_a_fields_own_description_wins_over_the_classes() -> None:
    class Part(BaseModel):
        """Of the class."""

        size: int = 0

    described = schema_of(spec(value=Annotated[Part, Field(description="Of the field.")]))
    assert described["properties"]["value"]["description"] == "Of the field."
    assert schema_of(spec(value=Part))["properties"]["value"]["description"] == "Of the class."


def test_nested_unions_are_one_union() -> None:
    assert field(Annotated[int | str, "x"] | Literal["a"] | None) == {
        "nullable": True,
        "x-kubernetes-int-or-string": True,
    }
    assert field(Literal["a"] | Literal["b"]) == {"type": "string", "enum": ["a", "b"]}


def test_a_recursive_list_type_stays_a_list() -> None:
    class Node(BaseModel):
        items: list[Node] = []

    with pytest.warns(SchemaWarning, match="Node contains itself"):
        schema = schema_of(spec(value=Node))
    inner = schema["properties"]["value"]["properties"]["items"]["items"]
    assert inner == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_a_list_type_in_json_schema_is_a_union() -> None:
    assert field(Annotated[Any, Mark({"type": ["string", "null"]})]) == {"type": "string", "nullable": True}


def test_a_field_that_is_always_null_is_a_nullable_one() -> None:
    assert field(None) == {"nullable": True, "x-kubernetes-preserve-unknown-fields": True}


def test_a_named_union_within_a_union_is_one_union() -> None:
    class Wide(RootModel[int | str]):
        pass

    assert field(Wide | None) == {"nullable": True, "x-kubernetes-int-or-string": True}


def test_literals_without_a_common_type_are_an_enum_of_any_type() -> None:
    assert field(Literal["a", True]) == {"enum": ["a", True], "x-kubernetes-preserve-unknown-fields": True}


def test_the_items_of_a_set_are_merged_as_wholes() -> None:
    class Point(BaseModel):
        model_config = ConfigDict(frozen=True)

        x: int = 0

    assert field(set[Point])["items"]["x-kubernetes-map-type"] == "atomic"
    assert field(set[tuple[int, ...]])["items"]["x-kubernetes-list-type"] == "atomic"
    assert field(Annotated[list[Point], list_set])["items"]["x-kubernetes-map-type"] == "atomic"


@pytest.mark.parametrize("item", [Any, str | None])
def test_a_set_whose_items_may_be_null_is_none_to_the_server(item: Any) -> None:
    with pytest.raises(RegistrationError, match=r"Spec\.value: the items of a list_set may not be null"):
        field(Annotated[list[item], list_set])
    with pytest.warns(SchemaWarning, match="does not check that items are different"):
        assert "x-kubernetes-list-type" not in field(set[item])


def test_a_default_is_a_value_whatever_keys_it_has() -> None:
    default = {"$ref": "#/$defs/Nothing", "allOf": [{"$ref": 1}], "properties": {}}
    assert schema_of(spec(value=(dict[str, Any], default)))["properties"]["value"]["default"] == default
    with pytest.raises(RegistrationError, match=r"Spec: a json_schema_extra has a \$ref to '#/\$defs/Nothing'"):
        field(Annotated[str, Mark({"not": {"$ref": "#/$defs/Nothing"}})])


def test_what_a_user_says_in_json_schema_is_understood() -> None:
    one = Annotated[Any, Mark({"allOf": [{"type": "string", "maxLength": 3}], "description": "d"})]
    assert field(one) == {"description": "d", "type": "string", "maxLength": 3}
    several = Annotated[str, Mark({"allOf": [{"maxLength": 3}, {"pattern": "a"}], "not": {"enum": ["b"]}})]
    assert field(several) == {"type": "string", "allOf": [{"maxLength": 3}, {"pattern": "a"}], "not": {"enum": ["b"]}}


class OpenMap(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]


class OpenRest(OpenMap):
    name: str = ""


def test_a_root_model_of_a_map_and_typed_extras_are_maps() -> None:
    expected = {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}}
    for annotation in (RootModel[dict[str, int]], OpenMap):
        assert schema_of(create_model("M", f=(annotation, ...)))["properties"]["f"] == expected


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (OpenRest, "the types of extra fields"),
        (dict[int, str], "the keys"),
        (dict[bool, str], "the keys"),
        (Annotated[str, Field(pattern=r"^\d+$")], r"\\d in the pattern knows only ASCII"),
        (list[Annotated[str, Field(pattern=r"[\w-]")]], r"\\w in the pattern knows only ASCII"),
        (Annotated[Decimal, Field(gt=0, max_digits=4)], "gt, max_digits of a decimal"),
        (Annotated[timedelta, Field(le=timedelta(1))], "le of a timedelta"),
        (Annotated[bytes, Field(max_length=4)], "max_length of a bytes"),
        (PastDate, "now_op of a date"),
    ],
)
def test_what_the_server_checks_otherwise_is_warned_of(annotation: Any, text: str) -> None:
    with pytest.warns(SchemaWarning, match=rf"M\.f.*{text}"):
        schema_of(create_model("M", f=(annotation, ...)))


class Empty(BaseModel):
    """Somebody means to fill it in later."""


def test_a_model_of_which_the_server_drops_everything_is_warned_of_with_the_way_out() -> None:
    text = r'M\.inner\[\]: the model has no fields, so the server drops .* ConfigDict\(extra="allow"\)'
    with pytest.warns(SchemaWarning, match=text):
        schema_of(create_model("M", inner=(list[Empty], ...)))


def test_what_keeps_or_names_its_fields_is_not_warned_of() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema_of(create_model("M", a=(Open, ...), b=(dict[str, str], ...), c=(dict[str, Any], ...), d=(Any, None)))


Escaped = Annotated[str, Field(pattern=r"^\\d+[0-9]$")]


def test_an_escaped_backslash_is_no_class() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema_of(create_model("M", f=(Escaped, ...)))
