"""The nodes of an expression as functions of a Frame: what `compiler` puts together. Pure.

Each raises CallFailed with the words of cel-go where there is no value, and CostExceeded where it costs too much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from kopylite.apiserver.schema.cel import costs
from kopylite.apiserver.schema.cel.budget import Frame, share
from kopylite.apiserver.schema.cel.functions import unordered_add, unordered_equal
from kopylite.apiserver.schema.cel.library import FunctionFailed, no_overload
from kopylite.apiserver.schema.cel.macros import Run
from kopylite.apiserver.schema.cel.values import OPERATORS, OptionalValue, StructValue, negate, select


def constant(value: Any) -> Run:
    return lambda frame: value


def name(text: str) -> Run:
    def run(frame: Frame) -> Any:
        frame.cost += 1
        try:
            return frame.variables[text]
        except KeyError:
            raise FunctionFailed(f"no such attribute(s): {text}") from None

    return run


def negation(operand: Run) -> Run:
    def run(frame: Frame) -> bool:
        value = operand(frame)
        frame.cost += 1
        if not isinstance(value, bool):
            raise no_overload()
        return not value

    return run


def minus(operand: Run) -> Run:
    def run(frame: Frame) -> Any:
        frame.cost += 1
        return negate(operand(frame))

    return run


def ternary(condition: Run, yes: Run, no: Run) -> Run:
    def run(frame: Frame) -> Any:
        chosen = condition(frame)
        if not isinstance(chosen, bool):
            raise no_overload()
        return yes(frame) if chosen else no(frame)

    return run


def logical(left: Run, right: Run, *, decisive: bool) -> Run:
    """`||` (True decides) and `&&` (False does): an operand that fails counts only if the other does not decide."""

    def run(frame: Frame) -> bool:
        failure: FunctionFailed | None = None
        for operand in (left, right):
            try:
                value = operand(frame)
            except FunctionFailed as failed:
                failure = failure or failed
                continue
            if value is decisive:
                return bool(decisive)
            if not isinstance(value, bool):
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not decisive

    return run


def binary(operator: str, left: Run, right: Run) -> Run:
    compute = OPERATORS[operator]

    def run(frame: Frame) -> Any:
        a, b = left(frame), right(frame)
        if isinstance(a, (str, bytes, list, dict)) or isinstance(b, (str, bytes, list, dict)):
            text = isinstance(a, (str, bytes))
            frame.spend(costs.operator_cost(operator, costs.size_of(a), costs.size_of(b), text=text))
        else:
            frame.cost += 1
        return compute(a, b)

    return run


def unordered(operator: str, left: Run, right: Run, keys: tuple[str, ...]) -> Run:
    """`==`, `!=` and `+` of lists whose order means nothing."""
    named = list(keys)

    def run(frame: Frame) -> Any:
        a, b = left(frame), right(frame)
        if not isinstance(a, list) or not isinstance(b, list):
            return OPERATORS[operator](a, b)
        frame.spend(1 + (len(a) + len(b) if named else len(a) * len(b) // 10))
        if operator == "+":
            return unordered_add(a, b, named)
        return unordered_equal(a, b, named) == (operator == "==")

    return run


def list_of(items: Sequence[Run], optional: Collection[int]) -> Run:
    def run(frame: Frame) -> list[Any]:
        frame.spend(costs.LIST)
        if not optional:
            return [item(frame) for item in items]
        return [value for i, item in enumerate(items) for value in _kept(item(frame), i in optional)]

    return run


def map_of(entries: Sequence[tuple[Run, Run]], optional: Collection[int]) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        frame.spend(costs.MAP)
        made: dict[Any, Any] = {}
        for i, (key_run, value_run) in enumerate(entries):
            key = key_run(frame)
            if not isinstance(key, (str, int)):
                raise FunctionFailed("unsupported key type")
            for value in _kept(value_run(frame), i in optional):
                if key in made:
                    raise FunctionFailed(f"Failed with repeated key: {key}")
                made[key] = value
        return made

    return run


def struct(fields: Sequence[tuple[str, Run]], optional: Collection[int], type_name: str) -> Run:
    def run(frame: Frame) -> StructValue:
        frame.spend(costs.STRUCT)
        made = StructValue(type_name)
        for i, (field, value_run) in enumerate(fields):
            for value in _kept(value_run(frame), i in optional):
                made[field] = value
        return made

    return run


def _kept(value: Any, optional: bool) -> Sequence[Any]:
    """The value, or nothing where it is an optional one without value."""
    if not optional:
        return (value,)
    if not isinstance(value, OptionalValue):
        raise no_overload()
    return (value.value(),) if value.has_value() else ()


def selection(operand: Run, key: str, shown: str) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if isinstance(value, dict):
            try:
                return value[key]
            except KeyError:
                raise FunctionFailed(f"no such key: {shown}") from None
        raise no_overload()

    return run


def index(operand: Run, key: Run) -> Run:
    def run(frame: Frame) -> Any:
        value, found = operand(frame), key(frame)
        frame.cost += 1
        return select(value, found, found)

    return run


def presence(operand: Run, key: str) -> Run:
    def run(frame: Frame) -> bool:
        value = operand(frame)
        if not isinstance(value, dict):
            raise no_overload()
        return key in value

    return run


def optional_selection(operand: Run, key: str) -> Run:
    return optional_index(operand, constant(key))


def optional_index(operand: Run, key: Run) -> Run:
    """`value.?key`, `value[?key]`, and every selection after one: absent if the value or the key is."""

    def run(frame: Frame) -> OptionalValue:
        value, found = operand(frame), key(frame)
        frame.cost += 1
        if isinstance(value, OptionalValue):
            if not value.has_value():
                return value
            value = value.value()
        if isinstance(value, dict):
            return OptionalValue.of(value[found]) if found in value else OptionalValue.none()
        if isinstance(value, list) and isinstance(found, int):
            return OptionalValue.of(value[found]) if 0 <= found < len(value) else OptionalValue.none()
        raise no_overload()

    return run


def optional_presence(operand: Run, key: str) -> Run:
    chosen = optional_selection(operand, key)
    return lambda frame: chosen(frame).has_value()


def or_value(operand: Run, fallback: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if not isinstance(value, OptionalValue):
            raise no_overload()
        return value.value() if value.has_value() else fallback(frame)

    return run


def call(function: str, implementation: Callable[..., Any], operands: Sequence[Run]) -> Run:
    """A library function that meets arguments of wrong types with the error of CEL, not with one of Python."""

    def run(frame: Frame) -> Any:
        values = [operand(frame) for operand in operands]
        sizes = list(map(costs.size_of, values))
        if function in costs.TRAVERSING and isinstance(values[0], list):
            frame.spend(costs.traversal(values[0]))
        elif function == "lists.range":
            frame.spend(values[0] if isinstance(values[0], int) else 1)
        else:
            frame.spend(costs.call_cost(function, sizes))
        try:
            made = implementation(*values)
        except (AttributeError, TypeError, KeyError, IndexError, ValueError, ArithmeticError) as error:
            raise no_overload() from error
        if function == "join":
            frame.spend(share(costs.size_of(made), 0.2))
        return made

    return run
