"""Random objects for a structural schema: valid ones, and ones that are wrong in some place."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kopylite.testing.examples import MINE, ExampleMaker, SchemaPart

# A text that does not fit, for formats that the zoo and the field use.
_UNFITTING = {"date-time": "noon", "date": "31.1.", "duration": "soon", "byte": "!", "uuid": "1", "ipv4": "300"}


def valid(schema: SchemaPart) -> SearchStrategy[Any]:
    """Values that the schema accepts."""
    return ExampleMaker().value(schema)


def odd(schema: SchemaPart) -> SearchStrategy[Any]:
    """Values of which many are accepted and many are not, often at the very edge."""
    return _OddMaker().value(schema)


class _OddMaker(ExampleMaker):
    def value(self, schema: SchemaPart) -> SearchStrategy[Any]:
        """Weighted, since a value with many parts is rarely right in all of them."""
        strategy = super().value(schema)
        return st.integers(0, 9).flatmap(lambda roll: _wrong(schema) if roll == 0 else strategy)

    def list_bounds(self, schema: SchemaPart) -> tuple[int, int]:
        low, high = super().list_bounds(schema)
        return (max(0, low - 1), high + 1) if "maxItems" in schema else (low, high)

    def map_bounds(self, schema: SchemaPart) -> tuple[int, int]:
        low, high = super().map_bounds(schema)
        return low, high + bool(schema.get("additionalProperties"))

    def properties_of(self, schema: SchemaPart) -> SearchStrategy[dict[str, Any]]:
        properties = schema["properties"]
        mine = schema.get(MINE, properties)
        alone = self._some(schema, {n: self.value(part) for n, part in properties.items() if n in mine})
        if len(mine) == len(properties):
            return alone
        # Beside fields of other variants only right ones: what is wrong for one, Python may take for another.
        return st.one_of(alone, self._some(schema, {n: valid(part) for n, part in properties.items()}))

    @staticmethod
    def _some(schema: SchemaPart, parts: dict[str, SearchStrategy[Any]]) -> SearchStrategy[dict[str, Any]]:
        """Maps of these parts, now and then without one that is required."""
        required = {name: parts.pop(name) for name in schema.get("required", ()) if name in parts}
        complete = st.fixed_dictionaries(required, optional=parts)
        if not required:
            return complete
        partial = st.fixed_dictionaries({}, optional={**required, **parts})
        return st.one_of(complete, complete, partial)


def _wrong(schema: SchemaPart) -> SearchStrategy[Any]:
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
