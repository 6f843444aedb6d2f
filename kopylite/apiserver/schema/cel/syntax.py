"""The syntax tree of CEL expressions, and the parser that builds it. Pure.

Macros are calls here: the compiler unfolds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, bytes, bool or null, as written."""

    text: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `operand.?field`. `at` is the position of the dot."""

    operand: Node
    field: str
    optional: bool = False
    at: int = 0


@dataclass(frozen=True, slots=True)
class Index:
    """`operand[index]`, or `operand[?index]`."""

    operand: Node
    index: Node
    optional: bool = False
    at: int = 0


@dataclass(frozen=True, slots=True)
class CallExpr:
    """`function(args)`, or `target.function(args)`. `at` is the position of the opening bracket."""

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int = 0


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    at: int = 0


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()
    at: int = 0


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class Ternary:
    condition: Node
    yes: Node
    no: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class Struct:
    """`Type.name{field: value}`."""

    type: str
    fields: tuple[tuple[str, Node], ...]
    optional: frozenset[int] = frozenset()
    at: int = 0


Node = Literal | Name | Select | Index | CallExpr | ListOf | MapOf | Unary | Binary | Ternary | Struct


class SyntaxProblem(Exception):
    """The expression does not parse, or names something that does not exist.

    Args:
        message: what is wrong.
        at: offset in the expression.
    """

    def __init__(self, message: str, at: int) -> None:
        self.message = message
        self.at = at
        super().__init__(message)

    def pretty(self, source: str) -> str:
        """The problem as CEL's compiler shows it, with the line and a mark under the place."""
        line_start = source.rfind("\n", 0, self.at) + 1
        line = source[line_start:].partition("\n")[0]
        column = self.at - line_start
        number = source.count("\n", 0, self.at) + 1
        mark = "." * column + "^"
        return f"ERROR: <input>:{number}:{column + 1}: {self.message}\n | {line}\n | {mark}"


