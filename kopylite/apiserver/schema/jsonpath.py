"""The JSONPath of printer columns, selectable fields and the scale sub-resource. Pure.

The dialect is that of Kubernetes: `.spec.replicas`, `.metadata.annotations.example\\.com/x`, `['x']`, `[0]`,
`[-1:]`, `[*]`, `[?(@.type=="Ready")]`, `..name`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

PathStep = Callable[[Any], Iterator[Any]]

_NAME = re.compile(r"(?:\\.|[^.\[\]\s()?@{}'\"*])+")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?")
_FILTER = re.compile(r"\?\(\s*@(?P<path>.*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*)?\)")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@functools.lru_cache(maxsize=4096)
def compile_path(path: str) -> Callable[[Any], list[Any]]:
    """A reader of all values at a path, in order; none for what is not there.

    Raises:
        ValueError: the path is malformed.
    """
    steps = list(_steps(path))

    def read(value: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [found for each in values for found in step(each)]
        return values

    return read


def first(path: str, value: Any) -> Any:
    """The first value at a path, None if there is none."""
    values = compile_path(path)(value)
    return values[0] if values else None


def field_names(path: str) -> tuple[str, ...]:
    """The names of a plain path, as those of the scale sub-resource are: `.spec.replicas` -> ("spec", "replicas")."""
    return tuple(path.removeprefix(".").split("."))


def _steps(path: str) -> Iterator[PathStep]:
    at = 0
    while at < len(path):
        if path.startswith("..", at):
            yield _descendants
            at += 1 if path[at + 2 : at + 3] not in ("[", "") else 2
        elif path[at] == "[":
            end = _closing(path, at)
            yield _bracket(path[at + 1 : end].strip())
            at = end + 1
        elif path[at] == "." and path[at + 1 : at + 2] == "*":
            yield _children
            at += 2
        elif path[at] == ".":
            if at + 1 == len(path):
                return
            match = _NAME.match(path, at + 1)
            if match is None:
                if path[at + 1] == "[":
                    at += 1
                    continue
                raise ValueError(f"unrecognized character in path at {path[at:]!r}")
            yield _field(re.sub(r"\\(.)", r"\1", match[0]))
            at = match.end()
        else:
            raise ValueError(f"unrecognized character in path at {path[at:]!r}")


def _closing(path: str, start: int) -> int:
    """The index of the bracket that closes the one at `start`; quoted brackets do not count."""
    depth, quote = 0, ""
    for index in range(start, len(path)):
        char = path[index]
        if quote:
            quote = "" if char == quote and path[index - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return index
    raise ValueError("unterminated array")


def _bracket(inside: str) -> PathStep:
    if inside == "*":
        return _children
    if inside.startswith("?"):
        return _filter(inside)
    if inside[:1] in ("'", '"'):
        names = re.findall(r"'((?:\\.|[^'])*)'|\"((?:\\.|[^\"])*)\"", inside)
        return _union([_field(re.sub(r"\\(.)", r"\1", a or b)) for a, b in names])
    parts = [part.strip() for part in inside.split(",")]
    return _union([_index(part) for part in parts])


def _union(steps: list[PathStep]) -> PathStep:
    return lambda value: (found for step in steps for found in step(value))


def _field(name: str) -> PathStep:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(text: str) -> PathStep:
    match = _SLICE.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"invalid array index {text}")
    begin = int(match[1]) if match[1] else None
    if ":" not in text:
        chosen = slice(begin, None if begin == -1 else (begin or 0) + 1)
    else:
        chosen = slice(begin, int(match[2]) if match[2] else None, int(match[3]) if match[3] else None)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[chosen]

    return step


def _filter(inside: str) -> PathStep:
    match = _FILTER.fullmatch(inside)
    if match is None:
        raise ValueError(f"unrecognized filter {inside}")
    read = compile_path(match["path"])
    operator, literal = match["op"], match["value"]
    wanted = _literal(literal) if literal is not None else None

    def holds(element: Any) -> bool:
        values = read(element)
        if operator is None:
            return bool(values)
        try:
            return bool(values) and _COMPARE[operator](values[0], wanted)
        except TypeError:
            return False

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (element for element in value if holds(element))

    return step


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[:1]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    try:
        return json.loads(text)
    except ValueError:
        return text


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descendants(value: Any) -> Iterator[Any]:
    yield value
    for inner in _children(value):
        yield from _descendants(inner)
