"""A registry of the functions that expressions may call beside the evaluator's own. Pure.

Functions get Python values, the receiver of a method call first, and raise `FunctionFailed` with the text that
Kubernetes shows. Values without a CEL type of their own (quantities, addresses, versions) are maps with one
key, the name of their kind: equal values have equal maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kopylite.apiserver.schema.cel.shapes import DYN, Shape


class FunctionFailed(Exception):
    """A call has no result; the text is the evaluation error."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        call: what it does.
        shape: the static type of its result.
        is_global: it is called as `name(x)`, not as `x.name()`; many of the core may be called both ways.
    """

    call: Callable[..., Any]
    shape: Shape
    is_global: bool


# What has one size only, as cel-go's isScalar says; comparing two of them costs 1.
_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


def _result(kind: str) -> Shape:
    if kind == "dyn":
        return DYN
    if kind in _SCALARS:
        return Shape(kind, most=1)
    return Shape(kind, element=DYN if kind == "list" else None)


class Library(dict[str, Function]):
    """Functions by the name under which translated expressions call them: `k_` + name."""

    def add(self, name: str, result: str = "dyn", *, is_global: bool = False) -> Callable[..., Any]:
        """A decorator that registers a function by its CEL name; dots of namespaces become underscores."""

        def register(call: Callable[..., Any]) -> Callable[..., Any]:
            self[f"k_{name.replace('.', '_')}"] = Function(call, _result(result), is_global)
            return call

        return register


def no_overload() -> FunctionFailed:
    return FunctionFailed("no such overload")


def attempts(make: Callable[..., Any], *args: Any) -> bool:
    """Does a call succeed?"""
    try:
        make(*args)
    except FunctionFailed:
        return False
    return True
