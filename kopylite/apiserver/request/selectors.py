"""Label and field selectors: from text to a Selector, with the errors of apimachinery's labels/selector.go. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Any

from kopylite.apiserver.schema.field_errors import aggregate, invalid
from kopylite.apiserver.schema.names import label_key_errors, label_value_errors
from kopylite.errors import BadRequest
from kopylite.objects.selectors import Requirement, Selector

_TOKEN = re.compile(r"\s*(?:(==|!=|=~|[=!<>(),])|([^\s=!<>(),]+))")
_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")


def parse_label_selector(text: str) -> Selector:
    """Raises BadRequest with the server's text."""
    return Selector(_LabelParser(text).parse()) if text else Selector()


def parse_field_selector(text: str) -> Selector:
    """Terms `field=value`, `field==value`, `field!=value`; a backslash escapes comma, equals and itself."""
    requirements = []
    for term in _split_unescaped(text):
        if not term:
            continue
        match = re.match(r"((?:\\.|[^\\=!])*?)(==|!=|=)((?:\\.|[^\\])*)$", term, re.DOTALL)
        if match is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{term}'")
        key, operator, value = match.groups()
        if re.search(r"(?<!\\)(?:\\\\)*=", value):
            raise BadRequest(f"invalid field selector: {value}: unescaped character in value: =")
        if not key and not value:
            continue  # it asks for nothing
        plain = re.sub(r"\\([\\,=])", r"\1", value)
        requirements.append(Requirement(key, "!=" if operator == "!=" else "=", frozenset((plain,))))
    return Selector(requirements)


def check_field_labels(selector: Selector, known: Container[str], *, unsupported: Callable[[str], str]) -> None:
    """Raises BadRequest for a field that this resource cannot select by; `unsupported` makes the text."""
    for requirement in selector.requirements:
        if requirement.key not in known:
            raise BadRequest(unsupported(requirement.key))


def _split_unescaped(text: str) -> list[str]:
    return re.findall(r"(?:\\.|[^\\,])+", text, re.DOTALL) if text else []


class _LabelParser:
    """Kubernetes' grammar: `key`, `!key`, `key OP value`, `key in (a, b)`, joined by commas."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []
        position = 0
        while match := _TOKEN.match(text, position):
            symbol, word = match.groups()
            self._tokens.append((symbol or word, symbol is not None))
            position = match.end()
        self._next = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            text, symbol = self._peek()
            if not text:
                return requirements
            if symbol and text != "!":
                raise BadRequest(f"found '{text}', expected: !, identifier, or 'end of string'")
            requirements.append(self._requirement())
            text, _ = self._take()
            if not text:
                return requirements
            if text != ",":
                raise BadRequest(f"found '{text}', expected: ',' or 'end of string'")
            after, symbol = self._peek()
            if not after or (symbol and after != "!"):
                raise BadRequest(f"found '{after}', expected: identifier after ','")

    def _peek(self) -> tuple[str, bool]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", True)

    def _take(self) -> tuple[str, bool]:
        token = self._peek()
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        text, symbol = self._take()
        absent = symbol and text == "!"
        if absent:
            text, symbol = self._take()
        if symbol:
            raise _broken(f"found '{text}', expected: identifier")
        if errors := label_key_errors(text):
            raise _broken(str(invalid("<nil>", text, "; ".join(errors))))
        following, _ = self._peek()
        if absent:
            return Requirement(text, "!")
        if following in ("", ","):
            return Requirement(text, "exists")
        return self._comparison(text)

    def _comparison(self, key: str) -> Requirement:
        operator, symbol = self._take()
        if (symbol and operator not in ("=", "==", "!=", "<", ">")) or (not symbol and operator not in ("in", "notin")):
            raise _broken(f"found '{operator}', expected: {', '.join(_OPERATORS)}")
        values = self._set() if operator in ("in", "notin") else frozenset((self._value(),))
        problems = [
            str(invalid(f"values[{i}][{key}]", value, "; ".join(errors)))
            for i, value in enumerate(sorted(values))
            if (errors := label_value_errors(value))
        ]
        if problems:
            raise _broken(aggregate(problems))
        if operator in ("<", ">") and not re.fullmatch(r"[+-]?\d+", next(iter(values))):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _broken(str(invalid("values[0]", next(iter(values)), detail)))
        return Requirement(key, "=" if operator == "==" else operator, values)

    def _value(self) -> str:
        text, symbol = self._peek()
        if text in ("", ","):
            return ""
        self._next += 1
        if symbol:
            raise _broken(f"found '{text}', expected: identifier")
        return text

    def _set(self) -> frozenset[str]:
        text, _ = self._take()
        if text != "(":
            raise _broken(f"found '{text}' expected: '('")
        values: set[str] = set()
        while True:
            text, symbol = self._take()
            if not symbol:
                values.add(text)
                text, _ = self._take()
            else:
                values.add("")
            if text == ")":
                return frozenset(values)
            if text != ",":
                raise _broken(f"found '{text}', expected: ',' or ')'")


def _broken(text: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {text}")


def selector_text(selector: Any) -> str:
    """A label selector in its string form; a map of labels and a LabelSelector both do."""
    if not isinstance(selector, dict):
        return str(selector or "")
    labels = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for expression in selector.get("matchExpressions", ()):
        key, operator = expression["key"], expression["operator"]
        values = ",".join(sorted(expression.get("values") or ()))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        terms.append((key, forms.get(operator, f"!{key}")))
    # By key, and as they come where a key has several.
    return ",".join(text for _, text in sorted(terms, key=lambda term: str(term[0])))
