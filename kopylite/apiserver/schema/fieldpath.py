"""Field paths in CRDs (of CEL rules and selectable fields): `.spec.a`, `['b.c']`. Pure."""

from __future__ import annotations

import re

from kopylite.apiserver.schema.field_errors import at, child
from kopylite.apiserver.schema.structural import Schema

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'")


def resolve_field(path: str, schema: Schema, *, brackets: bool = True) -> tuple[str, Schema]:
    """Where a rule's fieldPath or a selectable field leads: the path as errors print it, and its schema.

    Raises:
        ValueError: the path leads nowhere, or uses brackets where they are not allowed; the text is the server's.
    """
    tokens = _TOKEN.findall(path)
    printed, index = "", 0
    while index < len(tokens):
        token = tokens[index]
        if token == "[" and not brackets:
            raise ValueError("array notation is not allowed")
        if token not in "[.":
            raise ValueError(f"expected [ or . but got: {token}")
        if index + 1 == len(tokens):
            raise ValueError("unexpected end of JSON path")
        name = tokens[index + 1]
        if token == "[":
            if len(name) < 2 or not (name.startswith("'") and name.endswith("'")):
                raise ValueError(f"expected single quoted string but got {name}")
            name = re.sub(r"\\(.)", r"\1", name[1:-1])
            if tokens[index + 2 : index + 3] != ["]"]:
                got = tokens[index + 2 : index + 3]
                raise ValueError(f"expected ] but got {got[0]}" if got else "unexpected end of JSON path")
            index += 1
        index += 2
        if schema.get("properties") is not None:
            if name not in schema["properties"]:
                raise ValueError("does not refer to a valid field")
            printed, schema = child(printed, name), schema["properties"][name]
        elif isinstance(schema.get("additionalProperties"), dict):
            printed, schema = at(printed, name), schema["additionalProperties"]
        else:
            raise ValueError("does not refer to a valid field")
    return printed, schema
