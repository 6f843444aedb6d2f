"""Expressions, compiled and evaluated. Pure.

Evaluation errors are worded as Kubernetes words them, as far as the evaluator tells what went wrong.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kopylite.apiserver.schema.cel.budget import begin_call
from kopylite.apiserver.schema.cel.engine import Context, OptionalValue, compile_text
from kopylite.apiserver.schema.cel.functions import LIBRARY
from kopylite.apiserver.schema.cel.library import CallFailed
from kopylite.apiserver.schema.cel.shapes import Shape
from kopylite.apiserver.schema.cel.syntax import SyntaxProblem, parse
from kopylite.apiserver.schema.cel.translate import Translated, translate

_FAILED_CALL = re.compile(
    r"Function '.*?' error: Python function call failed: \w+: (.*)\. Check function arg", re.DOTALL
)
_FAILED_CONVERSION = re.compile(r"Function '(int|uint|double|duration|timestamp)' error: ")
_TYPE_NAMES = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
_UNDEFINED = "Undefined variable or function"
NO_OVERLOAD = "no such overload"


class CompileProblem(Exception):
    """The expression is wrong; the text is that of CEL's compiler."""


class EvaluationFailed(Exception):
    """The expression has no value for these variables; the text says why, in Kubernetes' words."""


class Program:
    """A compiled expression.

    Args:
        source: the expression.
        variables: the static types of what it may use: self, oldSelf.

    Attributes:
        shape: the static type of its value.
        uses_old: does it use `oldSelf`?
        functions: the library functions that it calls.
        unsupported: why the evaluator cannot run it although it seems right; "" if it can.

    Raises:
        CompileProblem: it does not parse or names something unknown.
    """

    def __init__(self, source: str, variables: Mapping[str, Shape]) -> None:
        translated = _translate(source, variables)
        self.source = source
        self.shape = translated.shape
        self.uses_old = "oldSelf" in translated.names
        self._escaped = translated.escaped
        self.functions = frozenset(translated.functions)
        self.unsupported = ""
        try:
            self._program = _compiled(translated.text)
        except ValueError as error:
            self.unsupported = str(error).partition("\n")[0]

    def evaluate(self, context: Any) -> Any:
        """The value of the expression.

        Args:
            context: made by `context_of`, with at least this program's functions.

        Raises:
            EvaluationFailed: there is none.
        """
        if self.unsupported:
            raise EvaluationFailed(self.unsupported)
        begin_call()
        try:
            return self._program.execute(context)
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise EvaluationFailed(self._words(error)) from error

    def _words(self, error: Exception) -> str:
        text = str(error)
        if isinstance(error, KeyError):
            key = error.args[0] if error.args else ""
            return f"no such key: {self._escaped.get(key, key)}"
        if isinstance(error, ZeroDivisionError):
            return "modulus by zero" if "modul" in text or "remainder" in text else "division by zero"
        if isinstance(error, OverflowError):
            return "integer overflow"
        # The names are known, so that what is "undefined" is so for this type of receiver.
        if isinstance(error, TypeError) or text.startswith(_UNDEFINED):
            return NO_OVERLOAD
        if conversion := _FAILED_CONVERSION.match(text):
            return f"type conversion error from 'string' to '{_TYPE_NAMES.get(conversion[1], conversion[1])}'"
        failed = _FAILED_CALL.match(text)
        return failed[1] if failed else text


def context_of(variables: Mapping[str, Any], functions: Iterable[str]) -> Any:
    """What programs are evaluated with; making one costs more than most evaluations, so share it."""
    return Context(dict(variables), {name: _GUARDED[name] for name in functions})


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:
    """A CRD is compiled when it is checked and when it is served: the evaluator's part of that once only."""
    return compile_text(text)


def optional(value: Any, present: bool) -> Any:
    """An optional value, as `oldSelf` is where the rule says so."""
    return OptionalValue.of(value) if present else OptionalValue.none()


def _translate(source: str, variables: Mapping[str, Shape]) -> Translated:
    try:
        translated = translate(parse(source), variables)
    except SyntaxProblem as problem:
        raise CompileProblem(problem.pretty(source)) from problem
    if translated.problems:
        raise CompileProblem("\n".join(problem.pretty(source) for problem in translated.problems))
    return translated


def _guarded(call: Callable[..., Any]) -> Callable[..., Any]:
    """A library function that meets arguments of wrong types with the error of CEL, not with one of Python."""

    def guarded(*args: Any) -> Any:
        try:
            return call(*args)
        except (AttributeError, TypeError, KeyError) as error:
            raise CallFailed(NO_OVERLOAD) from error

    return guarded


_GUARDED = {name: _guarded(function.call) for name, function in LIBRARY.items()}
