"""ExampleMaker: hypothesis strategies for the values that a CRD's schema accepts.

Needs hypothesis, which is imported by whoever asks for a strategy.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SchemaPart = Mapping[str, Any]

# Texts of each format on which no two parsers disagree.
FITTING = {
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
# Which fields belong to the chosen variant of a union.
MINE = "x-kopylite-mine"
_SAFE = {"int32": 2**31 - 1, "int64": 2**63 - 1}


class ExampleMaker:
    """Makes strategies for structural schemas. What rules in CEL, `not` and nested `allOf` forbid, it may make."""

    def value(self, schema: SchemaPart) -> SearchStrategy[Any]:
        """Values that the schema accepts, null where it is nullable."""
        from hypothesis import strategies as st

        choices = [
            {**_merged(schema, branch), MINE: {*branch.get("properties", ()), *branch.get("required", ())}}
            for branch in schema.get("oneOf") or schema.get("anyOf") or ()
        ]
        strategy = st.one_of([self._plain(choice) for choice in choices]) if choices else self._plain(schema)
        return st.one_of(strategy, st.none()) if schema.get("nullable") else strategy

    def list_of(self, schema: SchemaPart) -> SearchStrategy[list[Any]]:
        """Lists, whose elements differ as those of a set or map have to."""
        from hypothesis import strategies as st

        low, high = self.list_bounds(schema)
        keys = schema.get("x-kubernetes-list-map-keys")
        unique = schema.get("x-kubernetes-list-type") in ("set", "map") or schema.get("uniqueItems")
        unique_by = (lambda item: _identity(item, keys)) if unique else None
        items = self.value(schema.get("items", {}))
        return st.lists(items, min_size=low, max_size=max(low, min(high, low + 3)), unique_by=unique_by)

    def list_bounds(self, schema: SchemaPart) -> tuple[int, int]:
        """How long lists are: the least and the most."""
        return schema.get("minItems", 0), schema.get("maxItems", 3)

    def properties_of(self, schema: SchemaPart) -> SearchStrategy[dict[str, Any]]:
        """Objects with declared fields, of which those that are not required may be absent."""
        from hypothesis import strategies as st

        parts = {name: self.value(part) for name, part in schema["properties"].items()}
        required = {name: parts.pop(name) for name in schema.get("required", ()) if name in parts}
        return st.fixed_dictionaries(required, optional=parts)

    def map_bounds(self, schema: SchemaPart) -> tuple[int, int]:
        """How many entries maps have: the least and the most."""
        low = schema.get("minProperties", 0)
        return low, max(low, schema.get("maxProperties", 2))

    def _plain(self, schema: SchemaPart) -> SearchStrategy[Any]:
        from hypothesis import strategies as st

        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return st.one_of(st.integers(0, 2**31 - 1), _text(schema))
        kind = schema.get("type")
        if kind == "object":
            return self.properties_of(schema) if schema.get("properties") else self._map(schema)
        if kind == "array":
            return self.list_of(schema)
        if kind == "string":
            return _text(schema)
        if kind in ("integer", "number"):
            return _number(schema)
        return st.booleans() if kind == "boolean" else anything()

    def _map(self, schema: SchemaPart) -> SearchStrategy[dict[str, Any]]:
        from hypothesis import strategies as st

        low, high = self.map_bounds(schema)
        keys = st.text(string.ascii_lowercase, min_size=1, max_size=5)
        inner = schema.get("additionalProperties")
        return st.dictionaries(keys, self.value(inner) if inner else anything(), min_size=low, max_size=high)


def anything() -> SearchStrategy[Any]:
    """JSON values of no schema, without null."""
    from hypothesis import strategies as st

    leaves = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(string.ascii_letters, max_size=5))
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=2), max_leaves=3)


def _text(schema: SchemaPart) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    if "pattern" in schema:
        ascii_text = st.characters(min_codepoint=32, max_codepoint=126)
        text = st.from_regex(_python_pattern(schema["pattern"]), alphabet=ascii_text)
        return text.filter(lambda value: schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 200))
    if schema.get("format") in FITTING:
        return st.sampled_from(FITTING[schema["format"]])
    low = schema.get("minLength", 0)
    high = min(schema.get("maxLength", low + 5), low + 5)
    return st.text(string.ascii_letters + "-é", min_size=low, max_size=high)


def _python_pattern(pattern: str) -> re.Pattern[str]:
    """Python's $ also matches before a line's end, and Python wants its flags at the start."""
    if pattern.endswith("$"):
        pattern = pattern[:-1] + r"\Z"
    ignore_case = "(?i)" in pattern
    return re.compile(pattern.replace("(?i)", ""), re.IGNORECASE if ignore_case else 0)


def _number(schema: SchemaPart) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    low, high = schema.get("minimum", -(2**31)), schema.get("maximum", _SAFE.get(schema.get("format", ""), 2**31 - 1))
    step = schema.get("multipleOf", 1)
    if schema["type"] == "number":
        return st.floats(low, high, allow_nan=False)
    low += bool(schema.get("exclusiveMinimum"))
    high -= bool(schema.get("exclusiveMaximum"))
    return st.integers(-(-low // step), high // step).map(lambda value: value * step)


def _identity(item: Any, keys: list[str] | None) -> str:
    if keys and isinstance(item, dict):
        item = {key: item.get(key) for key in keys}
    return json.dumps(item, sort_keys=True)


def _merged(schema: SchemaPart, branch: SchemaPart) -> SchemaPart:
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
