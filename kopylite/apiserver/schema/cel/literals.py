"""Literals of CEL: what stands for itself in an expression. Pure."""

from __future__ import annotations

import re
from typing import Any

from kopylite.apiserver.schema.cel.library import FunctionFailed
from kopylite.apiserver.schema.cel.values import Uint

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_KEPT = frozenset("\\?\"'`")


def literal_value(text: str) -> Any:
    """The value of a literal as it is written.

    Raises:
        CallFailed: it has none, such as a number that is too large; the text is that of CEL's parser.
    """
    if text in _WORDS:
        return _WORDS[text]
    marks = text[: len(text) - len(text.lstrip("rRbB"))].lower()
    quoted = text[len(marks) :]
    if quoted[:1] in ("'", '"') and quoted[:1]:
        return _text(quoted, raw="r" in marks, binary="b" in marks)
    return _number(text)


_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


def _number(text: str) -> Any:
    unsigned = text[-1:] in ("u", "U")
    digits = text[:-1] if unsigned else text
    if not digits.lower().startswith("0x") and any(c in digits for c in ".eE"):
        return float(digits)
    value = int(digits, 16 if digits.lower().startswith("0x") else 10)
    if value >= (2**64 if unsigned else 2**63):
        raise FunctionFailed(f"invalid {'u' if unsigned else ''}int literal")
    return Uint(value) if unsigned else value


def _text(quoted: str, *, raw: bool, binary: bool) -> str | bytes:
    width = 3 if quoted[:3] in ('"""', "'''") else 1
    inner = quoted[width:-width]
    if not raw:
        inner = _ESCAPE.sub(lambda match: _escaped(match, binary), inner)
    return inner.encode("utf-8", "surrogateescape") if binary else inner


def _escaped(match: re.Match[str], binary: bool) -> str:
    short = match[1] or match[2]
    if short is not None or match[5] is not None:
        code = int(short, 16) if short is not None else int(match[5], 8)
        # In bytes an escape is one octet, and no character.
        return bytes([code]).decode("utf-8", "surrogateescape") if binary and code > 0x7F else chr(code)
    if match[3] or match[4]:
        code = int(match[3] or match[4], 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise FunctionFailed("invalid unicode code point")
        return chr(code)
    named = match[6]
    if named not in _NAMED and named not in _KEPT:
        raise FunctionFailed(f"unable to unescape string: \\{named}")
    return _NAMED.get(named, named)
