"""The rules of a schema, compiled: a tree of the nodes that have some. Pure.

`schema/rules.py` imports this module, and with it all of CEL, when a schema has rules, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.cel.budget import EXCEEDED, Budget
from kopylite.apiserver.schema.cel.program import (
    NO_OVERLOAD,
    OUT_OF_BUDGET,
    CompileProblem,
    EvaluationFailed,
    OutOfBudget,
    Program,
)
from kopylite.apiserver.schema.cel.shapes import DYN, Shape, shape_of, to_cel
from kopylite.apiserver.schema.cel.values import OptionalValue
from kopylite.apiserver.schema.field_errors import NO_PATH, OMITTED, FieldError, at, child
from kopylite.apiserver.schema.fieldpath import resolve_field
from kopylite.apiserver.schema.go_schema import go_rule
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.ratchet import Correlation, map_key, old_items_by_key
from kopylite.apiserver.schema.rule_costs import CostTotal
from kopylite.apiserver.schema.rule_presence import RULES, has_rules

# The server's limit on what a messageExpression may yield.
_MAX_MESSAGE = 5 * 1024
_REASONS = frozenset({errors.FORBIDDEN, errors.REQUIRED, errors.DUPLICATE, errors.INVALID})


@dataclass(frozen=True, slots=True)
class _Rule:
    """A compiled rule; `field_path` is its fieldPath as errors print it."""

    source: str
    program: Program
    message: str = ""
    message_program: Program | None = None
    reason: str = errors.INVALID
    field_path: str = ""
    optional_old: bool = False

    @property
    def name(self) -> str:
        """What error texts call the rule."""
        return self.message.strip() or self.source.strip()


@dataclass(frozen=True, slots=True)
class Ratchet:
    """The correlation of this node, or else of its nearest ancestor that has one."""

    current: Correlation | None = None
    parent: Correlation | None = None

    def key(self, name: str) -> Ratchet:
        if self.current is None:
            return self
        if self.parent is None and name in ("apiVersion", "kind"):
            return Ratchet()
        return Ratchet(self.current.key(name), self.current)

    def index(self, index: int) -> Ratchet:
        return self if self.current is None else Ratchet(self.current.index(index), self.current)

    @property
    def unchanged(self) -> bool:
        node = self.current or self.parent
        return node is not None and node.unchanged


def expression_errors(
    schema: dict[str, Any], path: str, *, root: bool, uncorrelatable: str, total: CostTotal, times: int | None
) -> Iterator[FieldError]:
    """What is wrong with the expressions of one schema node.

    Args:
        schema: a structural schema.
        path: of the schema in the CRD.
        root: it is the schema of a whole object.
        uncorrelatable: path of the list or map below which oldSelf cannot be used; "" for none.
        total: counts what the expressions cost.
        times: how often the node's value may be in an object; None: nothing bounds it.
    """
    rules = schema.get(RULES) or ()
    if not rules:
        return
    shape = shape_of(SchemaNode(schema), root=root or bool(schema.get("x-kubernetes-embedded-resource")))
    for index, rule in enumerate(rules):
        where = at(child(path, RULES), index)
        if shape is None:
            text = "internal error: failed to retrieve type information for x-kubernetes-validations"
            yield errors.internal(child(path, RULES), text)
            return
        yield from _rule_errors(rule, shape, where, uncorrelatable, Counted(total, times))


@dataclass(frozen=True, slots=True)
class Counted:
    """Where costs are counted, and how often a value may be there."""

    total: CostTotal
    times: int | None


def _rule_errors(
    rule: dict[str, Any], shape: Shape, path: str, uncorrelatable: str, counted: Counted
) -> Iterator[FieldError]:
    scope = _scope(shape, rule)
    where = child(path, "rule")
    try:
        program = Program(rule["rule"], scope)
    except CompileProblem as problem:
        yield errors.invalid(where, go_rule(rule), f"compilation failed: {problem}")
        return
    yield from counted.total.observe(where, "rule", program.cost, counted.times, shape.least_bytes)
    if program.shape.kind not in ("bool", "dyn"):
        yield errors.invalid(where, go_rule(rule), "cel expression must evaluate to a bool")
        return
    if rule.get("messageExpression"):
        where_message = child(path, "messageExpression")
        try:
            message = Program(rule["messageExpression"], scope)
        except CompileProblem as problem:
            yield errors.invalid(where_message, go_rule(rule), f"messageExpression compilation failed: {problem}")
        else:
            if message.shape.kind not in ("string", "dyn"):
                yield errors.invalid(where_message, go_rule(rule), "messageExpression must evaluate to a string")
            else:
                yield from counted.total.observe(where_message, "messageExpression", message.cost, 1)
    if program.uses_old and uncorrelatable:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        yield errors.invalid(where, rule["rule"], text)
    elif not program.uses_old and rule.get("optionalOldSelf") is not None:
        where_old = child(path, "optionalOldSelf")
        yield errors.invalid(where_old, rule["optionalOldSelf"], "may not be set if oldSelf is not used in rule")


def _scope(shape: Shape, rule: dict[str, Any]) -> Mapping[str, Shape]:
    return {"self": shape, "oldSelf": DYN if rule.get("optionalOldSelf") else shape}


def build(schema: SchemaNode, shape: Shape | None) -> RuleNode | None:
    """The rules of a schema and all below it; None if there are none, or expressions must not see the value."""
    if shape is None or not has_rules(schema):
        return None
    rules = [_compile(rule, schema, shape) for rule in schema.raw.get(RULES) or () if (rule.get("rule") or "").strip()]
    items = additional = None
    if schema.items is not None and shape.element is not None:
        items = build(schema.items, shape.element)
    if schema.additional is not None and shape.element is not None:
        additional = build(schema.additional, shape.element)
    shapes = dict(shape.fields.values())
    properties = {}
    for name, inner in schema.properties.items():
        built = build(inner, shapes.get(name) or shape_of(inner, root=inner.embedded))
        if built is not None:
            properties[name] = built
    programs = [rule.program for rule in rules] + [rule.message_program for rule in rules if rule.message_program]
    uses_old = any(program.uses_old for program in programs)
    return RuleNode(schema, shape, rules, items, additional, properties, uses_old)


def _compile(rule: dict[str, Any], schema: SchemaNode, shape: Shape) -> _Rule:
    scope = _scope(shape, rule)
    expression = rule.get("messageExpression")
    reason = rule.get("reason")
    field_path = resolve_field(rule["fieldPath"], dict(schema.raw))[0] if rule.get("fieldPath") else ""
    return _Rule(
        source=rule["rule"],
        program=Program(rule["rule"], scope),
        message=rule.get("message") or "",
        message_program=Program(expression, scope) if expression else None,
        reason=reason if reason in _REASONS else errors.INVALID,
        field_path=field_path,
        optional_old=bool(rule.get("optionalOldSelf")),
    )


Found = tuple[list[FieldError], list[str]]


class _Stopped(Exception):
    """No further rule of the object is evaluated."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What comes out of the rules of one object, and what they may still cost."""

    errors: list[FieldError]
    forgiven: list[str]
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class RuleNode:
    """The rules of one schema node, and the nodes below that have some."""

    schema: SchemaNode
    shape: Shape
    rules: list[_Rule]
    items: RuleNode | None
    additional: RuleNode | None
    properties: Mapping[str, RuleNode]
    uses_old: bool

    def all_rules(self) -> Iterator[_Rule]:
        yield from self.rules
        for node in (self.items, self.additional, *self.properties.values()):
            if node is not None:
                yield from node.all_rules()

    def start(self, value: Any, old: Any, path: str, correlation: Correlation | None, found: Found) -> None:
        """Evaluate the rules of a whole value; `found` gets errors, and the texts of forgiven ones."""
        with suppress(_Stopped):
            self._validate(value, old, path, Ratchet(correlation), Findings(*found))

    def _validate(self, value: Any, old: Any, path: str, ratchet: Ratchet, found: Findings) -> None:
        if value is None:
            return
        if self.rules:
            try:
                self._evaluate(value, old, path, ratchet, found)
            except OutOfBudget:
                found.errors.append(errors.invalid(path or NO_PATH, self.schema.type, OUT_OF_BUDGET))
                raise _Stopped from None
        if isinstance(value, list) and self.items is not None:
            before = old_items_by_key(old, self.schema)
            for index, element in enumerate(value):
                key = map_key(element, self.schema.list_map_keys)
                old_element = before.get(key) if key is not None else None
                self.items._validate(element, old_element, at(path, index), ratchet.index(index), found)
        elif isinstance(value, dict):
            olds = old if isinstance(old, dict) else {}
            for name, inner in value.items():
                node = self.properties.get(name)
                if node is not None:
                    node._validate(inner, olds.get(name), child(path, name), ratchet.key(name), found)
                elif self.additional is not None:
                    self.additional._validate(inner, olds.get(name), at(path, name), ratchet.key(name), found)

    def _evaluate(self, value: Any, old: Any, path: str, ratchet: Ratchet, found: Findings) -> None:
        variables = {"self": to_cel(value, self.shape)}
        if old is not None and self.uses_old:
            variables["oldSelf"] = to_cel(old, self.shape)
        for rule in self.rules:
            if rule.program.uses_old and old is None and not rule.optional_old:
                continue
            bound = variables
            if rule.optional_old:
                old_self = OptionalValue.none() if old is None else OptionalValue.of(variables.get("oldSelf"))
                bound = {**variables, "oldSelf": old_self}
            try:
                if rule.program.evaluate(bound, found.budget) is True:
                    continue
            except EvaluationFailed as failure:
                found.errors.append(self._failure(str(failure), rule, path))
                if str(failure) == EXCEEDED:
                    raise _Stopped from None
                continue
            error = self._violation(rule, value, bound, path, found.budget)
            if not rule.program.uses_old and ratchet.unchanged:
                found.forgiven.append(str(error))
            else:
                found.errors.append(error)

    def _failure(self, text: str, rule: _Rule, path: str) -> FieldError:
        detail = f"{text} evaluating rule: {rule.name}"
        if text == EXCEEDED:
            because = "no further validation rules will be run due to call cost exceeds limit"
            detail = f"'{text}': {because} for rule: {rule.name}"
        if text.startswith(NO_OVERLOAD):
            detail = (
                f"'{text}': call arguments did not match a supported operator, function or macro signature "
                f"for rule: {rule.name}"
            )
        return errors.invalid(path or NO_PATH, self.schema.type, detail)

    def _violation(
        self, rule: _Rule, value: Any, variables: Mapping[str, Any], path: str, budget: Budget
    ) -> FieldError:
        where = (child(path, rule.field_path) if rule.field_path else path) or NO_PATH
        detail = (
            _computed_message(rule, variables, budget) or rule.message.strip() or f"failed rule: {rule.source.strip()}"
        )
        shown = OMITTED if self.schema.type in ("object", "array") else value
        error = FieldError(rule.reason, where, detail, shown)
        return replace(error, detail="") if rule.reason == errors.DUPLICATE else error


def _computed_message(rule: _Rule, variables: Mapping[str, Any], budget: Budget) -> str:
    """The text that a messageExpression yields; "" if there is none, or it is not fit to be shown."""
    if rule.message_program is None:
        return ""
    try:
        text = rule.message_program.evaluate(variables, budget)
    except EvaluationFailed:
        return ""
    if not isinstance(text, str):
        return ""
    text = text.strip()
    return "" if "\n" in text or len(text.encode()) > _MAX_MESSAGE else text
