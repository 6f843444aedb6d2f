"""Values of CEL that Python has not, and the operators on all of them, as cel-go has them. Pure.

bool, int, float, str, bytes, list, dict, datetime and timedelta are Python's own; `Uint` and `OptionalValue` are here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from kopylite.apiserver.schema.cel.budget import check_length
from kopylite.apiserver.schema.cel.library import FunctionFailed, no_overload

_INT_MIN, _INT_MAX, _UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class Uint(int):
    """An unsigned number: no int, though it compares with one."""


class OptionalValue:
    """A value that may be absent."""

    __slots__ = ("_found",)

    def __init__(self, found: tuple[Any, ...]) -> None:
        self._found = found

    @classmethod
    def of(cls, value: Any) -> OptionalValue:
        return cls((value,))

    @classmethod
    def none(cls) -> OptionalValue:
        return cls(())

    def has_value(self) -> bool:
        return bool(self._found)

    def value(self) -> Any:
        """Raises CallFailed: there is none."""
        if not self._found:
            raise FunctionFailed("optional.none() dereference")
        return self._found[0]


class TypeValue(str):
    """What `type(x)` is: the name of the type."""


def type_of(value: Any) -> TypeValue:
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return TypeValue(name)
    return TypeValue("null_type" if value is None else "dyn")


_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"), (Uint, "uint"), (int, "int"), (float, "double"), (TypeValue, "type"), (str, "string"),
    (bytes, "bytes"), (list, "list"), (dict, "map"), (datetime, "google.protobuf.Timestamp"),
    (timedelta, "google.protobuf.Duration"), (OptionalValue, "optional_type"),
)  # fmt: skip


def equal(a: Any, b: Any) -> bool:
    """CEL's equality: numbers of all types compare, nothing else does across types."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and equal(value, b[key]) for key, value in a.items())
    if isinstance(a, OptionalValue) and isinstance(b, OptionalValue):
        return equal(list(a._found), list(b._found))
    return bool(a == b)


def contains(value: Any, container: Any) -> bool:
    """`value in container`."""
    if isinstance(container, dict):
        return isinstance(value, (str, int, float)) and not isinstance(value, TypeValue) and value in container
    if isinstance(container, list):
        return any(equal(value, element) for element in container)
    raise no_overload()


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        if (_number(a) and _number(b)) or (type(a) is type(b) and isinstance(a, _ORDERED)):
            return compare(a, b)
        raise no_overload()

    return compared


_ORDERED = (str, bytes, bool, datetime, timedelta)


def _bounded(value: int, like: Any) -> int:
    if isinstance(like, Uint):
        if not 0 <= value <= _UINT_MAX:
            raise FunctionFailed("unsigned integer overflow")
        return Uint(value)
    if not _INT_MIN <= value <= _INT_MAX:
        raise FunctionFailed("integer overflow")
    return value


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def computed(a: Any, b: Any) -> Any:
        if type(a) is not type(b) or not _number(a):
            raise no_overload()
        return compute(a, b) if isinstance(a, float) else _bounded(compute(a, b), a)

    return computed


def add(a: Any, b: Any) -> Any:
    if isinstance(a, list) and isinstance(b, list):
        return a + b
    if (isinstance(a, str) and isinstance(b, str)) or (isinstance(a, bytes) and isinstance(b, bytes)):
        check_length(len(a) + len(b))
        return a + b  # type: ignore[operator]
    if isinstance(b, timedelta) and isinstance(a, (datetime, timedelta)):
        return _timed(operator.add, a, b)
    if isinstance(a, timedelta) and isinstance(b, datetime):
        return _timed(operator.add, b, a)
    return _ADD(a, b)


def subtract(a: Any, b: Any) -> Any:
    both = isinstance(a, datetime) and isinstance(b, datetime)
    if both or (isinstance(b, timedelta) and isinstance(a, (datetime, timedelta))):
        return _timed(operator.sub, a, b)
    return _SUBTRACT(a, b)


def _timed(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    try:
        return compute(a, b)
    except OverflowError:
        raise FunctionFailed("timestamp overflow" if isinstance(a, datetime) else "duration overflow") from None


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return a / b if b else float("nan") if not a or a != a else float("inf") * (1 if a > 0 else -1)
    if not b:
        raise FunctionFailed("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def modulo(a: Any, b: Any) -> Any:
    if type(a) is not type(b) or not _number(a) or isinstance(a, float):
        raise no_overload()
    if not b:
        raise FunctionFailed("modulus by zero")
    rest = abs(a) % abs(b)
    return _bounded(-rest if a < 0 else rest, a)


def negate(value: Any) -> Any:
    if not _number(value) or isinstance(value, Uint):
        raise no_overload()
    return -value if isinstance(value, float) else _bounded(-value, value)


_ADD, _SUBTRACT = _arithmetic(operator.add), _arithmetic(operator.sub)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal, "!=": lambda a, b: not equal(a, b), "in": contains,
    "<": _ordered(operator.lt), "<=": _ordered(operator.le), ">": _ordered(operator.gt), ">=": _ordered(operator.ge),
    "+": add, "-": subtract, "*": _arithmetic(operator.mul), "/": _arithmetic(_divide), "%": modulo,
}  # fmt: skip


def select(value: Any, key: Any, shown: Any) -> Any:
    """`value.key` or `value[key]`; `shown` is how errors name the key.

    Raises:
        CallFailed: no such key, index or overload.
    """
    if isinstance(value, dict):
        try:
            return value[key]
        except KeyError:
            raise FunctionFailed(f"no such key: {shown}") from None
        except TypeError:
            raise no_overload() from None
    if isinstance(value, list):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, int) or isinstance(key, bool):
            raise FunctionFailed(f"unsupported index type '{type_of(key)}' in list")
        if not 0 <= key < len(value):
            raise FunctionFailed(f"index out of bounds: {key}")
        return value[key]
    raise no_overload()


class StructValue(dict[str, Any]):
    """An object that an expression makes: `Object.spec{replicas: 3}`.

    Attributes:
        type: the name of its type, as written.
    """

    __slots__ = ("type",)

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type = type_name
