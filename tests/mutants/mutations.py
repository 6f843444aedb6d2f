"""Small faults, one at a time, in the bodies of a module's functions."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
# What they say is for people who look for a fault, and no contract.
_QUIET = {"debug", "info"}


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        function: the qualified name of the outermost function that it is in.
        line: where.
        source: the whole module with the fault.
    """

    function: str
    line: int
    source: str

    def diff(self, original: str) -> list[str]:
        """The lines that differ, with - and +."""
        lines = difflib.unified_diff(original.splitlines(), self.source.splitlines(), n=0, lineterm="")
        return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a module, by line. Each compiles."""
    found: list[Mutant] = []
    starts = _line_starts(source)
    data = source.encode()
    for name, function in outer_functions(ast.parse(source)):
        for node, replacement in _changes(function):
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            changed = (data[:begin] + replacement.encode() + data[end:]).decode()
            try:
                compile(changed, "mutant", "exec")
            except (SyntaxError, ValueError):
                continue  # a `nonlocal` without its assignment, and the like
            found.append(Mutant(name, node.lineno, changed))
    return sorted(found, key=lambda mutant: mutant.line)


def outer_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions and methods, with their qualified names; those inside of others belong to them."""
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            todo += [(f"{prefix}{node.name}.", inner) for inner in node.body]


def code_of(source: str, filename: str) -> dict[str, list[CodeType]]:
    """The code of the outermost functions by qualified name, in the order of the file."""
    found: dict[str, list[CodeType]] = {}
    todo = [compile(source, filename, "exec")]
    while todo:
        for constant in todo.pop(0).co_consts:
            if not isinstance(constant, CodeType):
                continue
            if constant.co_flags & 0x2:  # a function's (CO_NEWLOCALS), and not a class's body
                found.setdefault(constant.co_qualname, []).append(constant)
            else:
                todo.append(constant)
    return found


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """(what to replace, by which text)."""
    todo: list[ast.AST] = list(function.body)
    if ast.get_docstring(function) is not None:
        todo.pop(0)
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Assert) or _is_quiet(node):
            continue
        yield from _of_statement(node, function.name)
        if isinstance(node, ast.expr):
            yield from _of_expression(node)
        if isinstance(node, ast.Raise):
            continue  # which error, and its words
        if isinstance(node, ast.AnnAssign):
            todo += [node.value] if node.value is not None else []
            continue
        todo += [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.arguments, ast.JoinedStr))]


def _is_quiet(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr in _QUIET
    )


def _of_statement(node: ast.AST, function: str) -> Iterator[tuple[ast.stmt, str]]:
    if (
        isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Constant, ast.Yield, ast.YieldFrom))
    ) or isinstance(node, (ast.Delete, ast.AugAssign, ast.Raise)):
        yield node, "pass"
    elif isinstance(node, ast.Assign) and function != "__init__":
        if all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            yield node, "pass"
    elif isinstance(node, ast.Return) and node.value is not None and not _is_nothing(node.value):
        yield node, "return None"
    elif isinstance(node, ast.Break):
        yield node, "continue"
    elif isinstance(node, ast.Continue):
        yield node, "break"


def _of_expression(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        changed = copy.copy(node)
        changed.ops = [_COMPARISONS[type(node.ops[0])]()]
        yield node, f"({ast.unparse(changed)})"
    elif isinstance(node, ast.BoolOp):
        other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield node, f"({ast.unparse(ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right))})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield node, repr(node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield node, f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"


def _is_nothing(node: ast.expr) -> bool:
    """None, or False, which is turned to True already and does what None does."""
    return isinstance(node, ast.Constant) and (node.value is None or node.value is False)
