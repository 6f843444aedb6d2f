"""Printer columns and selectable fields of custom resources: readers of JSONPaths. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kopylite.apiserver.printers.tables import NAME
from kopylite.apiserver.resources.registry import Column
from kopylite.apiserver.schema.field_errors import go_float, go_json
from kopylite.apiserver.schema.jsonpath import compile_path

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns(version: Mapping[str, Any]) -> tuple[Column, ...]:
    """Name, then the columns that a version declares; Age if it declares none."""
    declared = version.get("additionalPrinterColumns") or [_AGE]
    return (NAME, *(_column(column) for column in declared))


def selectable_fields(version: Mapping[str, Any]) -> dict[str, Callable[[dict[str, Any]], str]]:
    """The field labels that a version declares selectable, with their readers."""
    paths = [each["jsonPath"] for each in version.get("selectableFields") or ()]
    return {path.removeprefix("."): _field_reader(path) for path in paths}


def _column(column: Mapping[str, Any]) -> Column:
    path = column["jsonPath"]
    description = "" if column is _AGE else f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        column["name"],
        column["type"],
        _cell_reader(path, column["type"]),
        column.get("format") or "",
        column.get("description") or description,
        column.get("priority") or 0,
    )


def _cell_reader(path: str, kind: str) -> Callable[[dict[str, Any]], Any]:
    read = compile_path(path)

    def cell(obj: dict[str, Any]) -> Any:
        values = read(obj)
        return _cell(values[0], kind) if values else None

    return cell


def _cell(value: Any, kind: str) -> Any:
    """A value as a cell of a column type; None if it is of another type. Dates stay as they are written."""
    if kind == "string":
        return printed(value)
    if isinstance(value, bool):
        return value if kind == "boolean" else None
    if isinstance(value, (int, float)):
        return {"integer": int, "number": float}[kind](value) if kind in ("integer", "number") else None
    return value if isinstance(value, str) and kind == "date" else None


def _field_reader(path: str) -> Callable[[dict[str, Any]], str]:
    read = compile_path(path)

    def field(obj: dict[str, Any]) -> str:
        values = read(obj)
        return printed(values[0]) if values and values[0] is not None else ""

    return field


def printed(value: Any) -> str:
    """A value as JSONPath templates print it: strings plain, the rest as Go prints it, containers as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, (dict, list)):
        return go_json(value)
    return "<nil>" if value is None else str(value)
