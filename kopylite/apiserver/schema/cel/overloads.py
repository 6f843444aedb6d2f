"""Static types: which operators and functions fit which operands, as far as the types are known. Pure.

Kubernetes refuses a CRD with a rule that can never be evaluated. Where a type is unknown here, nothing is said:
such a rule is accepted, and fails when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopylite.apiserver.schema.cel.shapes import Shape

_NUMBERS = frozenset({"int", "uint", "double"})
_ORDERED = _NUMBERS | {"string", "bytes", "bool", "timestamp", "duration"}
_LIST, _STRING, _INT, _ANY = "list", "string", "int", "dyn"
_ON_STRING = ((_STRING,),)
_TWO_STRINGS = ((_STRING, _STRING),)
# The receiver of a method is the first operand. Only functions whose results users' rules depend on most.
_SIGNATURES: dict[str, Sequence[tuple[str, ...]]] = {
    "size": ((_STRING,), ("bytes",), (_LIST,), ("map",)),
    "matches": _TWO_STRINGS, "startsWith": _TWO_STRINGS, "endsWith": _TWO_STRINGS, "contains": _TWO_STRINGS,
    "lowerAscii": _ON_STRING, "upperAscii": _ON_STRING, "trim": _ON_STRING,
    "replace": ((_STRING, _STRING, _STRING), (_STRING, _STRING, _STRING, _INT)),
    "split": ((_STRING, _STRING), (_STRING, _STRING, _INT)),
    "substring": ((_STRING, _INT), (_STRING, _INT, _INT)),
    "charAt": ((_STRING, _INT),),
    "find": _TWO_STRINGS, "findAll": ((_STRING, _STRING), (_STRING, _STRING, _INT)),
    "indexOf": ((_STRING, _STRING), (_STRING, _STRING, _INT), (_LIST, _ANY)),
    "lastIndexOf": ((_STRING, _STRING), (_STRING, _STRING, _INT), (_LIST, _ANY)),
    "join": ((_LIST,), (_LIST, _STRING)),
    "isSorted": ((_LIST,),), "sum": ((_LIST,),), "min": ((_LIST,),), "max": ((_LIST,),), "sort": ((_LIST,),),
    "distinct": ((_LIST,),), "reverse": ((_LIST,),), "slice": ((_LIST, _INT, _INT),),
    "isQuantity": _ON_STRING, "quantity": _ON_STRING, "isURL": _ON_STRING, "url": _ON_STRING, "isIP": _ON_STRING,
    "isCIDR": _ON_STRING, "cidr": _ON_STRING,
}  # fmt: skip
# What the value of an expression is called.
VALUE_NAMES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def type_name(shape: Shape) -> str:
    """A type as CEL's compiler writes it; "" if it is unknown (or an object, whose name the server makes up)."""
    if shape.kind in ("dyn", "object", "optional"):
        return ""
    if shape.kind in ("list", "map"):
        element = type_name(shape.element) if shape.element is not None else ""
        if not element:
            return ""
        return f"list({element})" if shape.kind == "list" else f"map(string, {element})"
    return shape.kind


def operator_problem(operator: str, left: Shape, right: Shape) -> str:
    """Why a binary operator does not fit its operands; "" if it does, or nobody knows."""
    names = type_name(left), type_name(right)
    if not all(names) or _fits(operator, left, right, names):
        return ""
    shown = "@in" if operator == "in" else f"_{operator}_"
    return f"found no matching overload for '{shown}' applied to '({', '.join(names)})'"


def _fits(operator: str, left: Shape, right: Shape, names: tuple[str, str]) -> bool:
    a, b = left.kind, right.kind
    if operator in ("==", "!="):
        return names[0] == names[1]
    if operator in ("<", "<=", ">", ">="):
        return (a in _NUMBERS and b in _NUMBERS) or (a == b and a in _ORDERED)
    if operator == "in":
        if b == "list" and right.element is not None:
            return names[0] == type_name(right.element)
        return b == "map" and a == "string"
    if operator == "%":
        return a == b and a in ("int", "uint")
    if {a, b} <= {"timestamp", "duration"} and operator in "+-":
        return not (operator == "+" and a == b == "timestamp") and not (
            operator == "-" and (a, b) == ("duration", "timestamp")
        )
    if a in _NUMBERS:
        return a == b
    return operator == "+" and names[0] == names[1] and a in ("string", "bytes", "list")


def unary_problem(operator: str, operand: Shape) -> str:
    name = type_name(operand)
    wanted = ("bool",) if operator == "!" else ("int", "double")
    if not name or operand.kind in wanted:
        return ""
    return f"found no matching overload for '{operator}_' applied to '({name})'"


def ternary_problem(yes: Shape, no: Shape) -> str:
    names = type_name(yes), type_name(no)
    if not all(names) or names[0] == names[1]:
        return ""
    return f"found no matching overload for '_?_:_' applied to '(bool, {names[0]}, {names[1]})'"


def bool_problem(operand: Shape) -> str:
    """Why a value cannot be an operand of && and ||, or a condition."""
    name = type_name(operand)
    return f"expected type 'bool' but found '{name}'" if name and operand.kind != "bool" else ""


def call_problem(function: str, operands: Sequence[Shape], *, method: bool) -> str:
    """Why a call does not fit any signature of the function; "" if it does, or nobody knows."""
    signatures = _SIGNATURES.get(function)
    if signatures is None or any(_matches(signature, operands) for signature in signatures):
        return ""
    names = [type_name(shape) for shape in operands]
    if not all(names):
        return ""
    shown = f"{names[0]}.({', '.join(names[1:])})" if method else f"({', '.join(names)})"
    return f"found no matching overload for '{function}' applied to '{shown}'"


def _matches(signature: tuple[str, ...], operands: Sequence[Shape]) -> bool:
    if len(signature) != len(operands):
        return False
    return all(
        wanted == "dyn" or shape.kind in (wanted, "dyn", "optional") or (wanted == "map" and shape.kind == "object")
        for wanted, shape in zip(signature, operands, strict=True)
    )
