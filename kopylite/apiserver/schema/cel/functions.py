"""Functions of the core that the evaluator lacks; Kubernetes' strings, lists, sets and regex libraries. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from cel import OptionalValue

from kopylite.apiserver.schema.cel.library import CallFailed, Library, no_overload
from kopylite.apiserver.schema.cel.shapes import DYN, Shape
from kopylite.apiserver.schema.cel.values import VALUES
from kopylite.apiserver.schema.field_errors import go_float, go_quote
from kopylite.apiserver.schema.regex import compile_go

LIBRARY = Library(VALUES)
_BOOL, _INT, _DOUBLE, _STRING = Shape("bool"), Shape("int"), Shape("double"), Shape("string")
# What the evaluator does as Kubernetes does it; methods and global functions, with the shape of the result.
NATIVE_METHODS = {
    "startsWith": _BOOL, "endsWith": _BOOL, "contains": _BOOL, "hasValue": _BOOL, "value": DYN, "orValue": DYN,
    "or": DYN,
}  # fmt: skip
NATIVE_GLOBAL = {
    "int": _INT, "uint": Shape("uint"), "double": _DOUBLE, "bytes": Shape("bytes"), "type": DYN, "dyn": DYN,
    "duration": Shape("duration"), "timestamp": Shape("timestamp"),
}  # fmt: skip
NAMESPACED = frozenset(
    {"sets.contains", "sets.equivalent", "sets.intersects", "ip.isCanonical", "strings.quote", "lists.range",
     "format.named"}
)  # fmt: skip


@LIBRARY.add("size", "int", is_global=True)
def size(value: Any) -> int:
    """Of a string: code points."""
    return len(value)


@LIBRARY.add("matches", "bool", is_global=True)
def matches(text: str, pattern: str) -> bool:
    return _regex(pattern).search(text) is not None


@LIBRARY.add("string", "string", is_global=True)
def string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, timedelta):
        return f"{go_plain(value.total_seconds())}s"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (str, int)):
        return str(value)
    raise no_overload()


def go_plain(number: float) -> str:
    """A number without a needless fraction."""
    return str(int(number)) if number.is_integer() else repr(number)


@LIBRARY.add("bool", "bool", is_global=True)
def boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise CallFailed("type conversion error from 'string' to 'bool'")


@LIBRARY.add("optional_get")
def optional_get(value: Any, key: Any) -> Any:
    """`value.?key`, `value[?key]`, and every selection after one: absent if the value or the key is."""
    if isinstance(value, OptionalValue):
        if not value.has_value():
            return value
        value = value.value()
    if isinstance(value, dict):
        return OptionalValue.of(value[key]) if key in value else OptionalValue.none()
    if isinstance(value, list) and isinstance(key, int):
        return OptionalValue.of(value[key]) if 0 <= key < len(value) else OptionalValue.none()
    raise no_overload()


def _present(values: Iterable[Any], flags: list[bool]) -> list[Any]:
    found = []
    for value, optional in zip(values, flags, strict=True):
        if not optional:
            found.append(value)
        elif value.has_value():
            found.append(value.value())
    return found


@LIBRARY.add("list", "list")
def optional_list(values: list[Any], flags: list[bool]) -> list[Any]:
    """A list literal whose flagged elements are optional values: absent ones are left out."""
    return _present(values, flags)


@LIBRARY.add("map")
def optional_map(pairs: list[Any], flags: list[bool]) -> dict[Any, Any]:
    """A map literal whose flagged entries have optional values: absent ones are left out."""
    kept = {}
    for (key, value), optional in zip(pairs, flags, strict=True):
        if not optional:
            kept[key] = value
        elif value.has_value():
            kept[key] = value.value()
    return kept


@LIBRARY.add("pairs", "list")
def pairs(value: Any) -> list[list[Any]]:
    """[key, value] of a map, [index, element] of a list."""
    return [list(pair) for pair in (value.items() if isinstance(value, dict) else enumerate(value))]


@LIBRARY.add("from_pairs")
def from_pairs(entries: list[list[Any]]) -> dict[Any, Any]:
    return dict(entries)


@LIBRARY.add("merge")
def merge(maps: list[dict[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for each in maps:
        if repeated := found.keys() & each.keys():
            raise CallFailed(f"insert failed: key {min(repeated)} already exists")
        found |= each
    return found


@LIBRARY.add("unordered_equal", "bool")
def unordered_equal(a: list[Any], b: list[Any], keys: list[str]) -> bool:
    """Equality of lists of type set (no keys) or map."""
    if len(a) != len(b):
        return False
    if not keys:
        return not any(value not in b for value in a) and not any(value not in a for value in b)
    others = {_map_key(element, keys): element for element in b}
    return all(others.get(_map_key(element, keys)) == element for element in a)


@LIBRARY.add("unordered_add", "list")
def unordered_add(a: list[Any], b: list[Any], keys: list[str]) -> list[Any]:
    """Union of lists of type set (no keys) or map: elements of the second replace those of equal keys."""
    if not keys:
        return [*a, *(value for value in b if value not in a)]
    merged = {_map_key(element, keys): element for element in a}
    merged.update((_map_key(element, keys), element) for element in b)
    return list(merged.values())


def _map_key(element: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    return tuple(element.get(key) for key in keys)


_DATE_PARTS = {
    "getFullYear": lambda t: t.year, "getMonth": lambda t: t.month - 1, "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1, "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1, "getHours": lambda t: t.hour, "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second, "getMilliseconds": lambda t: t.microsecond // 1000,
}  # fmt: skip
_DURATION_PARTS = {"getHours": 3600.0, "getMinutes": 60.0, "getSeconds": 1.0, "getMilliseconds": 0.001}


def _date_part(name: str) -> None:
    @LIBRARY.add(name, "int")
    def read(value: Any, zone: str = "UTC") -> int:
        if isinstance(value, timedelta):
            return int(value.total_seconds() / _DURATION_PARTS[name])
        local: datetime = value.astimezone(ZoneInfo(zone))
        return int(_DATE_PARTS[name](local))


for _name in _DATE_PARTS:
    _date_part(_name)


@LIBRARY.add("charAt", "string")
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CallFailed(f"index out of range: {index}")
    return text[index : index + 1]


@LIBRARY.add("indexOf", "int")
def index_of(value: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((i for i, element in enumerate(value) if element == wanted), -1)
    if not 0 <= start <= len(value):
        raise CallFailed(f"index out of range: {start}")
    return int(value.find(wanted, start))


@LIBRARY.add("lastIndexOf", "int")
def last_index_of(value: Any, wanted: Any, end: int | None = None) -> int:
    if isinstance(value, list):
        return next((i for i in range(len(value) - 1, -1, -1) if value[i] == wanted), -1)
    return int(value.rfind(wanted, 0, None if end is None else end + len(wanted)))


@LIBRARY.add("lowerAscii", "string")
def lower_ascii(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


@LIBRARY.add("upperAscii", "string")
def upper_ascii(text: str) -> str:
    return "".join(c.upper() if c.isascii() else c for c in text)


@LIBRARY.add("replace", "string")
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


@LIBRARY.add("split", "list")
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


@LIBRARY.add("substring", "string")
def substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise CallFailed(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CallFailed(f"index out of range: {stop}")
    if start > stop:
        raise CallFailed(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


@LIBRARY.add("trim", "string")
def trim(text: str) -> str:
    return text.strip()


@LIBRARY.add("join", "string")
def join(parts: list[str], separator: str = "") -> str:
    return separator.join(parts)


@LIBRARY.add("strings.quote", "string", is_global=True)
def quote(text: str) -> str:
    return go_quote(text)


@LIBRARY.add("format", "string")
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
            raise CallFailed(f"index {used} out of range")
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
    raise CallFailed(f"could not parse formatting clause: unrecognized formatting clause {go_quote(verb)}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_shown(k)}: {_shown(v)}' for k, v in sorted(value.items()))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return "null" if value is None else string(value)


@LIBRARY.add("isSorted", "bool")
def is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(values))


@LIBRARY.add("sum")
def total(values: list[Any]) -> Any:
    return sum(values[1:], values[0]) if values else 0


@LIBRARY.add("min")
def least(values: list[Any]) -> Any:
    if not values:
        raise CallFailed("min called on empty list")
    return min(values)


@LIBRARY.add("max")
def greatest(values: list[Any]) -> Any:
    if not values:
        raise CallFailed("max called on empty list")
    return max(values)


@LIBRARY.add("slice", "list")
def slice_of(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CallFailed(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CallFailed(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise CallFailed(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


@LIBRARY.add("flatten", "list")
def flatten(values: list[Any], depth: int = 1) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend((flatten(value, depth - 1) if depth > 1 else value) if isinstance(value, list) else [value])
    return found


@LIBRARY.add("sort", "list")
def sort(values: list[Any]) -> list[Any]:
    return sorted(values)


@LIBRARY.add("distinct", "list")
def distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


@LIBRARY.add("reverse", "dyn")
def reverse(value: Any) -> Any:
    return value[::-1]


@LIBRARY.add("lists.range", "list", is_global=True)
def list_range(count: int) -> list[int]:
    return list(range(count))


@LIBRARY.add("first")
def first(values: list[Any]) -> Any:
    return OptionalValue.of(values[0]) if values else OptionalValue.none()


@LIBRARY.add("last")
def last(values: list[Any]) -> Any:
    return OptionalValue.of(values[-1]) if values else OptionalValue.none()


@LIBRARY.add("sets.contains", "bool", is_global=True)
def set_contains(values: list[Any], wanted: list[Any]) -> bool:
    return not any(value not in values for value in wanted)


@LIBRARY.add("sets.equivalent", "bool", is_global=True)
def set_equivalent(a: list[Any], b: list[Any]) -> bool:
    return not any(value not in b for value in a) and not any(value not in a for value in b)


@LIBRARY.add("sets.intersects", "bool", is_global=True)
def set_intersects(a: list[Any], b: list[Any]) -> bool:
    return any(value in b for value in a)


@LIBRARY.add("find", "string")
def find(text: str, pattern: str) -> str:
    match = _regex(pattern).search(text)
    return match[0] if match else ""


@LIBRARY.add("findAll", "list")
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in _regex(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _regex(pattern: str) -> Any:
    try:
        return compile_go(pattern)
    except ValueError as error:
        raise CallFailed(f"Illegal regex: {error}") from error
