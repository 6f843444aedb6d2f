"""Whatever a CRD holds, its models are classes, fields and literals, or it is refused."""

from __future__ import annotations

import ast
import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopylite.codegen.models import models_of
from kopylite.codegen.text import docstring, literal, long_text, quoted
from kopylite.errors import UsageError
from tests.sizes import examples

EVIL = (
    "x'); import os; os.abort(); ('", 'x"""\nimport os\nos.abort()\n"""', "\\", "\\'", '"', "'''", '"""', 'a"',
    "\\N{BEL}",
    "\n", "\r\nimport os", "\x00", "\x0c", "\x85", "\u2028import os", "\u202eevil", "\ud800", "{__import__('os')}",
    "%s", "",
    " ", "__class__", "None", "class", "a b", "1a", "é", "\N{KELVIN SIGN}ind", "model_config", "Any", "Field", "Mark",
    "str", "date", "list_map", "x" * 300, "spec", "\t",
)  # fmt: skip
TEXTS = st.sampled_from(EVIL) | st.text(max_size=8)

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com", "annotations": {"api-approved.kubernetes.io": "yes"}},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList",
            "shortNames": ["th"], "categories": ["all"],
        },
        "versions": [{
            "name": "v1", "served": True, "storage": True, "deprecated": True, "deprecationWarning": "old",
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s",
            }},
            "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n", "description": "d"}],
            "selectableFields": [{"jsonPath": ".spec.text"}],
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "description": "A thing.",
                "x-kubernetes-validations": [{"rule": "true", "message": "m", "reason": "FieldValueInvalid"}],
                "properties": {
                    "spec": {
                        "type": "object",
                        "required": ["text"],
                        "description": "What is wanted.",
                        "properties": {
                            "text": {"type": "string", "pattern": "^a$", "description": "d", "default": "a"},
                            "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                            "when": {"type": "string", "format": "date-time", "default": "2026-01-31T00:00:00Z"},
                            "size": {"x-kubernetes-int-or-string": True, "default": "1Gi", "pattern": "x"},
                            "ports": {
                                "type": "array",
                                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                                "default": [{"name": "a"}],
                            },
                            "labels": {"type": "object", "additionalProperties": {"type": "string"},
                                       "default": {"k": "v"}},
                            "free": {"x-kubernetes-preserve-unknown-fields": True, "default": {"a": ["b"]}},
                            "one": {"type": "object", "properties": {"a": {"type": "integer"}},
                                    "x-kubernetes-validations": [{"rule": "self.a > 0", "fieldPath": ".a"}],
                                    "oneOf": [{"required": ["a"]}]},
                        },
                    },
                    "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
                },
            }},
        }],
    },
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Each place of the CRD that holds a text, and each key (as the path with None at its end)."""
    if isinstance(value, dict):
        return [p for key, inner in value.items() for p in [(*path, key, None), *places(inner, (*path, key))]]
    if isinstance(value, list):
        return [p for index, inner in enumerate(value) for p in places(inner, (*path, index))]
    return [path] if isinstance(value, str) else []


PLACES = places(CRD)


def with_text(path: tuple[Any, ...], text: Any) -> dict[str, Any]:
    crd = copy.deepcopy(CRD)
    target: Any = crd
    *parents, last = path if path[-1] is not None else path[:-1]
    for step in parents:
        target = target[step]
    if path[-1] is None:
        target[text] = target.pop(last)
    else:
        target[last] = text
    return crd


CALLS = {"Field", "Mark", "ConfigDict", "PrinterColumn", "Scale", "Rule", "list_map", "Quantity"}
MODULES = {"__future__", "datetime", "typing", "kopylite.objects", "pydantic"}


def check_value(node: ast.expr) -> None:
    """A literal, a name, a subscript of one, or a call of something that is known with such."""
    match node:
        case ast.Constant() | ast.Name():
            return
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            check_value(left)
            check_value(right)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                check_value(part)
        case ast.Dict(keys=keys, values=values):
            for inside in [*keys, *values]:
                assert inside is not None
                check_value(inside)
        case ast.Subscript(value=ast.Name(), slice=inner):
            check_value(inner)
        case ast.Call():
            check_call(node)
        case _:
            pytest.fail(ast.dump(node))


def check_call(node: ast.Call) -> None:
    match node.func:
        case ast.Name(id=name):
            assert name in CALLS
        case ast.Attribute(value=ast.Name(), attr=name):
            assert name in ("model_validate", "fromisoformat")
        case _:
            pytest.fail(ast.dump(node.func))
    for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
        check_value(part)


def check_source(source: str) -> None:
    """Nothing but imports of what is known, classes, fields and literals."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            assert node.module in MODULES
        elif isinstance(node, ast.ClassDef):
            check_class(node)
        else:
            assert isinstance(node, ast.Expr)
            assert isinstance(node.value, ast.Constant)


