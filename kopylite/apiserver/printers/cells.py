"""What printers share: reading a path, and the forms that several columns have. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kopylite.apiserver.printers.tables import NAME, Since, age_cell
from kopylite.apiserver.resources.registry import Column

Object = dict[str, Any]
Cell = Callable[[Object], Any]
NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


def read(obj: Any, path: str, default: Any = None) -> Any:
    """The value at a dotted path; `default` where something on the way is missing or null."""
    for name in path.split("."):
        if not isinstance(obj, dict):
            return default
        obj = obj.get(name)
    return default if obj is None else obj


def at(path: str, default: Any = "") -> Cell:
    return lambda obj: read(obj, path, default)


def text_at(path: str, default: str = NONE) -> Cell:
    """As a string, which numbers become too; `default` also for an empty one."""

    def cell(obj: Object) -> Any:
        value = read(obj, path)
        return default if value in (None, "") else str(value)

    return cell


def since(path: str, default: str = UNKNOWN) -> Cell:
    """The time since the stamp at a path."""

    def cell(obj: Object) -> Any:
        stamp = read(obj, path)
        return Since(stamp) if stamp else default

    return cell


def joined(values: Iterable[Any]) -> str:
    return ",".join(str(value) for value in values) or NONE


def labels_text(labels: Any) -> str:
    """`a=1,b=2`, or `<none>`."""
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def containers_of(path: str, key: str) -> Cell:
    """The names or images of the containers at a path."""
    return lambda obj: ",".join(str(c.get(key, "")) for c in read(obj, path, []))


def columns(*described: tuple[str, Cell] | tuple[str, Cell, str] | Column) -> tuple[Column, ...]:
    """Name first, then (title, cell) or (title, cell, type); a title ending in `*` shows only with -o wide."""
    made = [NAME]
    for one in described:
        if isinstance(one, Column):
            made.append(one)
            continue
        title, cell, *rest = one
        kind = rest[0] if rest else "string"
        made.append(Column(title.rstrip("*"), str(kind), cell, priority=1 if title.endswith("*") else 0))
    return tuple(made)


AGE: tuple[str, Cell] = ("Age", age_cell)
