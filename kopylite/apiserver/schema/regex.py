"""Go's regular expressions (RE2) on Python's `re`. Pure.

RE2 has no look-around and no back-references; `\\d`, `\\w`, `\\s` and `\\b` are ASCII; `$` is the very end of
the text unless the flag `m` is set; classes like `[[:alpha:]]` and `\\pL` exist. What Python has beyond RE2 is
refused with Go's words, so that a CRD that a real server refuses is refused here.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ", "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_PERL_SYNTAX = "error parsing regexp: invalid or unsupported Perl syntax: `{}`"
_BAD_ESCAPE = "error parsing regexp: invalid escape sequence: `{}`"


@functools.lru_cache(maxsize=4096)
def compile_go(pattern: str) -> re.Pattern[str]:
    """The Python form of a Go pattern; use `search` for Go's `MatchString`.

    Raises:
        ValueError: Go's compiler refuses the pattern; the text begins as Go's does.
    """
    try:
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp: {_go_words(error, pattern)}") from error


def _go_words(error: re.error, pattern: str) -> str:
    """Python's complaint in Go's words, with the part of the pattern that Go shows."""
    at = error.pos or 0
    if "unterminated subpattern" in error.msg:
        return f"missing closing ): `{pattern}`"
    if error.msg == "unbalanced parenthesis":
        return f"unexpected ): `{pattern}`"
    if error.msg == "multiple repeat":
        return f"invalid nested repetition operator: `{pattern[max(at - 1, 0) : at + 1]}`"
    if error.msg == "nothing to repeat":
        return f"missing argument to repetition operator: `{pattern[at : at + 1]}`"
    if error.msg.startswith("min repeat"):
        return f"invalid repeat count: `{pattern[at - 1 :].partition('}')[0]}}}`"
    if error.msg.startswith("bad character range"):
        return f"invalid character class range: `{error.msg.removeprefix('bad character range ')}`"
    return str(error)


class _Translation:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.multiline = False

    def text(self) -> str:
        parts = []
        while self.at < len(self.pattern):
            parts.append(self._next())
        return "".join(parts)

    def _next(self) -> str:
        char = self.pattern[self.at]
        if char == "\\":
            return self._escape(in_class=False)
        if char == "[":
            return self._class()
        if char == "(" and self.pattern.startswith("(?", self.at):
            return self._group()
        self.at += 1
        if char == "$" and not self.multiline:
            return r"\Z"
        return char

    def _group(self) -> str:
        rest = self.pattern[self.at :]
        for start in ("(?=", "(?!", "(?<=", "(?<!", "(?#", "(?P=", "(?>", "(?("):
            if rest.startswith(start):
                raise ValueError(_PERL_SYNTAX.format(start))
        if rest.startswith("(?<"):
            self.at += 3
            return "(?P<"
        flags = re.match(r"\(\?([imsU-]+)([:)])", rest)
        if flags is None:
            self.at += 2
            return "(?"
        self.at += flags.end()
        on = flags[1].partition("-")[0]
        self.multiline = self.multiline or "m" in on
        python_flags = flags[1].replace("U", "").strip("-")
        if flags[2] == ":":
            return f"(?{python_flags}:" if python_flags else "(?:"
        # Python takes flags of the whole pattern only at its start, as a group that reaches to the end.
        return f"(?{python_flags}:{self._to_group_end()})" if python_flags else ""

    def _to_group_end(self) -> str:
        parts = []
        depth = 0
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == ")" and depth == 0:
                break
            depth += {"(": 1, ")": -1}.get(char, 0)
            parts.append(self._next())
        return "".join(parts)

    def _escape(self, in_class: bool) -> str:
        pattern, start = self.pattern, self.at
        if start + 1 >= len(pattern):
            raise ValueError("error parsing regexp: trailing backslash at end of expression: ``")
        char = pattern[start + 1]
        self.at += 2
        if char == "z":
            return r"\Z"
        if char == "Q":
            end = pattern.find(r"\E", self.at)
            quoted = pattern[self.at :] if end < 0 else pattern[self.at : end]
            self.at = len(pattern) if end < 0 else end + 2
            return re.escape(quoted)
        if char in "pP":
            return self._unicode_class(negated=char == "P", in_class=in_class)
        if char == "x" and pattern.startswith("{", self.at):
            end = pattern.find("}", self.at)
            code = int(pattern[self.at + 1 : end], 16)
            self.at = end + 1
            return re.escape(chr(code))
        if char in "123456789" or (char.isalpha() and char not in "AbBdDsSwWafnrtvx"):
            raise ValueError(_BAD_ESCAPE.format(pattern[start : self.at]))
        return "\\" + char

    def _unicode_class(self, negated: bool, in_class: bool) -> str:
        if self.pattern.startswith("{", self.at):
            end = self.pattern.find("}", self.at)
            name = self.pattern[self.at + 1 : end]
            self.at = end + 1
        else:
            name = self.pattern[self.at : self.at + 1]
            self.at += 1
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        ranges = _category_ranges(name, negated)
        return ranges if in_class else f"[{ranges}]"

    def _class(self) -> str:
        pattern = self.pattern
        self.at += 1
        parts = ["["]
        if pattern.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        first = True
        while self.at < len(pattern):
            char = pattern[self.at]
            if char == "]" and not first:
                self.at += 1
                return "".join([*parts, "]"])
            first = False
            posix = re.match(r"\[:(\^?)(\w+):\]", pattern[self.at :])
            if posix is not None and posix[2] in _POSIX and not posix[1]:
                parts.append(_POSIX[posix[2]])
                self.at += posix.end()
            elif char == "\\":
                parts.append(self._escape(in_class=True))
            else:
                # Python warns of set operations to come (`[[`, `--`, `&&`): escape what RE2 takes literally.
                parts.append("\\" + char if char in "[&~|" else char)
                self.at += 1
        raise ValueError(f"error parsing regexp: missing closing ]: `{pattern[pattern.rfind('[') :]}`")


@functools.cache
def _category_ranges(name: str, negated: bool) -> str:
    """The members of a Unicode category (`L`, `Lu`, ...) as the inside of a class.

    Raises:
        ValueError: there is no such category (scripts such as Greek are not supported).
    """
    spans: list[list[int]] = []
    known = False
    for code in range(sys.maxunicode + 1):
        member = unicodedata.category(chr(code)).startswith(name)
        known = known or member
        if member is not negated:
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    if not known or not name:
        raise ValueError(f"error parsing regexp: invalid character class range: `\\p{{{name}}}`")
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in spans)