def check_class(node: ast.ClassDef) -> None:
    assert not node.decorator_list
    for part in [*node.bases, *(keyword.value for keyword in node.keywords)]:
        check_value(part)
    fields = []
    for line in node.body:
        match line:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id="model_config")], value=value):
                check_value(value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                fields.append(name)
                check_value(annotation)
                if value is not None:
                    check_value(value)
            case _:
                pytest.fail(ast.dump(line))
    assert len(set(fields)) == len(fields)


def test_the_check_knows_what_is_written_for_a_harmless_crd() -> None:
    check_source(models_of(CRD))
    with pytest.raises(BaseException, match="Import"):
        check_source("class A:\n    import os")


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(st.sampled_from(PLACES), TEXTS)
def test_a_hostile_text_anywhere_stays_a_text(path: tuple[Any, ...], text: str) -> None:
    try:
        source = models_of(with_text(path, text))
    except UsageError:
        return
    check_source(source)


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_each_known_attack_stays_a_text_in_each_place(text: str) -> None:
    for path in PLACES:
        try:
            source = models_of(with_text(path, text))
        except UsageError:
            continue
        check_source(source)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ALL_PLACES = sorted({path[:n] for path in PLACES for n in range(1, len(path) + (path[-1] is not None))}, key=str)


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(st.sampled_from(ALL_PLACES), ANYTHING)
def test_a_value_of_another_type_anywhere_is_read_or_refused(path: tuple[Any, ...], value: Any) -> None:
    try:
        source = models_of(with_text(path, value))
    except UsageError:
        return
    check_source(source)


def test_depth_is_a_documented_error() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "object", "properties": {"a": deep}}
    value: Any = "x"
    for _ in range(5000):
        value = [value]
    spec = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec")
    for crd in (with_text(spec, deep), with_text((*spec, "properties", "free", "default"), value)):
        with pytest.raises(UsageError, match="nested deeper than 100 levels"):
            models_of(crd)


def test_many_classes_of_one_name_take_linear_time() -> None:
    spec = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec")
    many = {
        f"a{n}": {
            "type": "object",
            "properties": {"x": {"type": "object", "properties": {f"y{n}": {"type": "string"}}}},
        }
        for n in range(3000)
    }
    check_source(models_of(with_text(spec, {"type": "object", "properties": many})))


def test_names_that_clash_are_told_apart() -> None:
    other = copy.deepcopy(CRD)
    other["spec"]["group"] = "other.example.com"
    spec = other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {"a-b": {"type": "string"}, "a_b": {"type": "string"}, "aB": {"type": "string"}}
    source = models_of([CRD, other])
    check_source(source)
    assert "class Thing(" in source
    assert "class Thing2(" in source
    assert "kind='Thing'," in source
    fields = [line.strip() for line in source.splitlines() if "a_b" in line]
    assert [line.split(":")[0] for line in fields] == ["a_b_", "a_b", "a_b__"]
    assert all(
        f"alias='{wire}'" in line for line, wire in zip(fields, ["a-b", "a_b", "aB"], strict=True) if wire != "aB"
    )


@given(ANYTHING)
def test_a_literal_is_the_value(value: Any) -> None:
    try:
        source = literal(value, 4)
    except ValueError:
        return
    assert ast.literal_eval(source) == value


@given(TEXTS)
def test_a_text_is_one_constant_wherever_it_stands(text: str) -> None:
    for source in (quoted(text), long_text(text)):
        assert ast.literal_eval(source) == text
    tree = ast.parse("\n".join(["class A:", *docstring(text)]))
    (cls,) = tree.body
    assert isinstance(cls, ast.ClassDef)
    assert [type(node) for node in cls.body] == [ast.Expr]
