"""From the tree of an expression to a function that evaluates it: names and types are checked on the way. Pure.

Each node becomes a closure over those of its parts, so that evaluation looks nothing up that was known before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from kopylite.apiserver.schema.cel import closures, costs, macros
from kopylite.apiserver.schema.cel.addresses import FORMAT_NAMES
from kopylite.apiserver.schema.cel.functions import LIBRARY, NAMESPACED, STRUCTS
from kopylite.apiserver.schema.cel.library import FunctionFailed
from kopylite.apiserver.schema.cel.literals import literal_value
from kopylite.apiserver.schema.cel.macros import MACRO_COSTS, Loop, Run
from kopylite.apiserver.schema.cel.overloads import (
    bool_problem,
    call_problem,
    operator_problem,
    ternary_problem,
    unary_problem,
)
from kopylite.apiserver.schema.cel.shapes import DYN, Shape, parse_duration, parse_time
from kopylite.apiserver.schema.cel.syntax import (
    Binary,
    CallExpr,
    Index,
    ListOf,
    Literal,
    MapOf,
    Name,
    Node,
    Select,
    Struct,
    SyntaxProblem,
    Ternary,
    Unary,
)
from kopylite.apiserver.schema.cel.values import TypeValue
from kopylite.apiserver.schema.regex import compile_go

_BOOL, _INT, _KEY = Shape("bool", most=1), Shape("int", most=1), Shape("string", most=0)
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"})
_TYPE_NAMES = frozenset({"int", "uint", "double", "string", "bool", "bytes", "list", "map", "null_type", "type"})
_LOOPS = frozenset({"all", "exists", "exists_one", "map", "filter"})
_PAIRED = frozenset({"all", "exists", "exists_one", "transformList", "transformMap", "transformMapEntry"})


def _is_regex(text: str) -> bool:
    try:
        compile_go(text)
    except ValueError:
        return False
    return True


_LITERAL_CHECKS: dict[str, Callable[[str], bool]] = {
    "matches": _is_regex,
    "duration": lambda text: parse_duration(text) is not None,
    "timestamp": lambda text: parse_time(text) is not None,
}
Bindings = Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Part:
    """A compiled node.

    Attributes:
        run: evaluates it.
        shape: the static type of its value; its `most` is the greatest size of the value.
        cost: the most that its evaluation may cost.
    """

    run: Run
    shape: Shape
    cost: int = 0


@dataclass(slots=True)
class Compiled:
    """A compiled expression.

    Attributes:
        names: the variables that it uses, those of macros excepted.
        fields: the dotted paths that it selects from them, for who has to know which are used: "variables.a".
        problems: what is wrong with it; it must not be run if there is anything.
    """

    part: Part
    names: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    problems: list[SyntaxProblem] = field(default_factory=list)


def compile_tree(node: Node, variables: Bindings) -> Compiled:
    """Compile a tree that sees `variables`."""
    return _Compiler(variables).whole(node)


class _Compiler:
    def __init__(self, variables: Bindings) -> None:
        self._result = Compiled(Part(lambda frame: None, DYN))
        self._variables = variables

    def whole(self, node: Node) -> Compiled:
        self._result.part = self.visit(node, self._variables)
        return self._result

    def visit(self, node: Node, scope: Bindings) -> Part:
        return _VISITS[type(node)](self, node, scope)

    def _check(self, message: str, at: int) -> None:
        if message:
            self._result.problems.append(SyntaxProblem(message, at))

    def _problem(self, message: str, at: int) -> Part:
        self._result.problems.append(SyntaxProblem(message, at))
        return Part(lambda frame: None, DYN)

    def _literal(self, node: Literal, scope: Bindings) -> Part:
        try:
            value = literal_value(node.text)
        except FunctionFailed as failed:
            return self._problem(f"Syntax error: {failed}", node.at)
        shape = Shape(_LITERAL_KINDS.get(type(value), "uint"), most=costs.size_of(value))
        return Part(lambda frame: value, shape)

    def _name(self, node: Name, scope: Bindings) -> Part:
        if node.name in scope:
            if scope is self._variables or node.name in self._variables:
                self._result.names.add(node.name)
            return Part(closures.name(node.name), scope[node.name], 1)
        if node.name in _TYPE_NAMES:
            value = TypeValue(node.name)
            return Part(lambda frame: value, DYN, 1)
        return self._problem(f"undeclared reference to '{node.name}' (in container '')", node.at)

    def _unary(self, node: Unary, scope: Bindings) -> Part:
        operand = self.visit(node.operand, scope)
        self._check(unary_problem(node.operator, operand.shape), node.at)
        if node.operator == "!":
            return Part(closures.negation(operand.run), _BOOL, operand.cost + 1)
        return Part(closures.minus(operand.run), replace(operand.shape, most=1), operand.cost + 1)

    def _ternary(self, node: Ternary, scope: Bindings) -> Part:
        condition, yes, no = (self.visit(part, scope) for part in (node.condition, node.yes, node.no))
        self._check(bool_problem(condition.shape), node.condition.at)
        self._check(ternary_problem(yes.shape, no.shape), node.at)
        most = max(yes.shape.most, no.shape.most)
        shape = replace(yes.shape if yes.shape.kind == no.shape.kind else DYN, most=most)
        run = closures.ternary(condition.run, yes.run, no.run)
        return Part(run, shape, costs.bounded(condition.cost + max(yes.cost, no.cost)))

    def _binary(self, node: Binary, scope: Bindings) -> Part:
        left, right = self.visit(node.left, scope), self.visit(node.right, scope)
        operator = node.operator
        cost = left.cost + right.cost
        if operator in ("||", "&&"):
            self._check(bool_problem(left.shape), node.left.at)
            self._check(bool_problem(right.shape), node.right.at)
            run = closures.logical(left.run, right.run, decisive=operator == "||")
            return Part(run, _BOOL, costs.bounded(cost))
        self._check(operator_problem(operator, left.shape, right.shape), node.at)
        text = {left.shape.kind, right.shape.kind} & {"string", "bytes"}
        cost += costs.operator_cost(operator, left.shape.most, right.shape.most, text=bool(text))
        shape = _BOOL if operator in _COMPARISONS else left.shape
        if operator == "+":
            shape = replace(shape, most=costs.bounded(left.shape.most + right.shape.most))
        if left.shape.list_type != "atomic" and operator in ("==", "!=", "+"):
            run = closures.unordered(operator, left.run, right.run, left.shape.keys)
        else:
            run = closures.binary(operator, left.run, right.run)
        return Part(run, shape, costs.bounded(cost))

    def _list(self, node: ListOf, scope: Bindings) -> Part:
        items = [self.visit(item, scope) for item in node.items]
        shapes = {item.shape.kind for item in items}
        element = items[0].shape if len(shapes) == 1 else DYN
        element = replace(element, most=max((item.shape.most for item in items), default=0))
        if element.kind in ("list", "map", "object"):
            element = DYN
        run = closures.list_of([item.run for item in items], node.optional)
        cost = costs.bounded(sum(item.cost for item in items) + costs.LIST)
        known = element if items and not node.optional else DYN
        return Part(run, Shape("list", element=known, most=len(items)), cost)

    def _map(self, node: MapOf, scope: Bindings) -> Part:
        pairs = [(self.visit(key, scope), self.visit(value, scope)) for key, value in node.entries]
        run = closures.map_of([(key.run, value.run) for key, value in pairs], node.optional)
        cost = sum(key.cost + value.cost for key, value in pairs) + costs.MAP
        return Part(run, replace(DYN, most=len(pairs)), costs.bounded(cost))

    def _struct(self, node: Struct, scope: Bindings) -> Part:
        if node.type.partition(".")[0] not in STRUCTS or node.type.partition(".")[0] not in self._variables:
            return self._problem(f"undeclared reference to '{node.type}' (in container '')", node.at)
        values = [(name, self.visit(value, scope)) for name, value in node.fields]
        run = closures.struct([(name, value.run) for name, value in values], node.optional, node.type)
        cost = sum(value.cost for _, value in values) + costs.STRUCT
        return Part(run, Shape(f"struct:{node.type}"), costs.bounded(cost))

    def _selected(self, node: Select, scope: Bindings) -> tuple[Part, str, Shape]:
        """The operand, the real name of the field, and the field's shape."""
        operand = self.visit(node.operand, scope)
        shape = operand.shape
        if isinstance(node.operand, Name):
            self._result.fields.add(f"{node.operand.name}.{node.field}")
        if shape.kind == "object":
            found = shape.fields.get(node.field)
            if found is None:
                self._problem(f"undefined field '{node.field}'", node.at)
                return operand, node.field, DYN
            return operand, found[0], found[1]
        if shape.kind == "map":
            return operand, node.field, shape.element or DYN
        if shape.kind not in ("dyn", "optional") and not shape.kind.startswith("struct:"):
            self._problem(f"type '{shape.kind}' does not support field selection", node.at)
        return operand, node.field, DYN

    def _select(self, node: Select, scope: Bindings) -> Part:
        operand, name, shape = self._selected(node, scope)
        if node.optional or is_optional(node.operand):
            return Part(closures.optional_selection(operand.run, name), DYN, operand.cost + 1)
        own = operand.shape.kind in ("map", "object")
        return Part(closures.selection(operand.run, name, node.field), shape, operand.cost + own)

    def _index(self, node: Index, scope: Bindings) -> Part:
        operand, index = self.visit(node.operand, scope), self.visit(node.index, scope)
        cost = costs.bounded(operand.cost + index.cost + 1)
        if node.optional or is_optional(node.operand):
            return Part(closures.optional_index(operand.run, index.run), DYN, cost)
        known = operand.shape.kind in ("list", "map")
        return Part(closures.index(operand.run, index.run), (operand.shape.element or DYN) if known else DYN, cost)

    def _call(self, node: CallExpr, scope: Bindings) -> Part:
        function = "exists_one" if node.function == "existsOne" else node.function
        if node.target is None:
            return self._global_call(node, scope)
        if isinstance(node.target, Name) and node.target.name not in scope:
            return self._namespaced_call(node, node.target.name, scope)
        macro = self._macro(node, function, scope)
        if macro is not None:
            return macro
        operands = [self.visit(part, scope) for part in (node.target, *node.args)]
        self._check_call(node, operands, method=True)
        if node.function == "orValue" and len(operands) == 2:
            cost = sum(operand.cost for operand in operands) + 1
            return Part(closures.or_value(operands[0].run, operands[1].run), DYN, costs.bounded(cost))
        return self._library_call(node, node.function, operands, method=True)

    def _library_call(self, node: CallExpr, name: str, operands: Sequence[Part], *, method: bool) -> Part:
        function = LIBRARY.get(f"k_{name.replace('.', '_')}")
        if function is None or not (method or function.is_global):
            return self._undeclared(node, name)
        sizes = [operand.shape.most for operand in operands]
        cost = sum(operand.cost for operand in operands) + costs.call_cost(name, sizes)
        shape = function.shape
        if shape.kind in ("string", "list", "bytes", "dyn"):
            shape = replace(shape, most=costs.result_size(name, sizes or [0]))
        run = closures.call(name, function.call, [operand.run for operand in operands])
        return Part(run, shape, costs.bounded(cost))

    def _undeclared(self, node: CallExpr, name: str) -> Part:
        return self._problem(f"undeclared reference to '{name}' (in container '')", node.at)

    def _check_call(self, node: CallExpr, operands: Sequence[Part], *, method: bool) -> None:
        self._check(call_problem(node.function, [part.shape for part in operands], method=method), node.at)
        literal = node.args[-1] if node.args else None
        check = _LITERAL_CHECKS.get(node.function)
        if check is not None and isinstance(literal, Literal) and literal.text[:1] in ("'", '"'):
            text = literal.text.strip("'\"")
            if "\\" not in text and not check(text):
                self._check(f"invalid {node.function} argument", literal.at)

    def _global_call(self, node: CallExpr, scope: Bindings) -> Part:
        if node.function == "has" and len(node.args) == 1:
            return self._has(node, scope)
        operands = [self.visit(arg, scope) for arg in node.args]
        if node.function == "dyn" and len(operands) == 1:
            return Part(operands[0].run, replace(DYN, most=operands[0].shape.most), operands[0].cost + 1)
        self._check_call(node, operands, method=False)
        return self._library_call(node, node.function, operands, method=False)

    def _namespaced_call(self, node: CallExpr, namespace: str, scope: Bindings) -> Part:
        operands = [self.visit(arg, scope) for arg in node.args]
        full = f"{namespace}.{node.function}"
        if full in NAMESPACED:
            return self._library_call(node, full, operands, method=False)
        if namespace == "format" and node.function in FORMAT_NAMES and not operands:
            literal = closures.constant(node.function)
            return Part(closures.call("format_of", LIBRARY["k_format_of"].call, [literal]), DYN, 1)
        at = node.target.at if node.target is not None else node.at
        self._problem(f"undeclared reference to '{namespace}' (in container '')", at)
        return self._undeclared(node, node.function)

    def _has(self, node: CallExpr, scope: Bindings) -> Part:
        selected = node.args[0]
        if not isinstance(selected, Select):
            return self._problem("invalid argument to has() macro", node.at)
        before = len(self._result.problems)
        operand, name, _ = self._selected(selected, scope)
        self._result.problems[before:] = [
            SyntaxProblem(p.message, node.at) if p.at == selected.at else p for p in self._result.problems[before:]
        ]
        if selected.optional or is_optional(selected.operand):
            return Part(closures.optional_presence(operand.run, name), _BOOL, operand.cost)
        return Part(closures.presence(operand.run, name), _BOOL, operand.cost)

    def _macro(self, node: CallExpr, function: str, scope: Bindings) -> Part | None:
        names = [arg.name for arg in node.args[:2] if isinstance(arg, Name)]
        count = len(node.args)
        if function in ("optMap", "optFlatMap") and count == 2 and names:
            return self._optional_map(node, names[0], scope)
        if function in _PAIRED and len(names) == 2 and count >= 3:
            return self._loop(node, function, names[:2], scope)
        if function in _LOOPS and count in (2, 3) and names:
            return self._loop(node, function, names[:1], scope)
        return None

    def _loop(self, node: CallExpr, function: str, names: list[str], scope: Bindings) -> Part:
        assert node.target is not None
        target = self.visit(node.target, scope)
        element = target.shape.element or DYN
        keys = _KEY if target.shape.kind == "map" else _INT if target.shape.kind == "list" else DYN
        bound = [keys, element] if len(names) == 2 else [element if target.shape.kind == "list" else keys]
        inner = {**scope, **dict(zip(names, bound, strict=True))}
        parts = [self.visit(arg, inner) for arg in node.args[len(names) :]]
        cost = MACRO_COSTS[function]
        loop = Loop(target.run, tuple(names), cost)
        run, shape = _looping(function, loop, parts, target.shape)
        turns = target.shape.most * (cost.turn + sum(part.cost for part in parts))
        return Part(run, shape, costs.bounded(target.cost + cost.once + turns))

    def _optional_map(self, node: CallExpr, name: str, scope: Bindings) -> Part:
        assert node.target is not None
        target = self.visit(node.target, scope)
        body = self.visit(node.args[1], {**scope, name: DYN})
        run = macros.optional_map(target.run, name, body.run, flat=node.function == "optFlatMap")
        return Part(run, DYN, costs.bounded(2 * target.cost + body.cost + 5))


