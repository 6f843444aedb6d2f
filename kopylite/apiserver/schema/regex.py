"""Go's regular expressions: RE2 itself, with Go's words for what it refuses. Pure; linear in the text.

CRDs and CEL rules bring patterns of strangers. Go's `regexp` is RE2, so RE2 (`google-re2`, extra `dev`) answers here:
the syntax is the same, and no pattern can take more than linear time. The few places where Go's compiler is
stricter than RE2's, or knows another name, are handled in one pass over the pattern.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from kopylite.errors import UsageError

# RE2's complaints in Go's words; what follows the colon is the same part of the pattern in both.
_GO_WORDS = {
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "missing ]": "missing closing ]",
}
# maxHeight of Go's regexp/syntax.
_MAX_DEPTH = 1000
# From this many digits on a repeat count is no number to RE2, and takes the braces for text.
_MAX_COUNT_DIGITS = 4
# Since Go 1.25 \p{...} takes the long names of categories too.
_CATEGORIES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo", "Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me",
    "Number": "N", "Decimal_Number": "Nd", "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P",
    "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So",
    "Separator": "Z", "Space_Separator": "Zs", "Other": "C", "Control": "Cc", "Format": "Cf", "Private_Use": "Co",
}  # fmt: skip
# One step through a pattern: an escape, the start or end of a group, a bracket, a repeat, or a character.
_STEP = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\[pP]\{(?P<name>[^}\\]{0,60})\}|\\x\{[^}\\]{0,20}\}|\\(?P<escaped>.)"
    r"|(?P<open>\((?:\?P?<|\?[-A-Za-z]*:)?)|\[:\^?\w+:\]|\{(?P<counts>\d+(?:,\d*)?)\}|(?P<plain>.)",
    re.DOTALL,
)
_NAMED_GROUP = re.compile(r"\(\?P?<\w+>", re.ASCII)


class GoRegex:
    """A compiled pattern."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matches(self, text: str) -> bool:
        """Go's `MatchString`: is there a match anywhere in the text?"""
        return self._compiled.search(_utf8(text)) is not None

    def finds(self, text: str) -> Iterator[str]:
        """The matches from left to right, without overlaps."""
        return (match.group().decode("utf-8", "replace") for match in self._compiled.finditer(_utf8(text)))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# An entry may come to hold RE2's limit, 8 MiB, so the cache is a small one.
@functools.lru_cache(maxsize=256)
def compile_go(pattern: str) -> GoRegex:
    """The compiled form of a Go pattern.

    Raises:
        ValueError: Go's compiler refuses the pattern; the text begins as Go's does.
        UsageError: the package `google-re2` is not installed.
    """
    engine = _engine()
    try:
        text = "".join(_steps(pattern))
        options = engine.Options()
        options.log_errors = False
        return GoRegex(engine.compile(_utf8(text), options))
    except engine.error as error:
        raise ValueError(_in_go_words(error)) from None
    except _Refused as refused:
        raise ValueError(f"error parsing regexp: {refused}") from None


class _Refused(ValueError):
    """Go's reason, where RE2 has none."""


@functools.cache
def _engine() -> Any:
    try:
        import re2
    except ImportError:
        raise UsageError(
            "regular expressions in CRDs need the package google-re2: pip install 'kopylite[dev]'"
        ) from None
    return re2


def _in_go_words(error: Exception) -> str:
    raw = error.args[0] if error.args else b""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    if text.startswith("pattern too large"):
        return "error parsing regexp: expression too large"
    if text.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    kind, colon, shown = text.partition(": ")
    return f"error parsing regexp: {_GO_WORDS.get(kind, kind)}{colon and f': `{shown}`'}"


def _steps(pattern: str) -> Iterator[str]:
    """The pattern for RE2, piece by piece. Raises _Refused for what only Go refuses."""
    groups: list[bool] = []  # of each open group: does it capture?
    captures = 0
    in_class = False
    for step in _STEP.finditer(pattern):
        plain, opened = step["plain"], step["open"]
        if step["escaped"] == "C":  # any byte; Go has no such thing
            raise _Refused(r"invalid escape sequence: `\C`")
        if in_class:
            in_class = plain != "]"
        elif plain == "[":
            in_class = True
        elif opened:
            groups.append(not opened.endswith(":"))
            captures += groups[-1]
            if opened.endswith("<") and not _NAMED_GROUP.match(pattern, step.start()):
                head, end, _ = pattern[step.start() :].partition(">")
                raise _Refused(f"invalid named capture: `{head}{end}`")
        elif plain == ")" and groups:
            captures -= groups.pop()
        elif step["counts"] and any(len(n.lstrip("0")) > _MAX_COUNT_DIGITS for n in step["counts"].split(",")):
            raise _Refused(f"invalid repeat count: `{step[0]}`")
        if captures > _MAX_DEPTH:
            raise _Refused(f"expression nests too deeply: `{pattern}`")
        yield _class_name(step) if step["name"] else step[0]


def _class_name(step: re.Match[str]) -> str:
    negation = "^" if step["name"].startswith("^") else ""
    name = step["name"].removeprefix("^")
    return f"{step[0][:2]}{{{negation}{_CATEGORIES.get(name, name)}}}"
