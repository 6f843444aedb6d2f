"""YAML as Go reads it for Kubernetes: the same document gives the same object here, in kubectl and on the API server.

The rules are those of sigs.k8s.io/yaml (goyaml v2): `y` and `off` are booleans, 1e3 is the integer 1000, 0o17 and 017
are 15, 08 is 8, 12:30:45, 2026-01-31 and `=` are texts, a later key replaces an earlier one, and a merge (`<<`)
replaces what stands before it. libyaml cuts the text into events; everything else is decided here, without recursion.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from kopylite.errors import UsageError
from kopylite.objects.yamlscalars import in_json, key_text, number, plain_value, tagged_value

# As libyaml bounds it. Go stops at 10,000; no object of the API comes near either.
MAX_DEPTH = 1000
# goyaml's bounds on aliases: this many values may be read before the share of aliased ones counts, ...
_ALIAS_FREE_VALUES, _ALIAS_FREE_ALIASED = 1000, 100
# ... then 99 % of them may come from aliases up to the first bound, 10 % from the second on.
_RATIO_LOW, _RATIO_HIGH = 400_000, 4_000_000

_Parser: Any = getattr(yaml, "CLoader", yaml.Loader)
_NO_MERGE = "map merge requires map or sequence of maps as the value"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_BLANK = re.compile(r"\s*")
# Escapes within JSON's strings: a pair of surrogates, half a pair, any other one.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)")


class YamlError(UsageError, ValueError):
    """A text that is no YAML, or holds what JSON cannot.

    Attributes:
        problem: what is wrong, mostly in Go's words; quotes at most the name of an anchor, so that no secret is shown.
        line: where, from 1; 0: unknown.
        go_line: the line that Go would name; 0: none. It counts the lines before the fault, or with it.
    """

    def __init__(self, problem: str, line: int = 0, where: str = "", *, go_line: int = 0) -> None:
        self.problem, self.line, self.go_line = problem, line, go_line
        place = ":".join(part for part in (where, str(line) if line else "") if part)
        super().__init__(f"{place}: {problem}" if place else problem)


def read_documents(data: bytes | str, where: str = "") -> list[Any]:
    """All documents of a file or stream as `kubectl apply -f` reads them, JSON objects one after the other included.

    Empty documents are left out. Byte order marks and UTF-16 are understood.

    Args:
        where: the file's name, for errors.

    Raises:
        YamlError: naming the file and the line.
    """
    text = _decoded(data, where)
    found: list[Any] = []
    if text.lstrip().startswith("{"):
        end, problem = _read_json(text, found)
        if problem is None:
            return found
        # One JSON object may be followed by YAML; after several, or if the rest is no YAML, the text is broken JSON.
        try:
            if len(found) > 1:
                raise problem
            found += _read_chunks(text[end:], where, text.count("\n", 0, end))
        except ValueError:
            raise YamlError(f"no JSON: {problem.msg}", problem.lineno, where) from None
    else:
        found += _read_chunks(text, where, 0)
    return [document for document in found if document is not None]


def read_document(data: bytes | str, where: str = "", repeated: list[str] | None = None) -> Any:
    """The first document of a text, as the API server reads a body and kubectl a kubeconfig; None if there is none.

    Args:
        where: the file's name, for errors.
        repeated: is told of the keys that come more than once in a map, in Go's words.

    Raises:
        YamlError: naming the file and the line.
    """
    return _read(_decoded(data, where), where, 0, repeated)


def _decoded(data: bytes | str, where: str) -> str:
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = 0 if wide else data.count(b"\n", 0, error.start) + 1
        raise YamlError(f"not {'UTF-16' if wide else 'UTF-8'}: {error.reason}", line, where) from None


def _read_json(text: str, found: list[Any]) -> tuple[int, json.JSONDecodeError | None]:
    """Append the JSON values one after the other; gives the end of the last, and the problem with what follows it."""
    decoder = json.JSONDecoder(parse_float=number, parse_int=number, parse_constant=_no_json)
    # Half a pair of surrogates is no text. Go puts the replacement character there.
    text = _ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text)
    end = 0
    while True:
        start = _BLANK.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing, too
        if start == len(text):
            return end, None
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            return end, error
        except (ValueError, RecursionError) as error:
            problem = "nested too deep" if isinstance(error, RecursionError) else str(error)
            return end, json.JSONDecodeError(problem, text, start)
        found.append(value)


def _no_json(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _read_chunks(text: str, where: str, line: int) -> Iterator[Any]:
    """Cut at lines that begin with `---`, as kubectl does before it parses anything.

    Each line has its end, the last one too: a block scalar in front of a `---` keeps its own.
    """
    chunk: list[str] = []
    start = line
    for row in text.removesuffix("\n").split("\n"):
        if row.startswith("---"):
            rest = row[3:].strip()
            if rest and not rest.startswith("#"):
                raise YamlError("a line with --- ends a document; nothing but a comment may follow it", line + 1, where)
            if chunk:
                yield _read("".join(chunk), where, start, None)
            chunk, start = [], line + 1
        else:
            chunk.append(f"{row}\n")
        line += 1
    if chunk:
        yield _read("".join(chunk), where, start, None)


def _read(text: str, where: str, line: int, repeated: list[str] | None) -> Any:
    """The first document of a text whose first line is the `line`th of the file (from 0)."""
    try:
        return _Builder(_Parser(text), repeated).build()
    except _Fault as fault:
        raise YamlError(fault.problem, line + fault.line + 1, where) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = mark.line if mark else 0
        go_line = at + 1 if at and isinstance(error, yaml.scanner.ScannerError) else at
        shown = line + min(at, text.removesuffix("\n").count("\n")) + 1 if mark else 0  # not the line after the last
        raise YamlError(str(error.problem or error.context), shown, where, go_line=go_line) from None
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        problem = getattr(error, "reason", None) or "cannot be read"
        raise YamlError(str(problem), where=where) from None


class _Fault(Exception):
    def __init__(self, problem: str, line: int) -> None:
        self.problem, self.line = problem, line


class _Anchored:
    """What an alias stands for; `size` counts the values inside, in Go's way of counting."""

    __slots__ = ("done", "size", "value")

    def __init__(self) -> None:
        self.done, self.size = False, 0
        self.value: Any = None


