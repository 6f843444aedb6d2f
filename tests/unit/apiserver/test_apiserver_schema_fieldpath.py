from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.fieldpath import resolve_field

LEAF = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "properties": {
        "a": {"properties": {"b.c": LEAF, "it's": LEAF}},
        "m": {"additionalProperties": LEAF},
        "s": LEAF,
    }
}


@pytest.mark.parametrize(
    ("path", "printed"),
    [
        (".s", "s"), (".a['b.c']", "a.b.c"), ("['s']", "s"), (".m['k']", "m[k]"), (".m.k", "m[k]"),
        (".a['it\\'s']", "a.it's"),
    ],
)  # fmt: skip
def test_a_path_leads_to_a_schema(path: str, printed: str) -> None:
    assert resolve_field(path, SCHEMA) == (printed, LEAF)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".zz", "does not refer to a valid field"),
        (".s.deeper", "does not refer to a valid field"),
        ("s", "expected [ or . but got: s"),
        (".", "unexpected end of JSON path"),
        ("[0]", "expected single quoted string but got 0"),
        ("['s'", "unexpected end of JSON path"),
        ("['s'.", "expected ] but got ."),
    ],
)
def test_a_path_to_nowhere_is_refused(path: str, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        resolve_field(path, SCHEMA)
    assert str(caught.value) == text


def test_brackets_can_be_forbidden() -> None:
    with pytest.raises(ValueError, match="array notation is not allowed"):
        resolve_field("['s']", SCHEMA, brackets=False)
