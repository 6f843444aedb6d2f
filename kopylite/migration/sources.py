"""Sources: files of Python, read and never run, and changed by edits of their text: all else stays as it was."""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kopylite.boundary import printable
from kopylite.errors import UsageError

# More than any operator has in one file; the biggest that were seen have some 100 KB.
LARGEST = 4 * 1024 * 1024
_PYTHON_2 = re.compile(rb"^\s*(print\s+[\"'\w]|except\s+\w+\s*,|raise\s+\w+\s*,|exec\s+[\"'])", re.MULTILINE)


class TextEdit(NamedTuple):
    """Bytes from `begin` to `end` become `text`."""

    begin: int
    end: int
    text: str


@dataclass(slots=True)
class ModuleSource:
    """A module.

    Attributes:
        name: as it is shown in reports.
        data: its text in UTF-8, with "\\n" at the ends of lines.
        tree: what it means.
        edits: what is to be changed.
    """

    name: str
    data: bytes
    tree: ast.Module
    edits: list[TextEdit] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _sorted: list[TextEdit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(b"\n", self.data))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends."""
        begin, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or 1
        first, last = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None) or 0
        return self._starts[begin - 1] + first, self._starts[end - 1] + last

    def text(self, node: ast.AST) -> str:
        """What stands there."""
        begin, end = self.span(node)
        return self.data[begin:end].decode()

    def edited(self, node: ast.AST) -> str:
        """What stands there when the edits are made that lie inside of it."""
        begin, end = self.span(node)
        if len(self._sorted) != len(self.edits):
            self._sorted = sorted(self.edits)
        first = bisect.bisect_left(self._sorted, (begin,))
        last = bisect.bisect_left(self._sorted, (end,), first)
        inside = [TextEdit(e.begin - begin, e.end - begin, e.text) for e in self._sorted[first:last] if e.end <= end]
        return apply(self.data[begin:end], inside).decode()

    def replace(self, node: ast.AST, text: str) -> None:
        """Put a text in a node's place."""
        self.edits.append(TextEdit(*self.span(node), text))

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """Where whole lines begin and end, without the last one's end."""
        end = self._starts[last] - 1 if last < len(self._starts) else len(self.data)
        return self._starts[first - 1], end

    def comment_out(self, first: int, last: int, *, instead: str = "") -> None:
        """Make comments of whole lines, each where it stood, behind a statement if the place needs one."""
        begin, end = self.lines(first, last)
        lines = self.data[begin:end].decode().split("\n")
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        made = [
            f"{indent}# kopf: {line[len(indent) :] if line.startswith(indent) else line.lstrip()}" for line in lines
        ]
        if instead:
            made.insert(0, f"{indent}{instead}")
        self.edits.append(TextEdit(begin, end, "\n".join(line.rstrip() for line in made)))

    def stands_alone(self, node: ast.stmt) -> bool:
        """Whether nothing but comments shares a statement's lines."""
        begin, end = self.span(node)
        first, last = self.lines(node.lineno, node.end_lineno or node.lineno)
        before, behind = self.data[first:begin], self.data[end:last].lstrip()
        return not before.strip() and (not behind or behind.startswith(b"#"))

    def result(self) -> str:
        """The module with its edits."""
        return apply(self.data, self.edits).decode()


def apply(data: bytes, edits: Iterable[TextEdit]) -> bytes:
    """Make edits. One that lies inside of another, or overlaps an earlier one, is left out."""
    made, place = [], 0
    for edit in sorted(edits, key=lambda e: (e.begin, e.end > e.begin, -e.end)):
        if edit.begin < place:
            continue
        made += [data[place : edit.begin], edit.text.encode()]
        place = edit.end
    return b"".join([*made, data[place:]])


def read_source(path: Path) -> ModuleSource:
    """Read a file of Python 3.

    Raises:
        UsageError: it cannot be read, or is none; with the line where that can be said.
    """
    try:
        if not path.is_file():
            raise UsageError(f"{path}: there is no such file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return parse_source(data, str(path))


def parse_source(data: bytes, name: str) -> ModuleSource:
    """The same, of what was read. Raises UsageError."""
    if len(data) > LARGEST:
        raise UsageError(f"{name}: is longer than {LARGEST // 1024 // 1024} MiB: is this the right file?")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise UsageError(f"{name}: is no text: {printable(str(error), 200)}. Save it as UTF-8") from None
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _without_coding(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own odd escapes are none of our business
            return ModuleSource(name, text.encode(), ast.parse(text))
    except SyntaxError as error:
        place, hint = f"{name}:{error.lineno or 1}", ""
        if _PYTHON_2.search(data):
            hint = "; it looks like Python 2: make Python 3 of it first (2to3)"
        raise UsageError(f"{place}: is no Python 3: {error.msg}{hint}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise UsageError(f"{name}: is no Python that can be read: {type(error).__name__}, {error}") from None


def _without_coding(text: str) -> str:
    """What is written is UTF-8, whatever the file said of itself."""
    lines = text.split("\n", 2)
    for number, line in enumerate(lines[:2]):
        if re.match(r"^[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+", line):
            lines[number] = re.sub(r"coding[:=][ \t]*[-\w.]+", "coding: utf-8", line)
    return "\n".join(lines)
