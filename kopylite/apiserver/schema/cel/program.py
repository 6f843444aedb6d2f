"""Expressions, compiled and evaluated. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopylite.apiserver.schema.cel.budget import EXCEEDED, PER_CALL, Budget, CostExceeded, Frame
from kopylite.apiserver.schema.cel.compiler import Compiled, compile_tree
from kopylite.apiserver.schema.cel.library import FunctionFailed
from kopylite.apiserver.schema.cel.shapes import Shape
from kopylite.apiserver.schema.cel.syntax import Index, Name, Node, Select, SyntaxProblem, Ternary, parse

NO_OVERLOAD = "no such overload"
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class CompileProblem(Exception):
    """The expression is wrong; the text is that of CEL's compiler."""


class EvaluationFailed(Exception):
    """The expression has no value for these variables; the text says why, in Kubernetes' words."""


class OutOfBudget(Exception):
    """All expressions about an object together have cost more than they may: no further one is evaluated."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class Program:
    """A compiled expression.

    Args:
        source: the expression.
        variables: the static types of what it may use: self, oldSelf, ...

    Attributes:
        shape: the static type of its value.
        cost: the most that one evaluation may cost, as far as the static types tell.
        untyped: is its value a variable of no known type, or something in one? Of other values nothing may be known
            here and something upstream.
        uses_old: does it use `oldSelf`?
        names: the variables that it uses.
        fields: what it selects from them, as "variables.replicas".

    Raises:
        CompileProblem: it does not parse, names something unknown, or mixes types that do not go together.
    """

    def __init__(self, source: str, variables: Mapping[str, Shape]) -> None:
        tree, compiled = _compile(source, variables)
        self.source = source
        self.shape = compiled.part.shape
        self.cost = compiled.part.cost
        self.untyped = self.shape.kind == "dyn" and _is_part(tree)
        self.names = frozenset(compiled.names)
        self.fields = frozenset(compiled.fields)
        self.uses_old = "oldSelf" in compiled.names
        self._run = compiled.part.run

    def evaluate(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """The value of the expression.

        Args:
            budget: what this and other expressions about an object may cost together; None: PER_CALL alone counts.

        Raises:
            EvaluationFailed: there is none, or it costs more than PER_CALL.
            OutOfBudget: the budget is used up.
            TakesLong: it takes longer than the caller wants to wait (`budget.quickly`).
        """
        frame = Frame(dict(variables), PER_CALL if budget is None else budget.limit())
        try:
            value = self._run(frame)
            frame.spend(0)
        except CostExceeded:
            self._charge(budget, frame)
            raise EvaluationFailed(EXCEEDED) from None
        except FunctionFailed as failed:
            self._charge(budget, frame)
            raise EvaluationFailed(str(failed)) from failed
        self._charge(budget, frame)
        return value

    def _charge(self, budget: Budget | None, frame: Frame) -> None:
        if budget is not None:
            budget.charge(frame.cost)
            if budget.left < 0:
                raise OutOfBudget


def _compile(source: str, variables: Mapping[str, Shape]) -> tuple[Node, Compiled]:
    try:
        tree = parse(source)
        compiled = compile_tree(tree, variables)
    except SyntaxProblem as problem:
        raise CompileProblem(problem.pretty(source)) from problem
    if compiled.problems:
        raise CompileProblem("\n".join(problem.pretty(source) for problem in compiled.problems))
    return tree, compiled


def _is_part(node: Node) -> bool:
    """Whether it is a variable, something selected from one, or may be by a condition."""
    while isinstance(node, (Select, Index)):
        node = node.operand
    if isinstance(node, Ternary):
        return _is_part(node.yes) or _is_part(node.no)
    return isinstance(node, Name)
