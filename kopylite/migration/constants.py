"""Constants: what a name of a module stands for, as far as its text says so. Nothing is run. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable

Constants = dict[str, ast.expr]

# Deeper than anybody writes; a name may stand for itself by way of others.
_DEEPEST = 20


def constants_of(trees: Iterable[ast.Module]) -> Constants:
    """Names of modules that are set once, at their top or in a class there ("Config.GROUP"), to something simple."""
    found: Constants = {}
    twice: set[str] = set()
    for tree in trees:
        here: set[str] = set()
        for prefix, statement in _assignments(tree):
            value = statement.value
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and value is not None:
                    name = prefix + target.id
                    if name in here:
                        twice.add(name)
                    here.add(name)
                    found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def _assignments(tree: ast.Module) -> Iterable[tuple[str, ast.Assign | ast.AnnAssign]]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            yield "", statement
        elif isinstance(statement, ast.ClassDef):
            for inner in statement.body:
                if isinstance(inner, ast.Assign | ast.AnnAssign):
                    yield f"{statement.name}.", inner


def text_of(node: ast.expr | None, constants: Constants, depth: int = 0) -> str | None:
    """The text that an expression stands for; None: that is not known."""
    if depth > _DEEPEST or node is None:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    named = _named(node)
    if named is not None:
        return text_of(constants.get(named), constants, depth + 1)
    parts: list[str | None] = []
    if isinstance(node, ast.JoinedStr):
        inner = (each.value if isinstance(each, ast.FormattedValue) else each for each in node.values)
        parts += [text_of(each, constants, depth + 1) for each in inner]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(node.left, constants, depth + 1), text_of(node.right, constants, depth + 1)]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.getenv", "os.environ.get", "getenv"):
        parts = [text_of(node.args[1], constants, depth + 1)] if len(node.args) == 2 else [None]
    else:
        return None
    return None if None in parts else "".join(part for part in parts if part)


def elements_of(node: ast.expr, constants: Constants) -> list[ast.expr] | None:
    """The elements of what is given as `*name`; None: they are not known."""
    seen = 0
    while (named := _named(node)) is not None and seen < _DEEPEST:
        if named not in constants:
            return None
        node, seen = constants[named], seen + 1
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else None


def _named(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None
