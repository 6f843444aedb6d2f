"""What the rules of a CRD may cost, and when that is too much for it to be accepted. Pure.

Limits and texts are those of apiextensions-apiserver's validation.go and cel_validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.field_errors import FieldError

RULE_LIMIT, SCHEMA_LIMIT = 10_000_000, 100_000_000
_MAX_REQUEST = 3 * 1024 * 1024
_HINT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_CONTRIBUTED = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_UNBOUNDED = 2**64 - 1
_SHOWN = 4


def cost_text(name: str, cost: int, limit: int) -> str:
    """What the server says of something that costs too much."""
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_HINT}"


def elements(schema: dict[str, Any]) -> int | None:
    """How often what is in a schema may be in one value of it; None if nothing bounds it."""
    bound: str | None = None
    if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        bound = "maxProperties"
    elif schema.get("type") == "array":
        bound = "maxItems"
    if bound is None:
        return 1
    given = schema.get(bound)
    return None if given is None else max(0, int(given))


@dataclass(slots=True)
class CostTotal:
    """What all rules of one schema cost.

    Attributes:
        unchanged: the schema is stored already: no single rule is too expensive then.
    """

    unchanged: bool = False
    total: int = 0
    _expensive: list[tuple[int, str]] = field(default_factory=list)

    def observe(self, path: str, name: str, cost: int, times: int | None, least_bytes: int = 2) -> Iterator[FieldError]:
        """Count an expression; yields what is wrong with it alone.

        Args:
            name: what the expression is called: "rule", "messageExpression".
            cost: of one evaluation at most.
            times: how often its value may be in an object; None: as often as a request has room for it.
            least_bytes: the shortest JSON of the value.
        """
        if name == "rule":
            cost = min(cost * (_MAX_REQUEST // (least_bytes + 1) if times is None else times), _UNBOUNDED)
        if cost > RULE_LIMIT and not self.unchanged:
            yield errors.forbidden(path, cost_text(f"estimated {name} cost", cost, RULE_LIMIT))
        self.total = min(self.total + cost, _UNBOUNDED)
        if cost >= SCHEMA_LIMIT // 100:
            self._expensive = sorted([*self._expensive, (cost, path)], key=lambda each: -each[0])[:_SHOWN]

    def errors(self, path: str) -> Iterator[FieldError]:
        """What is wrong with all of them together."""
        if self.total > SCHEMA_LIMIT:
            for _, expensive in self._expensive:
                yield errors.forbidden(expensive, _CONTRIBUTED)
            name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
            yield errors.forbidden(path, cost_text(name, self.total, SCHEMA_LIMIT))
