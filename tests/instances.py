"""Random objects for a structural schema: valid ones, and ones that are wrong in some place."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Schema = Mapping[str, Any]

# One text that fits and one that does not, for each format that the zoo and the field use. Texts on which the
# server and pydantic might disagree for good reasons (a time zone of 25 hours, say) are of no interest here.
_FITTING = {
    "date-time": ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00+01:00"],
    "date": ["2026-01-31"],
    "duration": ["1h30m0s", "250ms", "0s"],
    "byte": ["", "a29weWxpdGU="],
    "uuid": ["2f1b6e2c-93ad-4f30-9b0e-5d3c6a4be1d2"],
    "uri": ["https://example.com/a?b=c"],
    "ipv4": ["192.0.2.1"],
    "ipv6": ["2001:db8::1"],
    "hostname": ["example.com"],
    "email": ["a@example.com"],
    "cidr": ["192.0.2.0/24"],
}
_UNFITTING = {"date-time": "noon", "date": "31.1.", "duration": "soon", "byte": "!", "uuid": "1", "ipv4": "300"}
_ASCII = st.characters(min_codepoint=32, max_codepoint=126)
# Marks which fields belong to the chosen variant of a union.
_MINE = "x-test-mine"
_SAFE = {"int32": 2**31 - 1, "int64": 2**63 - 1}


def valid(schema: Schema) -> SearchStrategy[Any]:
    """Values that the schema accepts."""
    return _values(schema, odd=False)


def odd(schema: Schema) -> SearchStrategy[Any]:
    """Values of which many are accepted and many are not, often at the very edge."""
    return _values(schema, odd=True)


def _values(schema: Schema, *, odd: bool) -> SearchStrategy[Any]:
    choices = [
        {**_merged(schema, branch), _MINE: {*branch.get("properties", ()), *branch.get("required", ())}}
        for branch in schema.get("oneOf") or schema.get("anyOf") or ()
    ]
    strategy = st.one_of([_plain(choice, odd=odd) for choice in choices]) if choices else _plain(schema, odd=odd)
    if schema.get("nullable"):
        strategy = st.one_of(strategy, st.none())
    if odd:
        # Weighted, since a value with many parts is rarely right in all of them.
        return st.integers(0, 9).flatmap(lambda roll: _wrong(schema) if roll == 0 else strategy)
    return strategy


def _plain(schema: Schema, *, odd: bool) -> SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.one_of(st.integers(0, 2**31 - 1), _text(schema))
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, odd=odd)
    if kind == "array":
        return _list(schema, odd=odd)
    if kind == "string":
        return _text(schema)
    if kind in ("integer", "number"):
        return _number(schema)
    return st.booleans() if kind == "boolean" else _anything()


def _wrong(schema: Schema) -> SearchStrategy[Any]:
    """Values around the edges of the schema, and of other types."""
    values: list[Any] = ["", "nonsense", True, 7, 1.5, -1, [], {}, ["a"], {"a": 1}]
    for limit in ("minimum", "maximum"):
        if limit in schema:
            values += [schema[limit] - 1, schema[limit], schema[limit] + 1]
    for limit in ("minLength", "maxLength"):
        if limit in schema:
            values += ["x" * max(0, schema[limit] + step) for step in (-1, 0, 1)]
    if schema.get("format") in _UNFITTING:
        values.append(_UNFITTING[schema["format"]])
    # The types whose null means "empty" to readers are left alone, and so are sets: Python merges equal items.
    if schema.get("type") not in ("array", "object"):
        values.append(None)
    if schema.get("type") == "array" and "items" in schema:
        values = [value for value in values if value != ["a"]]
    return st.sampled_from(values)


def _text(schema: Schema) -> SearchStrategy[str]:
    if "pattern" in schema:
        text = st.from_regex(_python_pattern(schema["pattern"]), alphabet=_ASCII)
        return text.filter(lambda value: _fits(value, schema))
    if schema.get("format") in _FITTING:
        return st.sampled_from(_FITTING[schema["format"]])
    low = schema.get("minLength", 0)
    high = min(schema.get("maxLength", low + 5), low + 5)
    return st.text(string.ascii_letters + "-é", min_size=low, max_size=high)


def _python_pattern(pattern: str) -> re.Pattern[str]:
    """Python's $ also matches before a line's end, and Python wants its flags at the start."""
    if pattern.endswith("$"):
        pattern = pattern[:-1] + r"\Z"
    ignore_case = "(?i)" in pattern
    return re.compile(pattern.replace("(?i)", ""), re.IGNORECASE if ignore_case else 0)


def _fits(text: str, schema: Schema) -> bool:
    return schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 200)


def _number(schema: Schema) -> SearchStrategy[Any]:
    low, high = schema.get("minimum", -(2**31)), schema.get("maximum", _SAFE.get(schema.get("format", ""), 2**31 - 1))
    step = schema.get("multipleOf", 1)
    if schema["type"] == "number":
        return st.floats(low, high, allow_nan=False)
    low += bool(schema.get("exclusiveMinimum"))
    high -= bool(schema.get("exclusiveMaximum"))
    return st.integers(-(-low // step), high // step).map(lambda value: value * step)


def _list(schema: Schema, *, odd: bool) -> SearchStrategy[list[Any]]:
    items = _values(schema.get("items", {}), odd=odd)
    low, high = schema.get("minItems", 0), schema.get("maxItems", 3)
    if odd and "maxItems" in schema:
        low, high = max(0, low - 1), high + 1
    keys = schema.get("x-kubernetes-list-map-keys")
    unique_by = (lambda item: _identity(item, keys)) if schema.get("x-kubernetes-list-type") in ("set", "map") else None
    return st.lists(items, min_size=low, max_size=max(low, min(high, low + 3)), unique_by=unique_by)


def _identity(item: Any, keys: list[str] | None) -> str:
    if keys and isinstance(item, dict):
        item = {key: item.get(key) for key in keys}
    return json.dumps(item, sort_keys=True)


def _object(schema: Schema, *, odd: bool) -> SearchStrategy[dict[str, Any]]:
    properties = schema.get("properties")
    if properties:
        # What a value of one variant has in the other variants' fields, only the server looks at.
        mine = schema.get(_MINE, properties)
        parts = {name: _values(part, odd=odd and name in mine) for name, part in properties.items()}
        required = {name: parts.pop(name) for name in schema.get("required", ()) if name in parts}
        if odd and required:
            complete = st.fixed_dictionaries(required, optional=parts)
            partial = st.fixed_dictionaries({}, optional={**required, **parts})
            return st.one_of(complete, complete, partial)
        return st.fixed_dictionaries(required, optional=parts)
    keys = st.text(string.ascii_lowercase, min_size=1, max_size=5)
    values = schema.get("additionalProperties")
    low, high = schema.get("minProperties", 0), schema.get("maxProperties", 2)
    if values:
        return st.dictionaries(keys, _values(values, odd=odd), min_size=low, max_size=high + odd)
    return st.dictionaries(keys, _anything(), min_size=low, max_size=high)


def _anything() -> SearchStrategy[Any]:
    leaves = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(string.ascii_letters, max_size=5))
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=2), max_leaves=3)


def _merged(schema: Schema, branch: Schema) -> Schema:
    """A schema together with one of its alternatives."""
    merged = {key: value for key, value in schema.items() if key not in ("oneOf", "anyOf")}
    merged |= {key: value for key, value in branch.items() if key not in ("properties", "required", "items")}
    properties = dict(schema.get("properties", {}))
    for name, part in branch.get("properties", {}).items():
        properties[name] = _merged(properties.get(name, {}), part)
    if properties:
        merged["properties"] = properties
    if required := {*schema.get("required", ()), *branch.get("required", ())}:
        merged["required"] = sorted(required)
    if "items" in branch or "items" in schema:
        merged["items"] = _merged(schema.get("items", {}), branch.get("items", {}))
    return merged
