"""Declarations: the handlers of a module, however they were declared. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from kopylite.migration.vocabulary import DECLARATIONS, SUBHANDLERS, Vocabulary

HandlerNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(slots=True)
class HandlerDeclaration:
    """One handler for one cause.

    Attributes:
        what: "create", "timer", ...
        name: the expression that calls its function in the module, as "create_fn" or "Handlers.create_fn".
        function: its definition; None: that is elsewhere.
        line: where it is declared.
        text: what was declared, "@kopf.on.create('pods')".
        call: the declaration, with its arguments; None: it has none (`@kopf.on.startup`).
        conditional: it is declared under an `if`, a `try` or the like, so perhaps not at all.
    """

    what: str
    name: str
    function: HandlerNode | None
    line: int
    text: str
    call: ast.Call | None = None
    conditional: bool = False

    @property
    def args(self) -> list[ast.expr]:
        return list(self.call.args) if self.call else []

    @property
    def options(self) -> dict[str, ast.expr]:
        return {each.arg: each.value for each in self.call.keywords if each.arg} if self.call else {}

    @property
    def opaque(self) -> bool:
        """Whether it has options that are known only when the program runs."""
        return bool(self.call and any(each.arg is None for each in self.call.keywords))


@dataclass(slots=True)
class FoundHandlers:
    """What was found in a module.

    Attributes:
        handlers: those that can be called by name.
        decorators: the expressions that declare them, to be taken out.
        statements: whole statements that declare one, to be taken out.
        subhandlers: decorators of functions that are registered while a handler runs.
        strays: declarations that nothing can be made of, each with the reason.
    """

    handlers: list[HandlerDeclaration] = field(default_factory=list)
    decorators: list[ast.expr] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)
    lambdas: list[tuple[ast.Expr, ast.Lambda, str]] = field(default_factory=list)
    subhandlers: list[ast.expr] = field(default_factory=list)
    strays: list[tuple[ast.expr, str, str]] = field(default_factory=list)


def declared_in(tree: ast.Module, words: Vocabulary) -> FoundHandlers:
    """The declarations of a module."""
    found, aliases = FoundHandlers(), _aliases(tree, words)
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    for statement in tree.body:
        _applied(statement, words, functions, found, aliases)
    for function, owner, why in _functions(tree):
        for decorator in function.decorator_list:
            what, call = _meaning(decorator, words, aliases)
            if what in SUBHANDLERS:
                found.subhandlers.append(decorator)
            elif what:
                reason = why or _unbound(function, owner)
                if reason:
                    found.strays.append((decorator, what, reason))
                else:
                    name = f"{owner.name}.{function.name}" if owner else function.name
                    text = f"@{ast.unparse(decorator)}"
                    conditional = function not in (owner.body if owner else tree.body)
                    declared = HandlerDeclaration(what, name, function, decorator.lineno, text, call, conditional)
                    found.handlers.append(declared)
                found.decorators.append(decorator)
            elif words.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator):
                found.strays.append((decorator, ast.unparse(decorator), "kopf had no such decorator in 2026"))
                found.decorators.append(decorator)
    found.handlers.sort(key=lambda each: each.line)
    return found


def _aliases(tree: ast.Module, words: Vocabulary) -> dict[str, tuple[str, ast.Call]]:
    """Names of decorators: `on_page = kopf.on.create('pages')`."""
    found = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            what = DECLARATIONS.get(words.resolve(statement.value.func) or "")
            for target in statement.targets:
                if what and isinstance(target, ast.Name):
                    found[target.id] = what, statement.value
    return found


def _meaning(
    node: ast.expr, words: Vocabulary, aliases: dict[str, tuple[str, ast.Call]]
) -> tuple[str, ast.Call | None]:
    """What a decorator declares; "": nothing of kopf's."""
    if isinstance(node, ast.Name) and node.id in aliases:
        return aliases[node.id]
    called = node.func if isinstance(node, ast.Call) else node
    named = words.resolve(called) or ""
    if named in SUBHANDLERS:
        return named, node if isinstance(node, ast.Call) else None
    return DECLARATIONS.get(named, ""), node if isinstance(node, ast.Call) else None


def _functions(
    tree: ast.Module,
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.ClassDef | None, str]]:
    """All functions, with the class at the top of the module that they are in, and why they can't be called by name."""
    waiting: list[tuple[ast.AST, ast.ClassDef | None, str]] = [(tree, None, "")]
    while waiting:
        node, owner, why = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner_owner, inner_why = owner, why
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield child, owner, why
                inner_why = why or f"it is declared inside of {child.name}(), when that runs"
            elif isinstance(child, ast.ClassDef):
                inner_owner = child if node is tree else owner
                inner_why = why or ("" if node is tree else f"it is in the inner class {child.name}")
            elif isinstance(child, ast.For | ast.While | ast.AsyncFor):
                inner_why = why or f"it is declared under `{type(child).__name__.lower()}`, perhaps often"
            waiting.append((child, inner_owner, inner_why))


def _unbound(function: ast.FunctionDef | ast.AsyncFunctionDef, owner: ast.ClassDef | None) -> str:
    first = [each.arg for each in (*function.args.posonlyargs, *function.args.args)][:1]
    if owner and first in (["self"], ["cls"]):
        return f"it is a method of {owner.name}, and nobody knows of which object"
    return ""


def _applied(
    statement: ast.stmt,
    words: Vocabulary,
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef],
    found: FoundHandlers,
    aliases: dict[str, tuple[str, ast.Call]],
) -> None:
    """A declaration that is no decorator: `kopf.on.create('pages')(create_page)`, or an alias of one."""
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    if not isinstance(value, ast.Call):
        return
    if DECLARATIONS.get(words.resolve(value.func) or ""):
        found.statements.append(statement)
        return
    what, call = _meaning(value.func, words, aliases)
    if not what or not isinstance(value.func, ast.Call) or len(value.args) != 1:
        return
    given, text = value.args[0], ast.unparse(value)
    if isinstance(given, ast.Lambda) and isinstance(statement, ast.Expr):
        name = f"handler_{statement.lineno}"
        found.handlers.append(HandlerDeclaration(what, name, given, statement.lineno, text, call))
        found.lambdas.append((statement, given, name))
    elif isinstance(given, ast.Name | ast.Attribute):
        function = functions.get(given.id) if isinstance(given, ast.Name) else None
        found.handlers.append(HandlerDeclaration(what, ast.unparse(given), function, statement.lineno, text, call))
        found.statements.append(statement)


def arguments_used(function: HandlerNode | None) -> set[str]:
    """The arguments of kopf's that a function asks for: by its parameters, or out of its `**kwargs`."""
    if function is None:
        return set()
    parameters = function.args
    found = {each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)}
    if parameters.kwarg is None:
        return found
    rest = parameters.kwarg.arg
    for node in ast.walk(function):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == rest:
            key = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of = node.func.value
            if isinstance(of, ast.Name) and of.id == rest and node.func.attr in ("get", "pop"):
                key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.add(key.value)
    return found
