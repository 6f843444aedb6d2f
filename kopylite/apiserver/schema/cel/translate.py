"""Kubernetes CEL in the evaluator's words: names are checked, macros unfolded, library calls made plain calls. Pure.

The evaluator (the `cel` package) knows the language but not the additions that Kubernetes enables: optional
selection, macros with two variables, escaped field names, and the function libraries. All of them become
ordinary calls of functions that `functions.LIBRARY` holds, so that the evaluator itself is used unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kopylite.apiserver.schema.cel.addresses import FORMAT_NAMES
from kopylite.apiserver.schema.cel.functions import LIBRARY, NAMESPACED, NATIVE_GLOBAL, NATIVE_METHODS
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
    Call,
    Index,
    ListOf,
    Literal,
    MapOf,
    Name,
    Node,
    Select,
    SyntaxProblem,
    Ternary,
    Unary,
)
from kopylite.apiserver.schema.regex import compile_go

_BOOL, _INT, _STRING, _LIST = Shape("bool"), Shape("int"), Shape("string"), Shape("list", element=DYN)
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"})
_TYPE_NAMES = frozenset({"int", "uint", "double", "string", "bool", "bytes", "list", "map", "null_type", "type"})
_UNFOLDED = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
_PAIRED = frozenset({"all", "exists", "exists_one", "existsOne", "transformList", "transformMap", "transformMapEntry"})


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
Scope = Mapping[str, Shape]
_CALL_COST = "100"
_COPIES = 50


@dataclass(slots=True)
class Translated:
    """An expression for the evaluator.

    Attributes:
        text: the expression in the evaluator's words.
        shape: the static type of its value, "dyn" where unknown.
        functions: the names of the library functions that it calls.
        names: the variables that it uses, those of macros excepted.
        escaped: the escaped names that it uses, by the real ones.
        problems: names that do not exist; the text is worthless if there are any.
    """

    text: str = ""
    shape: Shape = DYN
    functions: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    escaped: dict[str, str] = field(default_factory=dict)
    problems: list[SyntaxProblem] = field(default_factory=list)


def translate(node: Node, variables: Scope) -> Translated:
    """Translate a tree that sees `variables`."""
    translator = _Translator(variables)
    text, shape = translator.visit(node, variables)
    result = translator.result
    result.text, result.shape = text, shape
    return result


class _Translator:
    def __init__(self, variables: Scope) -> None:
        self.result = Translated()
        self._variables = variables
        self._bound = 0

    def visit(self, node: Node, scope: Scope) -> tuple[str, Shape]:
        if isinstance(node, Literal):
            return node.text, _literal_shape(node.text)
        if isinstance(node, Name):
            return self._name(node, scope)
        if isinstance(node, Select):
            return self._select(node, scope)
        if isinstance(node, Index):
            return self._index(node, scope)
        if isinstance(node, Call):
            return self._call(node, scope)
        if isinstance(node, Binary):
            return self._binary(node, scope)
        if isinstance(node, Unary):
            text, shape = self.visit(node.operand, scope)
            self._check(unary_problem(node.operator, shape), node.at)
            return f"{node.operator}({text})", _BOOL if node.operator == "!" else shape
        if isinstance(node, Ternary):
            condition, yes, no = (self.visit(part, scope) for part in (node.condition, node.yes, node.no))
            self._check(bool_problem(condition[1]), node.condition.at)
            self._check(ternary_problem(yes[1], no[1]), node.at)
            shape = yes[1] if yes[1].kind == no[1].kind else DYN
            return f"({condition[0]} ? {yes[0]} : {no[0]})", shape
        return self._literal_container(node, scope)

    def _text(self, node: Node, scope: Scope) -> str:
        return self.visit(node, scope)[0]

    def _function(self, name: str, *args: str) -> str:
        self.result.functions.add(name)
        return f"{name}({', '.join(args)})"

    def _check(self, message: str, at: int) -> None:
        if message:
            self.result.problems.append(SyntaxProblem(message, at))

    def _problem(self, message: str, at: int) -> tuple[str, Shape]:
        self.result.problems.append(SyntaxProblem(message, at))
        return "null", DYN

    def _name(self, node: Name, scope: Scope) -> tuple[str, Shape]:
        if node.name in scope:
            if scope is self._variables or node.name in self._variables:
                self.result.names.add(node.name)
            return node.name, scope[node.name]
        if node.name in _TYPE_NAMES:
            return node.name, DYN
        return self._problem(f"undeclared reference to '{node.name}' (in container '')", node.at)

    def _binary(self, node: Binary, scope: Scope) -> tuple[str, Shape]:
        left, right = self.visit(node.left, scope), self.visit(node.right, scope)
        if node.operator in ("||", "&&"):
            self._check(bool_problem(left[1]), node.left.at)
            self._check(bool_problem(right[1]), node.right.at)
            # Of two operands that fail, the evaluator reports the right one, Kubernetes the left one.
            return f"({right[0]} {node.operator} {left[0]})", _BOOL
        self._check(operator_problem(node.operator, left[1], right[1]), node.at)
        if left[1].list_type != "atomic" and node.operator in ("==", "!=", "+"):
            keys = json.dumps(list(left[1].keys))
            if node.operator == "+":
                return self._function("k_unordered_add", left[0], right[0], keys), left[1]
            equal = self._function("k_unordered_equal", left[0], right[0], keys)
            return (equal if node.operator == "==" else f"(!{equal})"), _BOOL
        shape = _BOOL if node.operator in _COMPARISONS else left[1]
        return f"({left[0]} {node.operator} {right[0]})", shape

    def _literal_container(self, node: ListOf | MapOf, scope: Scope) -> tuple[str, Shape]:
        if isinstance(node, ListOf):
            texts = [self._text(item, scope) for item in node.items]
            if not node.optional:
                return f"[{', '.join(texts)}]", _LIST
            flags = [str(i in node.optional).lower() for i in range(len(texts))]
            return self._function("k_list", f"[{', '.join(texts)}]", f"[{', '.join(flags)}]"), _LIST
        pairs = [(self._text(key, scope), self._text(value, scope)) for key, value in node.entries]
        if not node.optional:
            return f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}", DYN
        flags = [str(i in node.optional).lower() for i in range(len(pairs))]
        entries = ", ".join(f"[{k}, {v}]" for k, v in pairs)
        return self._function("k_map", f"[{entries}]", f"[{', '.join(flags)}]"), DYN

    def _field(self, node: Select, scope: Scope) -> tuple[str, str, Shape]:
        """The operand's text, the real field name and the field's shape."""
        text, shape = self.visit(node.operand, scope)
        if shape.kind == "object":
            found = shape.fields.get(node.field)
            if found is None:
                self._problem(f"undefined field '{node.field}'", node.at)
                return text, node.field, DYN
            if found[0] != node.field:
                self.result.escaped[found[0]] = node.field
            return text, found[0], found[1]
        if shape.kind == "map":
            return text, node.field, shape.element or DYN
        if shape.kind not in ("dyn", "optional"):
            self._problem(f"type '{shape.kind}' does not support field selection", node.at)
        return text, node.field, DYN

    def _select(self, node: Select, scope: Scope) -> tuple[str, Shape]:
        text, name, shape = self._field(node, scope)
        if node.optional or is_optional(node.operand):
            return self._function("k_optional_get", text, json.dumps(name)), DYN
        return f"{text}[{json.dumps(name, ensure_ascii=False)}]", shape

    def _index(self, node: Index, scope: Scope) -> tuple[str, Shape]:
        text, shape = self.visit(node.operand, scope)
        index = self._text(node.index, scope)
        if node.optional or is_optional(node.operand):
            return self._function("k_optional_get", text, index), DYN
        return f"{text}[{index}]", (shape.element or DYN) if shape.kind in ("list", "map") else DYN

    def _call(self, node: Call, scope: Scope) -> tuple[str, Shape]:
        if node.target is None:
            return self._global_call(node, scope)
        if isinstance(node.target, Name) and node.target.name not in scope:
            return self._namespaced_call(node, node.target.name, scope)
        macro = self._macro(node, scope)
        if macro is not None:
            return macro
        operands = [self.visit(part, scope) for part in (node.target, *node.args)]
        self._check_call(node, [shape for _, shape in operands], method=True)
        target, *args = [text for text, _ in operands]
        if node.function in NATIVE_METHODS:
            return f"{target}.{node.function}({', '.join(args)})", NATIVE_METHODS[node.function]
        name = f"k_{node.function}"
        if name in LIBRARY:
            return self._function(name, target, *args), LIBRARY[name].shape
        return self._undeclared(node, node.function)

    def _undeclared(self, node: Call, name: str) -> tuple[str, Shape]:
        return self._problem(f"undeclared reference to '{name}' (in container '')", node.at)

    def _check_call(self, node: Call, shapes: list[Shape], *, method: bool) -> None:
        self._check(call_problem(node.function, shapes, method=method), node.at)
        literal = node.args[-1] if node.args else None
        check = _LITERAL_CHECKS.get(node.function)
        if check is not None and isinstance(literal, Literal) and literal.text[:1] in ("'", '"'):
            text = literal.text.strip("'\"")
            if "\\" not in text and not check(text):
                self._check(f"invalid {node.function} argument", literal.at)

    def _global_call(self, node: Call, scope: Scope) -> tuple[str, Shape]:
        if node.function == "has" and len(node.args) == 1:
            return self._has(node, scope)
        operands = [self.visit(arg, scope) for arg in node.args]
        self._check_call(node, [shape for _, shape in operands], method=False)
        args = [text for text, _ in operands]
        if node.function in NATIVE_GLOBAL:
            return f"{node.function}({', '.join(args)})", NATIVE_GLOBAL[node.function]
        name = f"k_{node.function}"
        if name in LIBRARY and LIBRARY[name].is_global:
            return self._function(name, *args), LIBRARY[name].shape
        return self._undeclared(node, node.function)

    def _namespaced_call(self, node: Call, namespace: str, scope: Scope) -> tuple[str, Shape]:
        args = [self._text(arg, scope) for arg in node.args]
        full = f"{namespace}.{node.function}"
        if namespace == "optional" and node.function in ("of", "none", "ofNonZeroValue"):
            return f"{full}({', '.join(args)})", DYN
        name = f"k_{namespace}_{node.function}"
        if full in NAMESPACED and name in LIBRARY:
            return self._function(name, *args), LIBRARY[name].shape
        if namespace == "format" and node.function in FORMAT_NAMES and not args:
            return self._function("k_format_of", json.dumps(node.function)), DYN
        at = node.target.at if node.target is not None else node.at
        self._problem(f"undeclared reference to '{namespace}' (in container '')", at)
        return self._undeclared(node, node.function)

    def _has(self, node: Call, scope: Scope) -> tuple[str, Shape]:
        selected = node.args[0]
        if not isinstance(selected, Select):
            return self._problem("invalid argument to has() macro", node.at)
        before = len(self.result.problems)
        text, name, _ = self._field(selected, scope)
        self.result.problems[before:] = [
            SyntaxProblem(p.message, node.at) if p.at == selected.at else p for p in self.result.problems[before:]
        ]
        quoted = json.dumps(name, ensure_ascii=False)
        if selected.optional or is_optional(selected.operand):
            return self._function("k_optional_get", text, quoted) + ".hasValue()", _BOOL
        return f"({quoted} in {text})", _BOOL

    def _macro(self, node: Call, scope: Scope) -> tuple[str, Shape] | None:
        names = [arg.name for arg in node.args[:2] if isinstance(arg, Name)]
        count, function = len(node.args), node.function
        if function in ("optMap", "optFlatMap") and count == 2 and names:
            return self._optional_map(node, names[0], scope)
        if function in _PAIRED and len(names) == 2 and count >= 3:
            return self._paired(node, names, scope)
        if function in _UNFOLDED and count in (2, 3) and names:
            return self._simple_macro(node, names[0], scope)
        return None

    def _simple_macro(self, node: Call, name: str, scope: Scope) -> tuple[str, Shape]:
        assert node.target is not None
        target, shape = self.visit(node.target, scope)
        element = (shape.element or DYN) if shape.kind == "list" else DYN
        parts = [self.visit(arg, {**scope, name: element}) for arg in node.args[1:]]
        function = "exists_one" if node.function == "existsOne" else node.function
        result = _BOOL if function in ("all", "exists", "exists_one") else _LIST
        if function == "filter" and shape.kind == "list":
            result = shape
        loop = f"{target}.{function}({name}, {', '.join(text for text, _ in parts)})"
        # A target that is more than a path is counted where it is made, or has few elements.
        size = f"{target}.size()"
        cost = _CALL_COST if "(" in target or "[" in target else size
        if cost == size and result is not _BOOL:  # the evaluator copies what it has at each step
            cost = f"{size} + {size} * {size} / {_COPIES}"
        paid = self._function("k_0spend", cost)
        return f"({paid} ? {loop} : {'false' if result is _BOOL else '[]'})", result

    def _optional_map(self, node: Call, name: str, scope: Scope) -> tuple[str, Shape]:
        assert node.target is not None
        target = self._text(node.target, scope)
        body = self._text(node.args[1], {**scope, name: DYN})
        value = f"[{target}.value()].map({name}, {body})[0]"
        wrapped = value if node.function == "optFlatMap" else f"optional.of({value})"
        return f"({target}.hasValue() ? {wrapped} : optional.none())", DYN

    def _paired(self, node: Call, names: list[str], scope: Scope) -> tuple[str, Shape]:
        """A macro with two variables, as nested ones with one each over [key, value] pairs."""
        assert node.target is not None
        target, shape = self.visit(node.target, scope)
        key, value = names
        inner_scope = {**scope, key: DYN if shape.kind != "list" else _INT, value: shape.element or DYN}
        parts = [self._text(arg, inner_scope) for arg in node.args[2:]]
        self._bound += 1
        pair = f"k_pair{self._bound}"
        pairs = self._function("k_pairs", target)

        def bind(body: str) -> str:
            return f"[{pair}[0]].map({key}, [{pair}[1]].map({value}, {body})[0])[0]"

        if node.function in ("all", "exists", "exists_one", "existsOne"):
            function = "exists_one" if node.function == "existsOne" else node.function
            return f"{pairs}.{function}({pair}, {bind(parts[0])})", _BOOL
        condition = bind(parts[0]) if len(parts) == 2 else "true"
        body = bind(parts[-1])
        if node.function == "transformMap":
            entries = f"{pairs}.filter({pair}, {condition}).map({pair}, [{pair}[0], {body}])"
            return self._function("k_from_pairs", entries), DYN
        listed = f"{pairs}.filter({pair}, {condition}).map({pair}, {body})"
        if node.function == "transformMapEntry":
            return self._function("k_merge", listed), DYN
        return listed, _LIST


def is_optional(node: Node) -> bool:
    """Does a chain of selections yield an optional value?"""
    return isinstance(node, (Select, Index)) and (node.optional or is_optional(node.operand))


def _literal_shape(text: str) -> Shape:
    if text in ("true", "false"):
        return _BOOL
    if text == "null":
        return Shape("null")
    prefix = text.lower().lstrip("r")
    if prefix[:1] in ("'", '"'):
        return _STRING
    if prefix[:1] == "b":
        return Shape("bytes")
    if text.lower().startswith("0x"):
        return _INT
    return Shape("double") if any(c in text for c in ".eE") else Shape("uint" if text[-1] in "uU" else "int")
