"""Python source text of values: the one place where a foreign text becomes a part of a program.

Only literals come out: numbers, True, False, None, quoted texts, lists and dicts of them.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from typing import Any

WIDTH = 110


def quoted(text: str) -> str:
    """A string literal on one line: control characters, surrogates and what turns the direction of text around are
    escapes."""
    return repr(str.__str__(text))


def literal(value: Any, indent: int | None = None) -> str:
    """The source of a JSON value.

    Args:
        indent: the column at which it stands; longer values are broken into lines then.

    Raises:
        ValueError: it is no JSON value.
    """
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(float(value) if isinstance(value, float) else int(value))
    if isinstance(value, (list, tuple)):
        return _broken("[", [("", item) for item in value], "]", indent)
    if isinstance(value, Mapping):
        return _broken("{", [(f"{quoted(key)}: ", item) for key, item in value.items()], "}", indent)
    raise ValueError(f"a {type(value).__name__} is no value of JSON")


def _broken(opening: str, parts: list[tuple[str, Any]], closing: str, indent: int | None) -> str:
    line = opening + ", ".join(key + literal(value) for key, value in parts) + closing
    if indent is None or not parts or len(line) + indent <= WIDTH:
        return line
    inner = " " * (indent + 4)
    rows = "".join(f"{inner}{key}{literal(value, indent + 4)},\n" for key, value in parts)
    return f"{opening}\n{rows}{' ' * indent}{closing}"


def docstring(text: str) -> list[str]:
    """The lines of a docstring, indented by four."""
    escaped = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [line for part in escaped.splitlines() for line in (textwrap.wrap(part, WIDTH) or [""])] or [""]
    safe = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in lines]
    if len(safe) == 1 and not safe[0].endswith('"'):
        return [f'    """{safe[0]}"""']
    return [f'    """{safe[0]}', *(f"    {line}".rstrip() for line in safe[1:]), '    """']


def long_text(text: str) -> str:
    """A string literal, cut into lines that add up to it where it is long."""
    parts = [part for line in text.splitlines(keepends=True) for part in _chunks(line)]
    if len(parts) <= 1:
        return quoted(text)
    return "(\n" + "".join(f"            {quoted(part)}\n" for part in parts) + "        )"


def _chunks(line: str) -> list[str]:
    """A line cut after blanks, so that the pieces add up to it again."""
    pieces: list[str] = []
    size = WIDTH
    for word in re.findall(r"\S*\s*", line):
        if not word:
            continue
        if size + len(word) > WIDTH - 20:
            pieces.append(word)
            size = len(word)
        else:
            pieces[-1] += word
            size += len(word)
    return pieces
