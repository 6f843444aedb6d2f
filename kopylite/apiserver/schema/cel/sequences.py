"""Kubernetes' libraries of strings, lists, sets and regular expressions. Pure."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any

from kopylite.apiserver.schema.cel import budget
from kopylite.apiserver.schema.cel.conversions import string
from kopylite.apiserver.schema.cel.library import FunctionFailed, Library, no_overload
from kopylite.apiserver.schema.cel.values import OptionalValue, equal
from kopylite.apiserver.schema.cel.values import contains as contained
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.schema.regex import GoRegex, compile_go

SEQUENCES = Library()


@SEQUENCES.add("matches", "bool", is_global=True)
def matches(text: str, pattern: str) -> bool:
    return _regex(pattern).matches(text)


@SEQUENCES.add("startsWith", "bool")
def starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


@SEQUENCES.add("endsWith", "bool")
def ends_with(text: str, suffix: str) -> bool:
    return text.endswith(suffix)


@SEQUENCES.add("contains", "bool")
def contains(text: str, part: str) -> bool:
    if not isinstance(text, str):
        raise no_overload()
    return part in text


@SEQUENCES.add("charAt", "string")
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise FunctionFailed(f"index out of range: {index}")
    return text[index : index + 1]


@SEQUENCES.add("indexOf", "int")
def index_of(value: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((i for i, element in enumerate(value) if element == wanted), -1)
    if not 0 <= start <= len(value):
        raise FunctionFailed(f"index out of range: {start}")
    return int(value.find(wanted, start))


@SEQUENCES.add("lastIndexOf", "int")
def last_index_of(value: Any, wanted: Any, end: int | None = None) -> int:
    if isinstance(value, list):
        return next((i for i in range(len(value) - 1, -1, -1) if value[i] == wanted), -1)
    return int(value.rfind(wanted, 0, None if end is None else end + len(wanted)))


@SEQUENCES.add("lowerAscii", "string")
def lower_ascii(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


@SEQUENCES.add("upperAscii", "string")
def upper_ascii(text: str) -> str:
    return "".join(c.upper() if c.isascii() else c for c in text)


@SEQUENCES.add("replace", "string")
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    if len(new) > len(old):
        times = text.count(old)
        budget.check_length(len(text) + (times if limit < 0 else min(times, limit)) * (len(new) - len(old)))
    return text.replace(old, new, limit)


@SEQUENCES.add("split", "list")
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


@SEQUENCES.add("substring", "string")
def substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise FunctionFailed(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise FunctionFailed(f"index out of range: {stop}")
    if start > stop:
        raise FunctionFailed(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


@SEQUENCES.add("trim", "string")
def trim(text: str) -> str:
    return text.strip()


@SEQUENCES.add("join", "string")
def join(parts: list[str], separator: str = "") -> str:
    return separator.join(parts)


@SEQUENCES.add("strings.quote", "string", is_global=True)
def quote(text: str) -> str:
    return go_quote(text)


@SEQUENCES.add("format", "string")
def format_string(template: str, args: list[Any]) -> str:
    """`%s`, `%d`, `%f`, `%e`, `%x`, `%X`, `%o`, `%b` with an optional precision, and `%%`."""
    found, rest, used = [], template, 0
    while rest:
        plain, percent, rest = rest.partition("%")
        found.append(plain)
        if not percent:
            break
        precision = ""
        if rest.startswith("."):
            digits = len(rest[1:]) - len(rest[1:].lstrip("0123456789"))
            precision, rest = rest[1 : 1 + digits], rest[1 + digits :]
        verb, rest = rest[:1], rest[1:]
        if verb == "%":
            found.append("%")
            continue
        if used >= len(args):
            raise FunctionFailed(f"index {used} out of range")
        found.append(_formatted(verb, args[used], precision))
        used += 1
    return "".join(found)


def _formatted(verb: str, value: Any, precision: str) -> str:
    if verb == "s":
        return _shown(value)
    if verb == "d" and isinstance(value, (int, float)):
        return str(int(value))
    if verb in "fe" and isinstance(value, (int, float)):
        return f"{value:.{precision or 6}{verb}}"
    if verb in "xX" and isinstance(value, (str, bytes)):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if verb == "X" else digits
    if verb in "xXob" and isinstance(value, int):
        return f"{int(value):{verb}}"
    raise FunctionFailed(f"could not parse formatting clause: unrecognized formatting clause {go_quote(verb)}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_shown(k)}: {_shown(v)}' for k, v in sorted(value.items()))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return "null" if value is None else string(value)


@SEQUENCES.add("isSorted", "bool")
def is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(values))


@SEQUENCES.add("sum")
def total(values: list[Any]) -> Any:
    return sum(values[1:], values[0]) if values else 0


@SEQUENCES.add("min")
def least(values: list[Any]) -> Any:
    if not values:
        raise FunctionFailed("min called on empty list")
    return min(values)


@SEQUENCES.add("max")
def greatest(values: list[Any]) -> Any:
    if not values:
        raise FunctionFailed("max called on empty list")
    return max(values)


@SEQUENCES.add("slice", "list")
def slice_of(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise FunctionFailed(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise FunctionFailed(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise FunctionFailed(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


@SEQUENCES.add("flatten", "list")
def flatten(values: list[Any], depth: int = 1) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend((flatten(value, depth - 1) if depth > 1 else value) if isinstance(value, list) else [value])
    return found


@SEQUENCES.add("sort", "list")
def sort(values: list[Any]) -> list[Any]:
    return sorted(values)


@SEQUENCES.add("distinct", "list")
def distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(equal(value, other) for other in found):
            found.append(value)
    return found


@SEQUENCES.add("reverse", "dyn")
def reverse(value: Any) -> Any:
    return value[::-1]


@SEQUENCES.add("lists.range", "list", is_global=True)
def list_range(count: int) -> list[int]:
    return list(range(count))


@SEQUENCES.add("first")
def first(values: list[Any]) -> Any:
    return OptionalValue.of(values[0]) if values else OptionalValue.none()


@SEQUENCES.add("last")
def last(values: list[Any]) -> Any:
    return OptionalValue.of(values[-1]) if values else OptionalValue.none()


@SEQUENCES.add("sets.contains", "bool", is_global=True)
def set_contains(values: list[Any], wanted: list[Any]) -> bool:
    return not any(not contained(value, values) for value in wanted)


@SEQUENCES.add("sets.equivalent", "bool", is_global=True)
def set_equivalent(a: list[Any], b: list[Any]) -> bool:
    return not any(not contained(value, b) for value in a) and not any(not contained(value, a) for value in b)


@SEQUENCES.add("sets.intersects", "bool", is_global=True)
def set_intersects(a: list[Any], b: list[Any]) -> bool:
    return any(contained(value, b) for value in a)


@SEQUENCES.add("find", "string")
def find(text: str, pattern: str) -> str:
    return next(_regex(pattern).finds(text), "")


@SEQUENCES.add("findAll", "list")
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return list(itertools.islice(_regex(pattern).finds(text), limit if limit >= 0 else None))


def _regex(pattern: str) -> GoRegex:
    try:
        return compile_go(pattern)
    except ValueError as error:
        raise FunctionFailed(f"Illegal regex: {error}") from error
