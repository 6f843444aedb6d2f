"""Regular expressions in schemas: the API server's engine (RE2) knows less than Python's."""

from __future__ import annotations

import re

# What RE2 lacks, or reads otherwise; each with the name that its manual has for it.
_UNSAFE = [
    (re.compile(r"\(\?<?[=!]"), "look-around"),
    (re.compile(r"\\[1-9]|\(\?P=|\\g<"), "a back-reference"),
    (re.compile(r"\(\?>"), "an atomic group"),
    (re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\+"), "a possessive repetition"),
    (re.compile(r"\(\?\("), "a conditional"),
    (re.compile(r"\(\?#"), "a comment"),
    (re.compile(r"\\[ZGKRX]"), "an escape that RE2 does not know"),
]
# RE2 refuses longer repetitions.
_MAX_REPEAT = 1000
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_ESCAPED = re.compile(r"\\[\\\[\](){}*+?.^$|/-]")


def re2_problem(pattern: str) -> str | None:
    """What makes a pattern unusable in a CRD, or None. Errs on the side of letting a pattern pass: the server
    checks it once more when the CRD is installed."""
    # Escaped characters and character classes cannot hold operators.
    bare = _without_classes(_ESCAPED.sub("e", pattern))
    for unsafe, name in _UNSAFE:
        if unsafe.search(bare):
            return name
    for low, high in _REPEAT.findall(bare):
        if max(len(low.lstrip("0")), len(high.lstrip("0"))) > 4 or max(int(low), int(high or 0)) > _MAX_REPEAT:
            return f"a repetition of more than {_MAX_REPEAT}"
    return None


def _without_classes(text: str) -> str:
    """The text with a letter in the place of each character class. In linear time, also where none is closed."""
    parts, position = [], 0
    while (start := text.find("[", position)) >= 0:
        first = start + 1 + text.startswith("^", start + 1)  # a bracket in the first place is no end
        end = text.find("]", first + text.startswith("]", first))
        if end < 0:
            break
        parts += [text[position:start], "c"]
        position = end + 1
    return "".join([*parts, text[position:]])


_PERL = re.compile(r"(?<!\\)(?:\\\\)*\\([dDwWsSbB])")


def perl_classes(pattern: str) -> str | None:
    r"""The first of `\d`, `\w`, `\s`, `\b` and their opposites in a pattern: they know ASCII only on the API server,
    and all of Unicode in pydantic's engine."""
    found = _PERL.search(pattern)
    return None if found is None else f"\\{found[1]}"