_STRING = r'[rRbB]{0,2}(?:"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
_RAW = r'(?:[rR][bB]?|[bB][rR])(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n]*"|\'[^\'\n]*\')'
_TOKENS = re.compile(
    rf"""(?P<space>\s+|//[^\n]*)
    |(?P<literal>{_RAW}|{_STRING}|0x[0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?
        |\d+[eE][+-]?\d+|\d+[uU]?)
    |(?P<escaped>`[^`\n]+`)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<operator>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{{}}])""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_LEVELS = (("||",), ("&&",), ("<", "<=", ">=", ">", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
_EXPRESSION_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_RESERVED_TEXT = (
    "as break const continue else false for function if import in let loop package namespace null return true var "
    "void while"
)
_RESERVED = frozenset(_RESERVED_TEXT.split())


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(source: str) -> Node:
    """The tree of an expression.

    Raises:
        SyntaxProblem: the text is no expression.
    """
    return _Parser(source).whole()


def _tokens(source: str) -> Iterator[_Token]:
    at = 0
    while at < len(source):
        match = _TOKENS.match(source, at)
        if match is None:
            raise SyntaxProblem(f"Syntax error: token recognition error at: '{source[at]}'", at)
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0], at)
        at = match.end()
    yield _Token("end", "<EOF>", len(source))


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = list(_tokens(source))
        self._index = 0

    @property
    def _now(self) -> _Token:
        return self._tokens[self._index]

    def _next(self) -> _Token:
        token = self._now
        self._index += 1
        return token

    def _take(self, *texts: str) -> _Token | None:
        if self._now.kind in ("operator", "name") and self._now.text in texts:
            return self._next()
        return None

    def _expect(self, text: str) -> _Token:
        token = self._take(text)
        if token is None:
            raise self._mismatch(f"expecting '{text}'")
        return token

    def _mismatch(self, expectation: str) -> SyntaxProblem:
        return SyntaxProblem(f"Syntax error: mismatched input '{self._now.text}' {expectation}", self._now.at)

    def whole(self) -> Node:
        node = self._expression()
        if self._now.kind != "end":
            text = f"Syntax error: extraneous input '{self._now.text}' expecting <EOF>"
            raise SyntaxProblem(text, self._now.at)
        return node

    def _expression(self) -> Node:
        condition = self._binary(0)
        question = self._take("?")
        if question is None:
            return condition
        yes = self._binary(0)
        self._expect(":")
        return Ternary(condition, yes, self._expression(), question.at)

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self._take(*_LEVELS[level])) is not None:
            left = Binary(operator.text, left, self._binary(level + 1), operator.at)
        return left

    def _unary(self) -> Node:
        operator = self._take("!", "-")
        if operator is not None:
            return Unary(operator.text, self._unary(), operator.at)
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if (dot := self._take(".")) is not None:
                node = self._select(node, dot.at)
            elif (bracket := self._take("[")) is not None:
                optional = self._take("?") is not None
                index = self._expression()
                self._expect("]")
                node = Index(node, index, optional, bracket.at)
            elif (name := _type_name(node)) and (brace := self._take("{")) is not None:
                node = self._struct(name, brace.at)
            else:
                return node

    def _select(self, operand: Node, at: int) -> Node:
        optional = self._take("?") is not None
        token = self._next()
        if token.kind == "escaped":
            return Select(operand, token.text[1:-1], optional, at)
        if token.kind != "name":
            self._index -= 1
            raise self._mismatch("expecting IDENTIFIER")
        if not optional and (bracket := self._take("(")) is not None:
            return CallExpr(token.text, operand, self._arguments(")"), bracket.at)
        return Select(operand, token.text, optional, at)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while self._take(closing) is None:
            if found:
                self._expect(",")
                if closing != ")" and self._take(closing) is not None:
                    break
            found.append(self._expression())
        return tuple(found)

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "literal" or token.text in ("true", "false", "null"):
            return Literal(token.text, token.at)
        if token.kind == "name" and token.text not in _RESERVED:
            if (bracket := self._take("(")) is not None:
                return CallExpr(token.text, None, self._arguments(")"), bracket.at)
            return Name(token.text, token.at)
        if token.text == "(" and token.kind == "operator":
            node = self._expression()
            self._expect(")")
            return node
        if token.text == "[" and token.kind == "operator":
            return self._list(token.at)
        if token.text == "{" and token.kind == "operator":
            return self._map(token.at)
        if token.text == "." and self._now.kind == "name":
            return self._primary()
        self._index -= 1
        raise self._mismatch(f"expecting {_EXPRESSION_STARTS}")

    def _list(self, at: int) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while self._take("]") is None:
            if items:
                self._expect(",")
                if self._take("]") is not None:
                    break
            if self._take("?") is not None:
                optional.add(len(items))
            items.append(self._expression())
        return ListOf(tuple(items), frozenset(optional), at)

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: set[int] = set()
        while self._take("}") is None:
            if entries:
                self._expect(",")
                if self._take("}") is not None:
                    break
            if self._take("?") is not None:
                optional.add(len(entries))
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
        return MapOf(tuple(entries), frozenset(optional), at)

    def _struct(self, name: str, at: int) -> Node:
        fields: list[tuple[str, Node]] = []
        optional: set[int] = set()
        while self._take("}") is None:
            if fields:
                self._expect(",")
                if self._take("}") is not None:
                    break
            if self._take("?") is not None:
                optional.add(len(fields))
            token = self._next()
            if token.kind not in ("name", "escaped"):
                self._index -= 1
                raise self._mismatch("expecting IDENTIFIER")
            self._expect(":")
            fields.append((token.text.strip("`"), self._expression()))
        return Struct(name, tuple(fields), frozenset(optional), at)


def _type_name(node: Node) -> str:
    """The dotted name that a chain of plain selections spells; "" if it is something else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.optional and (operand := _type_name(node.operand)):
        return f"{operand}.{node.field}"
    return ""