class _Frame:
    """A map or list that has begun. `key` waits for its value; `merging`: the value is one to merge."""

    __slots__ = ("anchored", "count", "has_key", "key", "line", "merging", "value")

    def __init__(self, value: Any, anchored: _Anchored | None, count: int, line: int) -> None:
        self.value, self.anchored, self.count, self.line = value, anchored, count, line
        self.key: Any = None
        self.has_key = self.merging = False


class _Builder:
    """Builds one document from the parser's events."""

    def __init__(self, parser: Any, repeated: list[str] | None) -> None:
        self._parser = parser
        self._repeated = repeated
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._values = self._aliased = 0
        self._root: Any = None

    def build(self) -> Any:
        parser, frames = self._parser, self._frames
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._begin(event, {} if kind is yaml.MappingStartEvent else [])
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                frame = frames.pop()
                if frame.anchored is not None:
                    frame.anchored.done = True
                    frame.anchored.value, frame.anchored.size = frame.value, self._values - frame.count
                self._add(frame.value, frame.line)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentEndEvent or kind is yaml.StreamEndEvent:
                return self._root

    def _anchor(self, event: Any) -> _Anchored | None:
        if event.anchor is None:
            return None
        self._anchors[event.anchor] = anchored = _Anchored()
        return anchored

    def _begin(self, event: Any, value: Any) -> None:
        line = event.start_mark.line
        if len(self._frames) >= MAX_DEPTH:
            raise _Fault(f"nested deeper than {MAX_DEPTH}", line)
        if self._frames and self._is_key():
            raise _Fault("a key is a text or a number, no map or list", line)
        self._values += 1
        self._frames.append(_Frame(value, self._anchor(event), self._values - 1, line))

    def _scalar(self, event: Any) -> None:
        text, tag, frames = event.value, event.tag, self._frames
        line = event.start_mark.line
        if frames and text == "<<" and self._is_key() and (event.implicit[0] or tag == _MERGE_TAG):
            frames[-1].merging = frames[-1].has_key = True
            return
        try:
            value = tagged_value(tag, text) if tag is not None else plain_value(text) if event.implicit[0] else text
        except ValueError as error:
            raise _Fault(str(error), line) from None
        self._values += 1
        if (anchored := self._anchor(event)) is not None:
            anchored.value, anchored.size, anchored.done = value, 1, True
        self._add(value, line)

    def _alias(self, event: Any) -> None:
        line = event.start_mark.line
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise _Fault(f"unknown anchor '{event.anchor}' referenced", line)
        if not anchored.done:
            raise _Fault(f"anchor '{event.anchor}' value contains itself", line)
        self._values += 1 + anchored.size
        self._aliased += anchored.size
        excessive = self._aliased > _ALIAS_FREE_ALIASED and self._values > _ALIAS_FREE_VALUES
        if excessive and self._aliased / self._values > _allowed_ratio(self._values):
            raise _Fault("document contains excessive aliasing", line)
        if isinstance(anchored.value, (dict, list)) and self._is_key():
            raise _Fault("a key is a text or a number, no map or list", line)
        if self._frames[-1].merging and type(anchored.value) is not dict:
            raise _Fault(_NO_MERGE, line)
        self._add(_copy(anchored.value), line)

    def _is_key(self) -> bool:
        frame = self._frames[-1]
        return type(frame.value) is dict and not frame.has_key

    def _add(self, value: Any, line: int) -> None:
        """Put a value into the innermost map or list: as an item, a key, or the value of a key."""
        if not self._frames:
            self._root = _in_json(value, line)
            return
        frame = self._frames[-1]
        if type(frame.value) is list:
            frame.value.append(_in_json(value, line))
        elif not frame.has_key:
            try:
                frame.key = value if type(value) is str else key_text(value)
            except ValueError as error:
                raise _Fault(str(error), line) from None
            frame.has_key = True
        elif frame.merging:
            self._merge(frame, value, line)
            frame.merging = frame.has_key = False
        else:
            self._set(frame.value, frame.key, _in_json(value, line), line)
            frame.has_key = False

    def _set(self, mapping: dict[str, Any], key: str, value: Any, line: int) -> None:
        if self._repeated is not None and key in mapping:
            self._repeated.append(f"line {line + 1}: key {json.dumps(key, ensure_ascii=False)} already set in map")
        mapping[key] = value

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        # Of several maps the first counts.
        sources = value[::-1] if type(value) is list else [value]
        for source in sources:
            if type(source) is not dict:
                raise _Fault(_NO_MERGE, line)
            for key, inner in source.items():
                self._set(frame.value, key, inner, line)


def _allowed_ratio(values: int) -> float:
    share = min(1.0, max(0.0, (values - _RATIO_LOW) / (_RATIO_HIGH - _RATIO_LOW)))
    return 0.99 - 0.89 * share


def _in_json(value: Any, line: int) -> Any:
    if type(value) is not float and type(value) is not int:
        return value
    try:
        return in_json(value)
    except ValueError as error:
        raise _Fault(str(error), line) from None


def _copy(value: Any) -> Any:
    """A copy of maps and lists, without recursion."""
    if not isinstance(value, (dict, list)):
        return value
    top: list[Any] = [value]
    open_ones: list[Any] = [top]
    while open_ones:
        container = open_ones.pop()
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for key, inner in list(pairs):
            if isinstance(inner, (dict, list)):
                container[key] = inner.copy()
                open_ones.append(container[key])
    return top[0]
