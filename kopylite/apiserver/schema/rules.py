"""Validation rules (`x-kubernetes-validations`): checked with their CRD, evaluated with its objects. Pure.

CEL is loaded with the first schema that has rules: most servers start without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.ratchet import Correlation
from kopylite.apiserver.schema.rule_costs import CostTotal
from kopylite.apiserver.schema.rule_presence import RULES, has_rules

if TYPE_CHECKING:
    from kopylite.apiserver.schema.cel.rulebook import RuleNode


class CelRules:
    """All rules of a schema, compiled.

    Args:
        schema: a structural schema.
        root: it is the schema of a whole object.
    """

    def __init__(self, schema: dict[str, Any], *, root: bool = True) -> None:
        node = SchemaNode(schema)
        self._root = _compiled(node, root) if has_rules(node) else None

    def __bool__(self) -> bool:
        return self._root is not None

    def validate(
        self,
        value: Any,
        old: Any,
        correlation: Correlation | None,
        path: str = "",
        ratcheted: list[str] | None = None,
    ) -> list[FieldError]:
        """Evaluate all rules.

        Args:
            value: the new value.
            old: the one before; None on create: rules that need `oldSelf` are left out then.
            correlation: for ratcheting, as for `Validator.validate`.
            path: of the value.
            ratcheted: gets the texts of errors that are forgiven because their part did not change.
        """
        if self._root is None:
            return []
        found: list[FieldError] = []
        forgiven = ratcheted if ratcheted is not None else []
        self._root.start(value, old, path, correlation, (found, forgiven))
        return found


def rule_errors(
    schema: dict[str, Any],
    path: str,
    *,
    root: bool,
    uncorrelatable: str,
    total: CostTotal | None = None,
    times: int | None = 1,
) -> Iterator[FieldError]:
    """What is wrong with the expressions of one schema node.

    Args:
        schema: a structural schema.
        path: of the schema in the CRD.
        root: it is the schema of a whole object.
        uncorrelatable: path of the list or map below which oldSelf cannot be used; "" for none.
        total: counts what the expressions cost; None: they are counted for nobody.
        times: how often the node's value may be in an object; None: nothing bounds it.
    """
    if schema.get(RULES):
        from kopylite.apiserver.schema.cel.rulebook import expression_errors

        counted = CostTotal() if total is None else total
        yield from expression_errors(schema, path, root=root, uncorrelatable=uncorrelatable, total=counted, times=times)


def _compiled(node: SchemaNode, root: bool) -> RuleNode | None:
    from kopylite.apiserver.schema.cel.rulebook import build
    from kopylite.apiserver.schema.cel.shapes import shape_of

    return build(node, shape_of(node, root=root))
