"""The expressions of a policy about one request: variables are evaluated when they are asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from kopylite.apiserver.schema.cel.budget import Budget
from kopylite.apiserver.schema.cel.library import FunctionFailed
from kopylite.apiserver.schema.cel.program import CompileProblem, EvaluationFailed, OutOfBudget, Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape
from kopylite.apiserver.schema.field_errors import go_quote

_NAMES = ("object", "oldObject", "request", "authorizer", "namespaceObject")
# Where an expression makes objects: these are names of types, and no variables.
_TYPES = ("Object", "JSONPatch")


class ExpressionFailed(Exception):
    """An expression of a policy has no value; the text is upstream's."""


def _names_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    names = _NAMES if spec.get("paramKind") is None else (*_NAMES, "params")
    return names if spec.get("mutations") is None else (*names, *_TYPES)


@lru_cache(maxsize=2048)
def _compiled(expression: str, names: tuple[str, ...], variables: tuple[str, ...]) -> Program:
    known = {name: (name, DYN) for name in variables}
    return Program(expression, {**dict.fromkeys(names, DYN), "variables": Shape("object", known)})


class Variables(dict[str, Any]):
    """`variables`: each is evaluated once, when the first expression selects it."""

    def __init__(self, evaluation: Evaluation, variables: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self._evaluation = evaluation
        self._expressions = {variable["name"]: variable["expression"] for variable in variables}
        self._failed: dict[str, str] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        if name in self._failed:
            raise FunctionFailed(self._failed[name])
        try:
            value = self._evaluation.run(self._expressions[name])
        except (CompileProblem, EvaluationFailed) as error:
            verb = "compile" if isinstance(error, CompileProblem) else "evaluate"
            self._failed[name] = f"composited variable {go_quote(name)} fails to {verb}: {error}"
            raise FunctionFailed(self._failed[name]) from None
        self[name] = value
        return value


class Evaluation:
    """Evaluates the expressions of one policy about one request.

    Args:
        variables: the values of object, oldObject, request, ... by name.
    """

    def __init__(self, spec: Mapping[str, Any], variables: Mapping[str, Any], budget: Budget | None = None) -> None:
        self._names = _names_of(spec)
        self._declared = tuple(variable["name"] for variable in spec.get("variables") or ())
        self._values = {**variables, "variables": Variables(self, spec.get("variables") or ())}
        self.budget = budget or Budget()

    def run(self, expression: str) -> Any:
        """Raises CompileProblem, EvaluationFailed, OutOfBudget, TakesLong."""
        return _compiled(expression, self._names, self._declared).evaluate(self._values, self.budget)

    def value(self, expression: str) -> Any:
        """The value of an expression. Raises ExpressionFailed."""
        try:
            return self.run(expression)
        except EvaluationFailed as failed:
            raise ExpressionFailed(f"expression '{expression}' resulted in error: {failed}") from None
        except CompileProblem as problem:
            raise ExpressionFailed(f"compilation error: compilation failed: {problem}") from None
        except OutOfBudget as out:
            raise ExpressionFailed(str(out)) from None
