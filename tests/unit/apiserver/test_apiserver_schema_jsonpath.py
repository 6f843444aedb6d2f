from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.jsonpath import compile_path, field_names, first

OBJ: dict[str, Any] = {
    "spec": {"a": 1, "b.c": 2, "list": [1, 2, 3], "nested": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]},
    "metadata": {"annotations": {"example.com/x": "v"}},
    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "Ready", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.a", [1]), (".spec.missing", []), (".spec.a.deeper", []), (r".spec.b\.c", [2]), (".spec['b.c']", [2]),
        (r".metadata.annotations.example\.com/x", ["v"]), (".spec.list[0]", [1]), (".spec.list[-1]", [3]),
        (".spec.list[-1:]", [3]), (".spec.list[0:2]", [1, 2]), (".spec.list[*]", [1, 2, 3]),
        (".spec.list[0,2]", [1, 3]),
        (".spec.list[9]", []), (".spec.nested[*].v", [1, 2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["False"]),
        (".status.conditions[?(@.type=='Ready')].status", ["False"]), (".spec.nested[?(@.v>1)].n", ["y"]),
        (".spec.nested[?(@.q)].n", []), ("..n", ["x", "y"]), (".spec['a','b.c']", [1, 2]), (".", [OBJ]),
        (".spec.*", [1, 2, [1, 2, 3], OBJ["spec"]["nested"]]),
    ],
)  # fmt: skip
def test_a_path_yields_what_it_leads_to(path: str, values: list[Any]) -> None:
    assert compile_path(path)(OBJ) == values


@pytest.mark.parametrize("path", ["spec", ".a[", ".a[x]", ".a[?(b)]", ".a b"])
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError):
        compile_path(path)


def test_the_first_value_or_none() -> None:
    assert first(".spec.list[*]", OBJ) == 1
    assert first(".spec.none", OBJ) is None


def test_a_plain_path_has_names() -> None:
    assert field_names(".spec.replicas") == ("spec", "replicas")