_VISITS: Mapping[type, Callable[[_Compiler, Any, Bindings], Part]] = {
    Literal: _Compiler._literal,
    Name: _Compiler._name,
    Select: _Compiler._select,
    Index: _Compiler._index,
    CallExpr: _Compiler._call,
    ListOf: _Compiler._list,
    MapOf: _Compiler._map,
    Unary: _Compiler._unary,
    Binary: _Compiler._binary,
    Ternary: _Compiler._ternary,
    Struct: _Compiler._struct,
}
# A node that nothing compiles is an error of ours: at the import, and not in the first rule that has one.
assert _VISITS.keys() == {*get_args(Node)}


def _looping(function: str, loop: Loop, parts: list[Part], target: Shape) -> tuple[Run, Shape]:
    runs = [part.run for part in parts]
    body, condition = runs[-1], runs[0] if len(runs) == 2 else None
    if function in ("all", "exists"):
        return macros.decides(loop, body, until=function == "exists"), _BOOL
    if function == "exists_one":
        return macros.exists_one(loop, body), _BOOL
    if function.startswith("transformMap"):
        entries = function == "transformMapEntry"
        return macros.transforms_map(loop, body, condition, entries=entries), replace(DYN, most=target.most)
    if function == "filter":
        shape = target if target.kind == "list" else Shape("list", element=_KEY)
        return macros.collects(loop, None, body), replace(shape, most=target.most)
    made = parts[-1].shape
    # The compiler of CEL knows more of such lists than is worth knowing here.
    element = replace(DYN, most=made.most) if made.kind in ("list", "map", "object") else made
    return macros.collects(loop, body, condition), Shape("list", element=element, most=target.most)


def is_optional(node: Node) -> bool:
    """Does a chain of selections yield an optional value?"""
    return isinstance(node, (Select, Index)) and (node.optional or is_optional(node.operand))


_LITERAL_KINDS: dict[type, str] = {
    bool: "bool", int: "int", float: "double", str: "string", bytes: "bytes", type(None): "null",
}  # fmt: skip
